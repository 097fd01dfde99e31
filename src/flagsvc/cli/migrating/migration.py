"""The result of a translation: options, environments, and notes on what is different. A note never holds a secret.

It is written as TOML, as an env file or as JSON. All of them hold secrets: it is a configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from flagsvc.settings.advice import advice_on
from flagsvc.settings.environments import TABLE, VARIABLES, read_names
from flagsvc.settings.environments import variable_of as environment_variable
from flagsvc.settings.kinds import BARE_KEY, RefusedError
from flagsvc.settings.normalise import Given, Normalised, normalise, refused_text
from flagsvc.settings.table import BY_NAME, OPTIONS

Value: TypeAlias = str | int | bool | list[str]
"""What an option is given in a file."""

OURS = "file flagsvc.toml"
"""Where a problem of the result says that a value stands."""
ENVIRONMENT = "environment "
"""How the loader's sources begin that are variables."""
LONGEST_NUMBER = 18
RELATIVE = "its path starts at the folder of the configuration file, or with variables at that of the process"
FIRST = ("flagsvcUrl", "flagsvcApiToken", "tokenValidation", "tokenRevalidationInterval")
KNOWN = {name: BY_NAME[name] for name in FIRST} | BY_NAME
"""Every option that a result may hold, by name, in the order in which it is written."""


class Peer(StrEnum):
    """A program to move over from."""

    EDGE = "edge"
    PROXY = "proxy"


TITLES = {Peer.EDGE: "Unleash Edge", Peer.PROXY: "@unleash/proxy"}


class About(StrEnum):
    """What a note is about. The first one keeps the result from being complete."""

    NEEDED = "to do"
    ABSENT = "no equivalent"
    CHANGED = "different"
    IGNORED = "left out"


class Note(NamedTuple):
    """One line for the user: the kind of note, the name of the thing, and the text."""

    about: About
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.name}: {self.text}"


@dataclass
class Migration:
    """Options by name, for all environments and for each; the reasons for defaults; and notes.

    `elsewhere` are options whose value the container goes on to get from a Secret or the like.

    With several environments `options` holds the defaults of all. With a single environment, named or not, it holds everything.
    """

    peer: Peer
    options: dict[str, Value] = field(default_factory=dict)
    environments: dict[str, dict[str, Value]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    noted: set[Note] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)

    def note(self, about: About, name: str, text: str) -> None:
        """Add a note, unless it is there."""
        note = Note(about, name, text)
        if note not in self.noted:
            self.noted.add(note)
            self.notes.append(note)

    def set(self, option: str, value: Value, source: str, *, environment: str = "") -> None:
        """Set an option, of one environment or of all. A value that it does not take becomes a note with `source`.

        A text becomes a number if the option is one.
        """
        row = KNOWN[option]
        if isinstance(value, str) and type(row.default) is int and value.isdecimal() and len(value) <= LONGEST_NUMBER:
            value = int(value)
        try:
            row.parse(value)
        except RefusedError as refusal:
            self.note_problem(refused_text(row, Given(value, source), str(refusal)), option, source)
            return
        (self.environments.setdefault(environment, {}) if environment else self.options)[option] = value

    def note_problem(self, problem: str, option: str, source: str) -> None:
        """Add a note on a value that an option does not take; `problem` is the loader's message about it."""
        self.note(About.NEEDED, source.removeprefix(ENVIRONMENT), problem.removeprefix(f"{option} ({source}): "))

    def set_default(self, option: str, value: Value, reason: str) -> None:
        """Set an option of all environments that is not set yet, and keep the reason."""
        if option not in self.options:
            self.options[option] = value
            self.reasons[option] = reason

    def in_order(self) -> list[Note]:
        """Return the notes, those about one thing together."""
        return [note for about in About for note in self.notes if note.about is about]

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return not any(note.about is About.NEEDED for note in self.notes)

    def merged(self, environment: str = "") -> dict[str, Value]:
        """Return the options of an environment with the defaults below them."""
        return self.options | self.environments.get(environment, {})


def read_options(options: Mapping[str, Value]) -> Normalised:
    """Return what the options of a result mean, with their problems."""
    given = {name: Given(value, OURS) for name, value in options.items() if name in BY_NAME}
    return normalise(given, {}, OPTIONS)


def check(migration: Migration) -> None:
    """Add a note for everything that would keep the result from a start, and for every value that is probably a mistake."""
    for problem in read_names(migration.environments, OURS)[1] if migration.environments else ():
        migration.note(About.NEEDED, TABLE, problem)
    for environment in migration.environments or ("",):
        options = migration.merged(environment)
        found = read_options(options)
        for name, problem in found.problems.items():
            if name in migration.elsewhere:
                continue
            migration.note(About.NEEDED, environment or name, problem.removeprefix(f"{name} "))
        for name, value in options.items():
            if KNOWN[name].kind.relative_to(value, "/") != value:
                migration.note(About.CHANGED, name, RELATIVE)
        for text in advice_on(found.values):
            migration.note(About.CHANGED, "advice", text)


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
    """Return the options as variables. A variable of an environment has its name behind our prefix."""
    found = {variable_of(name): as_text(name, value) for name, value in sort_options(migration.options).items()}
    if migration.environments:
        found[VARIABLES[0]] = ",".join(migration.environments)
    for environment, options in migration.environments.items():
        for name, value in sort_options(options).items():
            found[environment_variable(environment, variable_of(name))] = as_text(name, value)
    return found


def variable_of(name: str) -> str:
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
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower()
