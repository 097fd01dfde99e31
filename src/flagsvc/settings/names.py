"""The option names as they stand in nested tables, of a TOML file or of a mapping in code."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from flagsvc.settings.kinds import MOST_HINTS, ask_for, nearest_name, quoted
from flagsvc.settings.option import ALIAS, FILE_NAME, PREFIX, Option, Scope
from flagsvc.settings.table import BY_NAME, OPTIONS, SERVER_OPTIONS

SERVER_TABLE = "server"
"""The table of a configuration file that holds the flag server's options. All other keys are options of the proxy."""
ENVIRONMENTS_TABLE = "environments"
"""The table of a configuration file that has a table for each environment."""


class Flat(NamedTuple):
    """The values of tables by option name, a problem for each wrong key, and the options that such keys probably mean."""

    values: dict[str, object]
    problems: list[str]
    meant: set[str]


def settable(rows: Iterable[Option]) -> Iterator[str]:
    """Yield the names that a table may hold: the options that are not for code only, and the names for files of secrets."""
    for option in rows:
        if not option.in_code_only:
            yield option.name
            if option.secret:
                yield option.name + FILE_NAME


def _tables() -> Iterator[str]:
    """Yield the names of the tables that dotted option names need."""
    for option in OPTIONS:
        parts = option.name.split(".")
        yield from (".".join(parts[:depth]) for depth in range(1, len(parts)))


SETTABLE = frozenset(settable(OPTIONS))
DIVIDED: tuple[Option, ...] = tuple(row for row in OPTIONS if row.scope is not Scope.PROCESS)
"""The options that may differ between environments."""
DIVIDED_SETTABLE = frozenset(settable(DIVIDED))
"""The names that the table of an environment may hold."""
SERVER_SETTABLE = frozenset(settable(SERVER_OPTIONS))
TABLES = frozenset(_tables())


def flatten(tree: Mapping[str, object], source: str, names: Collection[str] = SETTABLE, table: str = "") -> Flat:
    """Return the values of nested tables by option name, and a problem for each key that is none of `names`.

    `source` says in the problems where the tables stand.
    """
    found = Flat({}, [], set())
    for key, value in tree.items():
        name = f"{table}.{key}" if table else str(key)
        if name in TABLES and isinstance(value, Mapping):
            inner = flatten(value, source, names, name)
            found.values.update(inner.values)
            found.problems.extend(inner.problems)
            found.meant.update(inner.meant)
        elif name in names and name not in TABLES:
            found.values[name] = value
        else:
            problem, meant = _wrong_key(name, source, names, hint=len(found.problems) < MOST_HINTS)
            found.problems.append(problem)
            found.meant.update(meant)
    return found


def _wrong_key(name: str, source: str, names: Collection[str], *, hint: bool) -> tuple[str, set[str]]:
    """Return what is wrong with a key that holds no option's value, and the option that it probably means, if any.

    Without `hint` the nearest option is not looked for.
    """
    if names is SERVER_SETTABLE:
        elsewhere = f"it is the proxy's, and stands outside of [{SERVER_TABLE}]" if name in SETTABLE else ""
        return _unknown(name, source, elsewhere, _spellings(SERVER_OPTIONS, names) if hint else {})
    if names is DIVIDED_SETTABLE and name in SETTABLE:
        return _unknown(name, source, "it holds for the whole process, and stands outside of the tables of environments", {})
    if name in TABLES:
        keys = sorted(known.removeprefix(f"{name}.") for known in names if known.startswith(f"{name}."))
        return f"{name} ({source}): expected a table with {', '.join(keys)}", set()
    if name in BY_NAME:
        return f"{name} ({source}) can be given in code only", set()
    elsewhere = f"it is the flag server's, and stands in [{SERVER_TABLE}]" if name in SERVER_SETTABLE else ""
    return _unknown(name, source, elsewhere, _spellings(OPTIONS, names) if hint else {})


def _unknown(name: str, source: str, elsewhere: str, spellings: Mapping[str, str]) -> tuple[str, set[str]]:
    """Return the message for a key that is no option: where it stands, or the nearest name. Return the option of that name, too."""
    meant = "" if elsewhere else nearest_name(name, spellings)
    text = f"unknown option {quoted(name)} ({source}); {elsewhere or ask_for(meant)}".removesuffix("; ")
    return text, {meant.removesuffix(FILE_NAME)} if meant else set()


def _spellings(rows: Iterable[Option], names: Collection[str]) -> dict[str, str]:
    """Return what a person may have written for an option: its last part, its variable or its name in code."""
    spellings: dict[str, str] = {}
    for option in rows:
        if option.name in names:
            others = (option.name.rpartition(".")[2], option.field, *(variable.name for variable in option.variables))
            reference = option.name.replace(PREFIX[:-1].lower(), ALIAS[:-1].lower())
            spellings.update(dict.fromkeys((*others, reference), option.name))
    tables = [ENVIRONMENTS_TABLE] if names is SETTABLE else []
    return spellings | {name: name for name in (*names, *tables) if name not in TABLES}
