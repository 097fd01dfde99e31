"""Files of flag data: a data set (`features`, `featureStrategies`, …) or a whole request (`project`, `environment`, `data`)."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flagsvc.cli.documents import from_file
from flagsvc.core.errors import ConfigurationError, StoreError
from flagsvc.settings.kinds import printable

FORMATS = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}
"""Suffix → format."""


@dataclass(frozen=True)
class FlagFile:
    """What a file holds: the whole object, and whether that is a bare data set."""

    value: dict[str, Any]
    bare: bool

    def request(self, project: str | None, environment: str | None) -> dict[str, Any]:
        """Return the request to send; what is given wins over what the file says.

        Raises ConfigurationError where neither names project and environment.
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
    """Return what a file, or standard input for `-`, holds, as JSON or YAML.

    Raises ConfigurationError when it cannot be read, is neither, or holds something else.
    """
    name = "standard input" if where == "-" else printable(where, 300)
    content = sys.stdin.buffer.read() if where == "-" else from_file(where)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigurationError([f"`{name}` is not UTF-8: line {line} holds a byte that is none"]) from None
    kind = format_ or FORMATS.get(Path(where).suffix.lower()) or guessed(text)
    return recognised(read_json(text, name) if kind == "json" else read_as_yaml(text, name), name)


def guessed(text: str) -> str:
    """Return the format of a text with no suffix: JSON begins with a bracket."""
    return "json" if text.lstrip()[:1] in ("{", "[", "") else "yaml"


def read_as_yaml(text: str, name: str) -> object:
    """Return the value of a YAML text; YAML is imported only where a file is in it."""
    from flagsvc.cli.batch.yamls import read_yaml

    return read_yaml(text, name)


def read_json(text: str, name: str) -> object:
    """Return the value of a JSON text."""
    if not text.strip():
        raise ConfigurationError([f"`{name}` is empty"])
    try:
        return json.loads(text, parse_constant=number, parse_float=number)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigurationError([f"`{name}` is not JSON: {error.msg.lower()} at {place}"]) from None
    except ValueError as error:
        raise ConfigurationError([f"`{name}` is not JSON: {number_trouble(error)}"]) from None
    except RecursionError:
        raise ConfigurationError([f"`{name}` is not JSON: nested too deeply"]) from None


def number(word: str) -> float:
    """Return a number with a fraction or exponent; NaN, Infinity and what is as large as that are no JSON numbers."""
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"`{word}` is no JSON number")
    return value


def number_trouble(error: ValueError) -> str:
    """Return what is wrong with a number."""
    return str(error) if "JSON number" in str(error) else "a number has too many digits"


def recognised(value: object, name: str) -> FlagFile:
    """Return what a file holds; raises ConfigurationError when it is neither a data set nor a request."""
    if isinstance(value, dict) and "data" in value:
        return FlagFile(value, bare=False)
    if isinstance(value, dict) and "features" in value and "version" not in value:
        return FlagFile(value, bare=True)
    if isinstance(value, dict) and "features" in value:
        text = "is a client-features document, which SDKs and proxies read; `flagsvc export` gives a data set"
        raise ConfigurationError([f"`{name}` {text}"])
    text = (
        "holds neither a data set (features, featureStrategies, tagTypes, …) nor a request (project, environment, data)"
    )
    raise ConfigurationError([f"`{name}` {text}"])


def written(value: object, kind: str) -> bytes:
    """Return a value as a text file of JSON or YAML."""
    if kind == "yaml":
        from flagsvc.cli.batch.yamls import write_yaml

        return write_yaml(value).encode("utf-8", "backslashreplace")
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return f"{json.dumps(value, indent=2)}\n".encode()


def refuse_existing(path: str, *, force: bool) -> None:
    """Raise ConfigurationError where a file of that name exists and may not be replaced, or its folder does not."""
    target = Path(path)
    if target.is_dir():
        raise ConfigurationError([f"`{printable(path, 300)}` is a folder"])
    if not target.resolve().parent.is_dir():
        raise ConfigurationError([f"the folder of `{printable(path, 300)}` does not exist"])
    if target.is_file() and not force:
        raise ConfigurationError([f"`{printable(path, 300)}` exists: --force replaces it"])


def write_whole(path: str, content: bytes, *, force: bool) -> None:
    """Write a file so that nobody ever sees a part of it; raises StoreError, and ConfigurationError where it came to exist."""
    target = Path(path).resolve()
    try:
        if target.exists() and not target.is_file():  # a pipe, a device
            target.write_bytes(content)
            return
        _replace(target, content, force=force)
    except FileExistsError:
        refuse_existing(path, force=False)
        raise
    except OSError as error:
        reason = (error.strerror or "failed").lower()
        raise StoreError(f"cannot write `{printable(path, 300)}`: {reason}") from None


def _replace(target: Path, content: bytes, *, force: bool) -> None:
    """Write beside the target, then give that file its name."""
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if force and target.exists():
            shutil.copymode(target, beside)
        if force:
            beside.replace(target)
        else:
            os.link(beside, target)  # fails where the name is taken by now
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
