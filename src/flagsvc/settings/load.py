"""From flags, environment and file to `ProxyOptions`: precedence, provenance, every problem at once.

Flags win over the environment, the environment over the file, the file over the defaults. A value of nothing but
blanks is not given. What the flag server takes from the variables of a real server wins over the defaults alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.advice import advice_on, quotation
from flagsvc.settings.base import Options
from flagsvc.settings.environments import TABLE, read_tables
from flagsvc.settings.kinds import printable, quoted
from flagsvc.settings.load_environments import add_environments, knows_environments, lost_options, written_environments
from flagsvc.settings.names import SERVER_SETTABLE, SERVER_TABLE, SETTABLE, TABLES, flatten, settable
from flagsvc.settings.normalise import Given, find_entry, followers, normalise
from flagsvc.settings.option import Option, is_injected
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.places import NO_TABLES, NOTHING, Files, Resolved, Tables, candidates, choose, read_file, reason
from flagsvc.settings.real_server import Adopted, adopt
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS
from flagsvc.settings.unread import CONFIG_VARIABLES, foreign, foreign_to_server, unread

if TYPE_CHECKING:
    from os import PathLike

UNREADABLE = "<file>"
"""The key in `Resolved.problems` for a configuration file that cannot be read."""

HOLDS_TABLE = (SETTABLE | TABLES) - {"environment"}
"""The keys of a file that may have a table as the value."""

LONGEST_PATH = 4096
"""The most characters of a path that a message shows. The end of a path says most, so the limit is higher than for a value."""


MOST_PARTS = 100
PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
KEY = re.compile(rf"(?<![\w\\-])(?:{PART}){{1,{MOST_PARTS - 1}}}+({PART})?", re.ASCII)
"""A dotted key `a.b.c…`, with a group for the part MOST_PARTS. `tomllib` takes time and memory with the square of the parts."""


OptionsT = TypeVar("OptionsT", bound=Options)


class Loaded(NamedTuple, Generic[OptionsT]):
    """Valid options of one program, where each came from (by option name), what to warn of, and the files that were read."""

    options: OptionsT
    sources: dict[str, str]
    warnings: list[str]
    files: Files


class ProgramOptions(NamedTuple):
    """What one of the two programs reads: its options, whether they are in `[server]`, and its further warnings (`odd`).

    `adopt` takes the variables of other programs, for options that are not given.
    """

    rows: tuple[Option, ...]
    serves_flags: bool
    odd: Callable[[Mapping[str, str], Mapping[str, Any]], Iterable[str]]
    adopt: Callable[[Mapping[str, str], Mapping[str, Given]], Adopted]


PROXY = ProgramOptions(
    OPTIONS,
    False,
    lambda environment, values: chain(foreign(environment), advice_on(values)),
    lambda environment, given: Adopted({}, {}, []),
)
SERVER = ProgramOptions(SERVER_OPTIONS, True, lambda environment, values: foreign_to_server(environment), adopt)


def load(environment: Mapping[str, str], file: PathLike[str] | str | None, flags: Mapping[str, str]) -> Loaded[ProxyOptions]:
    """Return the options of `flags` (by option name), `environment` and a TOML `file` (specification: Configuration).

    Raises `ConfigurationError` with every problem at once: none holds a secret.
    """
    return accepted(resolve(environment, file, flags), ProxyOptions)


def accepted(resolved: Resolved, options: type[OptionsT]) -> Loaded[OptionsT]:
    """Return the options of what was found; raise `ConfigurationError` with every problem at once."""
    if resolved.problems:
        raise ConfigurationError(tuple(resolved.problems.values()))
    return Loaded(options.of(resolved.values), resolved.sources, resolved.warnings, resolved.files)


def resolve(
    environment: Mapping[str, str],
    file: PathLike[str] | str | None,
    flags: Mapping[str, str],
    program: ProgramOptions = PROXY,
) -> Resolved:
    """Return what flags, environment and file say, with the problems instead of an error."""
    rows = program.rows
    resolved = Resolved({}, {}, _unknown_flags(flags, rows), [], {})
    tables = _tables(environment, file, resolved, program)
    given = {}
    # without what Kubernetes sets for services: one named `proxy` makes PROXY_PORT=tcp://…
    meant = {name: value for name, value in environment.items() if not is_injected(name, value)}
    for option in rows:
        entry = choose(option, candidates(option, meant, flags, tables), resolved)
        if entry is not None:
            given[option.name] = entry
    adopted = program.adopt(meant, given)
    given |= adopted.given
    resolved.problems.update(adopted.problems)
    written = [] if program.serves_flags else written_environments(meant, tables, resolved)
    lost = lost_options(rows, tables, resolved)
    every = given | followers(given, rows)
    found = normalise(every, environment, rows, divided=bool(written), lost=lost)
    resolved.values.update(found.values)
    resolved.problems.update({name: text for name, text in found.problems.items() if name not in resolved.problems})
    resolved.sources.update({option.name: _source(option, every) for option in rows if not option.in_code_only})
    quoted_values = quotation({option.name: option for option in rows}, given, resolved.problems)
    odd = list(program.odd(environment, found.values))
    all_known = not program.serves_flags and knows_environments(written, tables, resolved)
    unknown = unread(environment, written[0] if written else None, rows=rows, all_known=all_known)
    resolved.warnings.extend(chain(found.deprecations, adopted.warnings, unknown, quoted_values, odd))
    if written:
        add_environments(written, given, meant, tables, resolved)
    return resolved


def _source(option: Option, given: Mapping[str, Given]) -> str:
    entry = find_entry(option.name, given)
    return "default" if entry is None else entry.source


def _tables(
    environment: Mapping[str, str], file: PathLike[str] | str | None, resolved: Resolved, program: ProgramOptions
) -> Tables:
    """Return the content of the configuration file for a program."""
    named = (environment.get(variable, "").strip() for variable in CONFIG_VARIABLES)
    path = str(file or next((name for name in named if name), ""))
    if not path:
        return NO_TABLES
    source = f"file {printable(path, LONGEST_PATH)}"
    try:
        tree = _parse_toml(path, resolved.files)
        if program.serves_flags:
            tree, source = _servers(tree, needed=bool(file)), f"{source} [{SERVER_TABLE}]"
    except ValueError as error:
        resolved.problems[UNREADABLE] = f"configuration {source}: {error}"
        return Tables({}, source, "", NOTHING, complete=False)
    others = {key: value for key, value in tree.items() if key != SERVER_TABLE or not isinstance(value, dict)}
    environments, wrong = NOTHING, list[str]()
    if not program.serves_flags and TABLE in others:
        environments, wrong = read_tables(others.pop(TABLE), source)
    found, problems, meant = flatten(others, source, SERVER_SETTABLE if program.serves_flags else SETTABLE)
    resolved.problems.update({f"<key {number}>": text for number, text in enumerate((*problems, *wrong))})
    complete = all(key in HOLDS_TABLE or not isinstance(value, dict) for key, value in others.items())
    return Tables(found, source, _folder(path), environments, complete, meant)


def _servers(tree: dict[str, object], *, needed: bool) -> dict[str, object]:
    """Return the table of the flag server's options, which may be missing unless `needed`. Raises ValueError if there is none."""
    table = tree.get(SERVER_TABLE)
    if table is None and not needed:
        return {}
    if not isinstance(table, dict):
        raise ValueError(f"it has no table [{SERVER_TABLE}] with the flag server's options")
    return table


def _folder(path: str) -> str:
    """Return the folder that relative paths in a configuration file start from: the folder of the file, or "" for a pipe."""
    return os.path.dirname(os.path.abspath(path)) if os.path.isfile(path) else ""


def _parse_toml(path: str, files: Files) -> dict[str, object]:
    """Return the tables of a TOML file; raise ValueError with what is wrong with it."""
    import tomllib

    try:
        text = read_file(path, files).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read it: {reason(error)}") from None
    if any(key[1] for key in KEY.finditer(text)):
        raise ValueError(f"not TOML for options: a key has more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        raise ValueError(f"not TOML: {message[:1].lower()}{message[1:]}") from None
    except RecursionError:
        raise ValueError("not TOML: nested too deeply") from None
    except ValueError:
        raise ValueError("not TOML: a number is too long") from None


def _unknown_flags(flags: Mapping[str, str], rows: Iterable[Option]) -> dict[str, str]:
    """Return a problem for each flag that is given under a name no option has."""
    known = set(settable(rows))
    unknown = [name for name in flags if name not in known]
    return {f"<flag {name}>": f"unknown option {quoted(name)} (flag)" for name in unknown}
