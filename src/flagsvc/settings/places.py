"""The places where an option may be given, in their order of precedence, and the choice of the first that is.

Of each file that options are read from a fingerprint is kept, so that a running process can tell whether the file has changed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from stat import S_ISREG
from typing import Any, NamedTuple, TypeAlias

from flagsvc.core.files import MIB, read_bounded
from flagsvc.settings.environments import Written
from flagsvc.settings.kinds import is_blank, path_in, quoted
from flagsvc.settings.normalise import Given
from flagsvc.settings.option import FILE_FLAG, FILE_NAME, Option

LARGEST = 16 * MIB
"""The most bytes that are read of a file."""

Files: TypeAlias = dict[str, bytes | None]
"""Path → the fingerprint of the content. UNREAD: it could not be read. None: it can be read only once, such as a pipe."""

UNREAD = b""


def fingerprint(data: bytes) -> bytes:
    """Return a digest of the content of a file. The digest does not reveal the content."""
    return sha256(data).digest()


def read_file(path: str, files: Files) -> bytes:
    """Return the content of a file, and note its fingerprint in `files`.

    Raises OSError, also for more than LARGEST bytes, and ValueError if `path` is no path.
    """
    files[path] = UNREAD
    with open(path, "rb") as file:
        data = read_bounded(file, LARGEST)
        files[path] = fingerprint(data) if S_ISREG(os.fstat(file.fileno()).st_mode) else None
    return data


def look(path: str) -> bytes:
    """Return the fingerprint of the present content of a file. Only a regular file is opened."""
    try:
        if not os.path.isfile(path):
            return UNREAD
        with open(path, "rb") as file:
            return fingerprint(file.read(LARGEST))
    except (OSError, ValueError):
        return UNREAD


def special(path: str) -> bool:
    """Return whether the path names neither a file nor a folder but, for example, a pipe. Opening it could block for ever."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


LARGEST_SECRET = 65_536
"""The most characters of a file that holds a secret."""


class Resolved(NamedTuple):
    """What was found, valid or not: values and sources by option name, each problem under the name it is about.

    A refused value is replaced by its default. The name of a problem that concerns no option (UNREADABLE, an unknown key or
    flag) is in angle brackets. `files` holds all files that were tried, readable or not.
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
    """The content of a configuration file, or of a table in it.

    It has the values by option name, the name in messages, the folder that relative paths start from, and the tables of
    environments. It is not `complete` if the file, or a table in it that no option is in, could not be read. `meant` has the
    options that misspelt keys probably mean.
    """

    values: Mapping[str, object]
    source: str
    folder: str
    environments: Written
    complete: bool = True
    meant: Collection[str] = ()


NOTHING = Written({}, "")
"""No tables of environments."""
NO_TABLES = Tables({}, "", "", NOTHING)
"""The content of no file."""


def candidates(
    option: Option,
    environment: Mapping[str, str],
    flags: Mapping[str, str],
    file: Tables,
) -> Iterator[Candidate]:
    """Yield the places of one option in their order of precedence."""
    yield Candidate(flags.get(option.name), f"flag {option.flag}", "flag", False)
    yield Candidate(flags.get(option.name + FILE_NAME), f"flag {option.flag}{FILE_FLAG}", "flag", True)
    yield from of_variables(option, environment)
    yield from in_tables(option, file)


def of_variables(option: Option, environment: Mapping[str, str]) -> Iterator[Candidate]:
    """Yield the variables of one option in their order of precedence."""
    for variable, holds_path in option.variables:
        yield Candidate(environment.get(variable), f"environment {variable}", "environment", holds_path)


def in_tables(option: Option, file: Tables) -> Iterator[Candidate]:
    """Yield the places of one option in a file: the value itself, then the name of a file that holds it."""
    file_name = option.name + FILE_NAME
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
        raise ValueError(f"cannot read {shown}: {reason(error)}") from None
    if is_blank(text):
        raise ValueError(f"{shown} is empty")
    if len(text) > LARGEST_SECRET:
        raise ValueError(f"{shown} is longer than {LARGEST_SECRET} characters")
    return text.strip()


def _is_surely_a_path(text: str) -> bool:
    """Return whether `text` is a path in an existing folder other than the root. A secret given by mistake is not shown."""
    folder = os.path.dirname(text)
    return os.path.isabs(text) and os.path.isdir(folder) and os.path.realpath(folder).strip("/") != ""


def reason(error: Exception) -> str:
    """Return why a file could not be read, in lower case, without its content."""
    if isinstance(error, OSError):
        return (error.strerror or type(error).__name__).lower()
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else "it is not a valid path"
