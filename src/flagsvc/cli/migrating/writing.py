"""Writes a result: as TOML, as an env file, as JSON. All of them hold secrets: it is a configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from flagsvc.cli.migrating.migration import KNOWN, About, Migration, Value
from flagsvc.cli.migrating.sources import TITLES
from flagsvc.settings.environments import TABLE, VARIABLES
from flagsvc.settings.environments import variable_of as environment_variable
from flagsvc.settings.kinds import BARE_KEY


def write_toml(migration: Migration) -> str:
    """Return a configuration file: the options of all environments, then a table for each environment."""
    lines = [*_head(migration), *_table(as_tree(migration), "", migration.reasons)]
    return "\n".join(lines).rstrip() + "\n"


def write_variables(migration: Migration) -> str:
    """Return an env file. Values have no quotes, because `docker run --env-file` takes them as they are."""
    lines = [f"{name}={value}" for name, value in as_variables(migration).items()]
    return "\n".join([*_head(migration), *lines]) + "\n"


def write_json(migration: Migration) -> str:
    """Return the options, the variables and the notes as one JSON object."""
    found = {
        "from": migration.peer,
        "options": as_tree(migration),
        "variables": as_variables(migration),
        "notes": [note._asdict() for note in migration.in_order()],
    }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _head(migration: Migration) -> Iterator[str]:
    """Yield the comments that a file begins with: where it comes from, and what is missing."""
    yield f"# Written by `flagsvc migrate` from a configuration of {TITLES[migration.peer]}. It holds secrets."
    for note in migration.in_order():
        if note.about is About.NEEDED:
            yield f"# {' '.join(str(note).splitlines())}"
    yield ""


def as_tree(migration: Migration) -> dict[str, Any]:
    """Return the options as nested tables, with those of each environment below `environments`."""
    tree = nest(migration.options)
    if migration.environments:
        tree[TABLE] = {name: nest(options) for name, options in migration.environments.items()}
    return tree


def nest(options: Mapping[str, Value]) -> dict[str, Any]:
    """Return options as nested tables: a dot in a name is a table."""
    tree: dict[str, Any] = {}
    for name, value in sort_options(options).items():
        *tables, last = name.split(".")
        place = tree
        for table in tables:
            place = place.setdefault(table, {})
        place[last] = value
    return tree


def sort_options(options: Mapping[str, Value]) -> dict[str, Value]:
    """Return options in the order of the reference page, planned ones first."""
    return {name: options[name] for name in KNOWN if name in options}


def as_variables(migration: Migration) -> dict[str, str]:
    """Return the options as variables. Those of an environment have its name behind our prefix."""
    found = {variable_of(name): as_text(name, value) for name, value in sort_options(migration.options).items()}
    if migration.environments:
        found[VARIABLES[0]] = ",".join(migration.environments)
    for environment, options in migration.environments.items():
        for name, value in sort_options(options).items():
            found[environment_variable(environment, variable_of(name))] = as_text(name, value)
    return found


def variable_of(name: str) -> str:
    """Return the variable of an option."""
    return KNOWN[name].reads[0]


def as_text(name: str, value: Value) -> str:
    """Return a value as a variable has it. A comma keeps a list of one origin a list."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(value) + ("," if name == "cors.origin" and len(value) == 1 else "")
    return str(value)


def _table(tree: Mapping[str, Any], path: str, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a table: its values, then the tables in it."""
    values = {key: value for key, value in tree.items() if not isinstance(value, dict)}
    if path and values:
        yield f"[{path}]"
    for key, value in values.items():
        reason = reasons.get(key, "") if not path else ""
        yield f"{_key(key)} = {_value(value)}{f'  # {reason}' if reason else ''}"
    if values:
        yield ""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _table(value, f"{path}.{_key(key)}" if path else _key(key), reasons)


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else _value(name)


def _value(value: Value) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower()
