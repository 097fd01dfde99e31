"""From flags, environment and file to `ProxyOptions`: precedence, provenance, every problem at once.

Flags win over the environment, the environment over the file, the file over the defaults. A value of nothing but
blanks is not given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.advice import advice_on, quotation
from flagsvc.settings.files import Files, read_file
from flagsvc.settings.foreign import foreign
from flagsvc.settings.kinds import is_blank, nearest, path_in, printable, quoted
from flagsvc.settings.names import SERVER_SETTABLE, SERVER_TABLE, SETTABLE, flatten, settable
from flagsvc.settings.normalise import Given, normalise
from flagsvc.settings.option import ALIAS, FILE_FLAG, FILE_NAME, PREFIX, Option, is_injected
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

if TYPE_CHECKING:
    from os import PathLike

CONFIG_VARIABLES = (f"{PREFIX}CONFIG", f"{ALIAS}CONFIG")
"""The variables that name the configuration file where no --config does."""

COMMAND_VARIABLES = tuple(f"{PREFIX}{side}_TOKEN{end}" for side in ("ADMIN", "FROM", "TO") for end in ("", "_FILE"))
"""Variables that no option reads. Commands that send requests to a flag server read them, so they give no warning."""

UNREADABLE = "<file>"
"""The key in `Resolved.problems` for a configuration file that cannot be read."""

LONGEST_PATH = 4096
"""The most characters of a path that a message shows. The end of a path says most, so the limit is higher than for a value."""

LARGEST_SECRET = 65_536
"""The most characters of a file that holds a secret."""


class Loaded(NamedTuple):
    """Valid options, where each came from (by option name), what to warn of, and the files that were read."""

    options: ProxyOptions
    sources: dict[str, str]
    warnings: list[str]
    files: Files


class Resolved(NamedTuple):
    """What was found, valid or not: values and sources by option name, each problem under the name it is about.

    A refused value is replaced by its default. The name of a problem that concerns no option (UNREADABLE, an unknown key or
    flag) is in angle brackets. `files` holds the files that were read, and those that could not be read.
    """

    values: dict[str, Any]
    sources: dict[str, str]
    problems: dict[str, str]
    warnings: list[str]
    files: Files


class Candidate(NamedTuple):
    """One place where an option may be given; `holds_path` when it names a file with the value."""

    value: object
    source: str
    layer: str
    holds_path: bool


class Tables(NamedTuple):
    """What a configuration file holds: values by option name, its name in messages, and the folder that its relative
    paths start from."""

    values: Mapping[str, object]
    source: str
    folder: str


class ProgramOptions(NamedTuple):
    """What one of the two programs reads: its options, whether they are in `[server]`, and its further warnings (`odd`)."""

    rows: tuple[Option, ...]
    serves_flags: bool
    odd: Callable[[Mapping[str, str], Mapping[str, Any]], Iterable[str]]


PROXY = ProgramOptions(OPTIONS, False, lambda environment, values: chain(foreign(environment), advice_on(values)))
SERVER = ProgramOptions(SERVER_OPTIONS, True, lambda environment, values: ())


def load(environment: Mapping[str, str], file: PathLike[str] | str | None, flags: Mapping[str, str]) -> Loaded:
    """Return the options of `flags` (by option name), `environment` and a TOML `file` (specification: Configuration).

    Raises `ConfigurationError` with every problem at once: none holds a secret.
    """
    return accepted(resolve(environment, file, flags))


def accepted(resolved: Resolved) -> Loaded:
    """Return the options of what was found; raise `ConfigurationError` with every problem at once."""
    refuse(resolved)
    return Loaded(ProxyOptions.of(resolved.values), resolved.sources, resolved.warnings, resolved.files)


def refuse(resolved: Resolved) -> None:
    """Raise `ConfigurationError` with every problem at once, where there is any."""
    if resolved.problems:
        raise ConfigurationError(tuple(resolved.problems.values()))


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
    meant = not_injected(environment)
    for option in rows:
        entry = choose(option, candidates(option, meant, flags, tables), resolved)
        if entry is not None:
            given[option.name] = entry
    found = normalise(given, environment, rows)
    resolved.values.update(found.values)
    resolved.problems.update({name: text for name, text in found.problems.items() if name not in resolved.problems})
    resolved.sources.update({option.name: _source(option, given) for option in rows if not option.in_code_only})
    quoted_values = quotation({option.name: option for option in rows}, given, resolved.problems)
    odd = program.odd(environment, found.values)
    resolved.warnings.extend(chain(found.deprecations, unread(environment), quoted_values, odd))
    return resolved


def _source(option: Option, given: Mapping[str, Given]) -> str:
    """Return where the value of an option came from."""
    if option.name == "clientKeys" and option.name not in given and "proxySecrets" in given:
        return given["proxySecrets"].source
    return given[option.name].source if option.name in given else "default"


def candidates(
    option: Option,
    environment: Mapping[str, str],
    flags: Mapping[str, str],
    file: Tables,
) -> Iterator[Candidate]:
    """Yield the places of one option in their order of precedence."""
    file_name = option.name + FILE_NAME
    yield Candidate(flags.get(option.name), f"flag {option.flag}", "flag", False)
    yield Candidate(flags.get(file_name), f"flag {option.flag}{FILE_FLAG}", "flag", True)
    for variable, holds_path in option.variables:
        yield Candidate(environment.get(variable), f"environment {variable}", "environment", holds_path)
    value, path = file.values.get(option.name), file.values.get(file_name)
    yield Candidate(option.kind.relative_to(value, file.folder), file.source, "file", False)
    yield Candidate(path_in(path, file.folder), f"{file.source}, {file_name}", "file", True)


def choose(option: Option, places: Iterable[Candidate], resolved: Resolved) -> Given | None:
    """Return the first value that is given. Warn if a file of the same layer is ignored."""
    filled = [place for place in places if not is_blank(place.value)]
    if not filled:
        return None
    first, *others = filled
    for other in others:
        if other.holds_path and other.layer == first.layer and not first.holds_path:
            resolved.warnings.append(f"{option.name} ({other.source}) is ignored: {first.source} is given")
    if not first.holds_path:
        return Given(first.value, first.source)
    try:
        return Given(_read_secret(first.value, resolved.files), first.source)
    except ValueError as error:
        resolved.problems[option.name] = f"{option.name} ({first.source}): {error}"
        return None


def _read_secret(path: object, files: Files) -> str:
    """Return the secret that a file holds. Raises ValueError with the reason if the file cannot be used."""
    if not isinstance(path, str):
        raise ValueError("expected the path of a file that holds the value")
    path = path.strip()
    shown = quoted(path) if _is_surely_a_path(path) else "the file it names"
    try:
        text = read_file(path, files).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {shown}: {_reason(error)}") from None
    if is_blank(text):
        raise ValueError(f"{shown} is empty")
    if len(text) > LARGEST_SECRET:
        raise ValueError(f"{shown} is longer than {LARGEST_SECRET} characters")
    return text.strip()


def _is_surely_a_path(text: str) -> bool:
    """Return whether `text` is a path in an existing folder other than the root. A secret given by mistake is not shown."""
    folder = os.path.dirname(text)
    return os.path.isabs(text) and os.path.isdir(folder) and os.path.realpath(folder).strip("/") != ""


def _reason(error: Exception) -> str:
    """Return why a file could not be read, in lower case, without its content."""
    if isinstance(error, OSError):
        return (error.strerror or type(error).__name__).lower()
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else "it is not a valid path"


def _tables(
    environment: Mapping[str, str], file: PathLike[str] | str | None, resolved: Resolved, program: ProgramOptions
) -> Tables:
    """Return the content of the configuration file for a program."""
    named = (environment.get(variable, "").strip() for variable in CONFIG_VARIABLES)
    path = str(file or next((name for name in named if name), ""))
    if not path:
        return Tables({}, "", "")
    source = f"file {printable(path, LONGEST_PATH)}"
    try:
        tree = _parse_toml(path, resolved.files)
        if program.serves_flags:
            tree, source = _servers(tree, needed=bool(file)), f"{source} [{SERVER_TABLE}]"
    except ValueError as error:
        resolved.problems[UNREADABLE] = f"configuration {source}: {error}"
        return Tables({}, source, "")
    others = {key: value for key, value in tree.items() if key != SERVER_TABLE or not isinstance(value, dict)}
    found, problems = flatten(others, source, SERVER_SETTABLE if program.serves_flags else SETTABLE)
    resolved.problems.update({f"<key {number}>": text for number, text in enumerate(problems)})
    return Tables(found, source, _folder(path))


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
        raise ValueError(f"cannot read it: {_reason(error)}") from None
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


def unread(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable with one of our prefixes that no option reads (behaviour: Names of variables).

    Variables of the flag server and of other commands give no warning, because all programs may share a file of variables.
    """
    rows = (*OPTIONS, *SERVER_OPTIONS)
    known = {variable.name for option in rows for variable in option.variables} | {
        *CONFIG_VARIABLES,
        *COMMAND_VARIABLES,
    }
    ours = (PREFIX, ALIAS)
    meant = {f"{prefix}{name}": name for name in known if not name.startswith(ours) for prefix in ours}
    meant |= {name: name for name in known}
    for name in sorted(environment):
        if name.startswith(ours) and name not in known and not is_injected(name, environment[name]):
            text = (
                f"environment {(quoted(name) or '').strip('`')}: no option reads this variable; {nearest(name, meant)}"
            )
            yield text.removesuffix("; ")


def not_injected(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what Kubernetes sets for services: one named `proxy` makes PROXY_PORT=tcp://…."""
    return {name: value for name, value in environment.items() if not is_injected(name, value)}
