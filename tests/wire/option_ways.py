"""Every way an option can be given, and the rows that say what each option does.

A row gives one option one value; `given` makes options of it by one of its ways, through the loader the command uses.
"""

from __future__ import annotations

import json
import ssl
import warnings
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from flagsvc import ConfigurationError, ProxyOptions
from flagsvc.cli.programs import add_proxy_arguments
from flagsvc.settings.load import load
from flagsvc.settings.render import given_flags
from flagsvc.settings.table import BY_NAME, OPTIONS
from support.pki import Authority
from support.scene import KEY, TOKEN, Scene

Observe = Callable[[Scene, ProxyOptions], Awaitable[object]]
"""Runs a proxy with these options and returns what is seen from outside."""

DEFAULT, DEFAULT_IN_CODE = "default", "default in code"
FILE, SECRET_FILE, FLAG, SECRET_FLAG, CODE = "file", "file that names a file", "flag", "flag that names a file", "code"

AUTHORITY = Authority()
STRANGER = Authority()
"""An authority that no option names."""
PASSWORD = "open-sesame"


def certificates() -> dict[str, str]:
    """Return the files of a certificate of AUTHORITY: `locked.pem` is the key, encrypted with PASSWORD."""
    pair = AUTHORITY.issue()
    files = {"both.pem": pair.both, "cert.pem": pair.cert, "key.pem": pair.key, "ca.pem": AUTHORITY.pem}
    return files | {"locked.pem": pair.locked(PASSWORD)}


CERTIFICATES = certificates()
BY_FIELD = {option.field: option for option in OPTIONS}
USUAL: Mapping[str, str] = {"flagsvcUrl": "{upstream}/api", "flagsvcApiToken": TOKEN, "clientKeys": KEY, "storage": "none"}
"""What every proxy is given beside the option in question, by option name."""


@dataclass(frozen=True)
class Row:
    """One option with one value: how it is written, what is seen then, and what is seen when the option is not given.

    `text` is the value in a variable or flag; a function makes what only code can give. A TOML file and code take `native`: without
    it the number or the switch that the text stands for, or the text. In each of them `{upstream}`, `{other}`, `{folder}` and
    `{port}` stand for what a scene has. `beside` is given as well in both cases, and `without` is not; `files` are in the folder,
    beside CERTIFICATES. The upstream serves `features`, over TLS where `tls` has its settings.
    """

    name: str
    text: str | Callable[[Scene], object]
    look: Observe
    seen: object
    unset: object
    native: object = None
    tls: ssl.SSLContext | None = None
    features: tuple[dict[str, Any], ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def written(self) -> str:
        """The text; empty for what only code can give."""
        return self.text if isinstance(self.text, str) else ""

    @property
    def value(self) -> object:
        """The value in a TOML file and in code."""
        default = BY_NAME[self.name].default
        if self.native is not None:
            return self.native
        if isinstance(default, bool):
            return not default
        return int(self.written) if isinstance(default, int) and self.written.isdecimal() else self.written

    def ways(self) -> Iterator[str]:
        """Give the name of each way to give this value; a variable's is its own name. What only code can make has one way."""
        option = BY_NAME[self.name]
        if self.written and not option.in_code_only:
            yield from (variable.name for variable in option.variables)
            yield from (FILE, FLAG)
            if option.secret:
                yield from (SECRET_FILE, SECRET_FLAG)
        yield CODE


def fill(value: Any, scene: Scene, port: int) -> Any:
    """Return a value with its placeholders replaced, also inside lists and mappings."""
    if isinstance(value, str):
        places = {"{upstream}": scene.upstream.url, "{other}": scene.other.url, "{folder}": str(scene.folder), "{port}": str(port)}
        for place, found in places.items():
            value = value.replace(place, found)
    elif isinstance(value, list):
        return [fill(item, scene, port) for item in value]
    elif isinstance(value, dict):
        return {name: fill(item, scene, port) for name, item in value.items()}
    return value


def given(row: Row, way: str, scene: Scene, port: int = 0) -> ProxyOptions:
    """Return the options that a row gives by one way, beside the usual ones. Raises ConfigurationError."""
    others = {**USUAL, **row.beside}
    others = {
        name: fill(text, scene, port) for name, text in others.items() if name not in (row.name, *row.without) or name in row.beside
    }
    if way in (CODE, DEFAULT_IN_CODE):
        return in_code(row, way, scene, others, port)
    environment = {BY_NAME[name].reads[0]: text for name, text in others.items()}
    environment |= {"HOME": str(scene.folder), "XDG_STATE_HOME": str(scene.folder / "xdg")}
    text = fill(row.written, scene, port)
    if way == DEFAULT:
        return load(environment, None, {}).options
    if way in (FILE, SECRET_FILE):
        return load(environment, toml(row, way, scene, port), {}).options
    if way in (FLAG, SECRET_FLAG):
        return load(environment, None, flags(row, way, text, scene)).options
    value = secret_file(scene, text) if BY_NAME[row.name].secret and way.endswith("_FILE") else text
    return load(environment | {way: value}, None, {}).options


def toml(row: Row, way: str, scene: Scene, port: int) -> str:
    """Write a configuration file with the row's option, and return its path."""
    value = fill(row.value, scene, port)
    key = row.name
    if way == SECRET_FILE:
        key, value = f"{row.name}File", secret_file(scene, fill(row.written, scene, port))
    path = scene.folder / "flagsvc.toml"
    path.write_text(f"{key} = {json.dumps(value)}\n")
    return str(path)


def flags(row: Row, way: str, text: str, scene: Scene) -> dict[str, str]:
    """Return the command's arguments for the row's flag."""
    flag = BY_NAME[row.name].flag
    words = [f"{flag}={text}"] if way == FLAG else [f"{flag}-file", secret_file(scene, text)]
    parser = ArgumentParser()
    add_proxy_arguments(parser)
    return given_flags(vars(parser.parse_args(words)))


def secret_file(scene: Scene, text: str) -> str:
    """Write a secret to a file of its own, and return the path."""
    path = scene.folder / "secret.txt"
    path.write_text(f"{text}\n")
    return str(path)


def in_code(row: Row, way: str, scene: Scene, others: Mapping[str, str], port: int) -> ProxyOptions:
    """Return options made in code; defaults that depend on the machine find the scene's folder."""
    values: dict[str, Any] = {BY_NAME[name].field: text for name, text in others.items()}
    if way == CODE:
        value = row.text(scene) if callable(row.text) else fill(row.value, scene, port)
        values[BY_NAME[row.name].field] = value
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # proxySecrets
        patch.setenv("XDG_STATE_HOME", str(scene.folder / "xdg"))
        return ProxyOptions(**cast("Any", values))


def refused(*names: str) -> tuple[str, ...]:
    """Return the names of the refused options."""
    return ("refused", *names)


def named_in(error: ConfigurationError) -> tuple[str, ...]:
    """Return the names of the options that an error is about."""
    first = [problem.split()[0].rstrip(":") for problem in error.problems]
    return refused(*(BY_FIELD[word].name if word in BY_FIELD else word for word in first))
