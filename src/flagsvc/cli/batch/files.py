"""Files of flag data: a data set (`features`, `featureStrategies`, …) or a whole request (`project`, `environment`, `data`).

A number of a JSON file may stand where a text belongs. A server takes the number 1.10 for the text `1.1`, so a constraint would
name another version: that is an error here.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from flagsvc.cli.documents import NumberError, load_json, read_file, read_input
from flagsvc.core.errors import ConfigurationError, StoreError
from flagsvc.core.state_export import about_state_export
from flagsvc.http.json_text import deeper
from flagsvc.http.shapes import Object, Schema, Shape
from flagsvc.http.shapes.places import Places, is_canonical, takes_text
from flagsvc.http.shapes.shape import bare
from flagsvc.settings.kinds import printable

FORMATS = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}
"""Suffix → format."""
MAX_DEPTH = 100
"""The most levels of a data set, so that it can be copied and searched. YAML has the same bound."""


@dataclass(frozen=True)
class FlagFile:
    """The content of a file: the whole object, and whether it is only a data set."""

    value: dict[str, Any]
    bare: bool

    def request(self, project: str | None, environment: str | None) -> dict[str, Any]:
        """Return the request to send; the arguments take precedence over the file.

        Raises ConfigurationError if neither names project and environment.
        """
        own = {"data": self.value} if self.bare else self.value
        given = {"project": project, "environment": environment}
        merged = own | {key: value for key, value in given.items() if value is not None}
        missing = [key for key in given if key not in merged]
        if missing:
            names = " and ".join(f"--{key}" for key in missing)
            raise ConfigurationError([f"{names} missing: the file holds a data set alone, which says nothing of it"])
        return {key: merged[key] for key in ("project", "environment")} | merged


def read_flags(where: str, format_: str | None = None) -> FlagFile:
    """Read a file, or standard input for `-`, as JSON or YAML.

    Raises ConfigurationError when it cannot be read or parsed, or contains something else.
    """
    name = "standard input" if where == "-" else printable(where, 300)
    content = read_input() if where == "-" else read_file(where)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigurationError([f"`{name}` is not UTF-8: line {line} holds a byte that is none"]) from None
    kind = format_ or FORMATS.get(Path(where).suffix.lower()) or guess_format(text)
    return recognize_file(read_json(text, name) if kind == "json" else read_as_yaml(text, name), name)


def guess_format(text: str) -> str:
    """Return the format of a text without a suffix: JSON begins with a bracket."""
    return "json" if text.lstrip()[:1] in ("{", "[", "") else "yaml"


def read_as_yaml(text: str, name: str) -> object:
    """Return the value of a YAML text; the YAML library is imported only here."""
    from flagsvc.cli.batch.yaml_files import read_yaml
    from flagsvc.http.yaml_texts import keep_texts

    return read_yaml(text, name, keep_texts(shape_of_file()))


def shape_of_file() -> Shape:
    """Return the shape of a data set and of a whole request in one."""
    from flagsvc.server.shapes.batch import EXPORT_RESULT, IMPORT

    parts = (bare(IMPORT), bare(EXPORT_RESULT))
    return Object({name: each for part in parts if isinstance(part, Object) for name, each in part.properties.items()})


def read_json(text: str, name: str) -> object:
    """Return the value of a JSON text."""
    if not text.strip():
        raise ConfigurationError([f"`{name}` is empty"])
    value = load_json(text, name, parse_number)
    if deeper(value, MAX_DEPTH):
        raise ConfigurationError([f"`{name}` is nested too deeply: more than {MAX_DEPTH} levels"])
    for word, line in lost_texts(text, shape_of_file()):
        problem = f"has the number `{printable(word)}` where a text belongs, at line {line}"
        raise ConfigurationError([f'`{name}` {problem}: write `"{printable(word)}"`'])
    return value


def parse_number(word: str) -> float:
    """Return a number with a fraction or exponent. NaN, Infinity and overflowing numbers are not JSON: raises NumberError."""
    value = float(word)
    if not math.isfinite(value):
        raise NumberError(f"`{word}` is no JSON number")
    return value


def recognize_file(value: object, name: str) -> FlagFile:
    """Return a value as a flag file; raises ConfigurationError when it is neither a data set nor a request."""
    if about := about_state_export(value):
        raise ConfigurationError([f"`{name}` {about}"])
    if isinstance(value, dict) and "data" in value:
        return FlagFile(value, bare=False)
    if isinstance(value, dict) and "features" in value and "version" not in value:
        return FlagFile(value, bare=True)
    if isinstance(value, dict) and "features" in value:
        text = "is a client-features document, which SDKs and proxies read; `flagsvc export` gives a data set"
        raise ConfigurationError([f"`{name}` {text}"])
    text = "holds neither a data set (features, featureStrategies, tagTypes, …) nor a request (project, environment, data)"
    raise ConfigurationError([f"`{name}` {text}"])


def encode_file(value: object, kind: str) -> bytes:
    """Return the bytes of a JSON or YAML file with a value."""
    if kind == "yaml":
        from flagsvc.cli.batch.yaml_files import write_yaml

        return write_yaml(value).encode("utf-8", "backslashreplace")
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return f"{json.dumps(value, indent=2)}\n".encode()


def check_writable(path: str, *, force: bool) -> None:
    """Raise ConfigurationError if a file exists and must not be replaced, or its folder does not exist."""
    target = Path(path)
    if target.is_dir():
        raise ConfigurationError([f"`{printable(path, 300)}` is a folder"])
    if not target.resolve().parent.is_dir():
        raise ConfigurationError([f"the folder of `{printable(path, 300)}` does not exist"])
    if target.is_file() and not force:
        raise ConfigurationError([f"`{printable(path, 300)}` exists: --force replaces it"])


def write_output(content: bytes, path: str | None, *, force: bool, mode: int | None = None) -> None:
    """Write a result to its file, as `open_atomically` does, or to standard output."""
    if path:
        with open_atomically(path, force=force, mode=mode) as file:
            file.write(content)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def open_atomically(path: str, *, force: bool, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a file to write that appears as a whole at the end of the block, or not at all.

    The file gets `mode`. Without one, it has the mode of the file that it replaces, or the usual one. Raises StoreError, and
    ConfigurationError if the file was created meanwhile.
    """
    target = Path(path).resolve()
    try:
        if target.exists() and not target.is_file():  # a pipe, a device
            with target.open("wb") as file:
                yield file
        else:
            with _beside(target, force=force, mode=mode) as file:
                yield file
    except FileExistsError:
        check_writable(path, force=False)
        raise
    except OSError as error:
        reason = (error.strerror or "failed").lower()
        raise StoreError(f"cannot write `{printable(path, 300)}`: {reason}") from None


@contextlib.contextmanager
def _beside(target: Path, *, force: bool, mode: int | None) -> Iterator[BinaryIO]:
    """Open a temporary file beside the target; rename it at the end of the block."""
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(beside, flags, 0o666 if mode is None else mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if force and mode is None and target.exists():
            shutil.copymode(target, beside)
        if force:
            beside.replace(target)
        else:
            os.link(beside, target)  # fails if the name was taken meanwhile
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*')
"""A text or a number of JSON."""


class Number(NamedTuple):
    """A number as written, and how many are before it in the file."""

    word: str
    before: int


def lost_texts(text: str, shape: Shape) -> Iterator[tuple[str, int]]:
    """Yield each number that a server would take for another text, with its line. `text` is JSON."""
    odd = False
    before = count()

    def mark(word: str) -> Number:
        nonlocal odd
        odd = odd or not is_canonical(word)
        return Number(word, next(before))

    value = json.loads(text, parse_float=mark, parse_int=mark)
    pending: list[tuple[object, Schema | None]] = [(value, shape.schema())] if odd else []
    places = Places(shape)
    while pending:
        each, schema = pending.pop()
        found = places.resolve(schema)
        if isinstance(each, Number):
            if found is not None and takes_text(found) and not is_canonical(each.word):
                yield each.word, line_of(text, each)
        elif isinstance(each, dict):
            pending += [(held, places.member(found, key)) for key, held in each.items()]
        elif isinstance(each, list):
            pending += [(held, places.member(found, None)) for held in each]


def line_of(text: str, number: Number) -> int:
    numbers = (found for found in TOKEN.finditer(text) if not found[0].startswith('"'))
    return text.count("\n", 0, next(islice(numbers, number.before, None)).start()) + 1
