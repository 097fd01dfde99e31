"""The services of a compose file: their variables, command lines and ports, with `${NAME:-default}` replaced."""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from flagsvc.cli.documents import read_text
from flagsvc.cli.migrating import env_files
from flagsvc.cli.migrating.env_files import Lookup, Meter, fill, parse_env
from flagsvc.core.errors import ConfigurationError
from flagsvc.core.files import MIB
from flagsvc.settings.kinds import printable

Tree: TypeAlias = Mapping[str, object]

LARGEST, MOST_ADDED = 16 * MIB, 4 * MIB
"""The most bytes of a compose file, and the most characters of its env files and of its variables' values together."""
PER_FILE = 1024
"""The characters that an env file counts for beside its own."""
LONGEST_COMMAND = 128 * 1024
"""The most characters of a text that is split as a shell does. Linux has the same bound, and `shlex` needs quadratic time."""
SHELL_FLAGS = ("-c", "-ec", "-lc")
PORT = re.compile(r"(?:^|:)(\d{1,5})(?:/\w+)?$")


@dataclass
class Service:
    """A service of a compose file, or a container. `odd` are texts about parts of it that could not be read.

    `missing` are variables without a value. `references` are variables whose value stands elsewhere, and where. `error` says which
    of its files cannot be read.
    """

    name: str
    kind: str = "service"
    image: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    health: str = ""
    odd: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    references: dict[str, str] = field(default_factory=dict)
    error: ConfigurationError | None = None

    def split(self, key: str, text: str) -> list[str]:
        """Return the words of a text, as a shell splits it. What cannot be split is odd."""
        if len(text) > LONGEST_COMMAND:
            self.odd.append(f"`{key}` has more than {LONGEST_COMMAND} characters")
            return []
        try:
            return shlex.split(text)
        except ValueError:
            self.odd.append(f"`{key}` has a quotation mark without its other half")
            return []

    def in_shell(self, key: str, words: list[str], meter: Meter) -> list[str]:
        """Return the words of a command, or those of the text of its `sh -c`, which gets variables."""
        if len(words) > 2 and words[1] in SHELL_FLAGS:
            return self.split(key, fill(words[2], meter.metered(self.variables.get)).text)
        return words


def read_services(text: str, where: str, lookup: Lookup) -> list[Service]:
    """Return the services of the text of a compose file. Raises ConfigurationError if it is no such file.

    `lookup` returns the value of a variable for `${…}`. Paths of env files start at the folder of `where`.
    """
    from flagsvc.cli.batch.yaml_files import read_yaml

    shown = printable(where, 300)
    tree = read_yaml(text, shown)
    services = tree.get("services") if isinstance(tree, dict) else None
    if not isinstance(services, dict) or not services:
        raise ConfigurationError([f"`{shown}` is no compose file: it has no `services`"])
    folder, meter = os.path.dirname(where), Meter(shown, MOST_ADDED)
    return [_ServiceReader(name, body, folder, lookup, meter).read() for name, body in services.items() if is_tree(body)]


def is_tree(value: object) -> bool:
    return isinstance(value, dict)


def scalar_text(value: object) -> str:
    """Return a scalar as text; the empty text for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""


class _ServiceReader:
    """Reads one service."""

    def __init__(self, name: str, body: Tree, folder: str, lookup: Lookup, meter: Meter) -> None:
        self._service = Service(printable(name))
        self._body = body
        self._folder = folder
        self._meter = meter
        self._lookup = meter.metered(lookup)

    def read(self) -> Service:
        """Return the service."""
        service, body = self._service, self._body
        service.image = self._text(body.get("image"))
        try:
            for path, raw in self._env_files():
                self._read_env_file(path, raw)
        except ConfigurationError as error:
            service.error = ConfigurationError([f"service `{service.name}`: {each}" for each in error.problems])
        service.variables |= dict(self._environment())
        service.words = [*self._words("entrypoint"), *self._words("command")]
        service.ports = list(self._ports())
        check = body.get("healthcheck")
        service.health = " ".join(self._list(check.get("test"))) if isinstance(check, dict) else ""
        if "extends" in body:
            service.odd.append("`extends` is not followed: name the file and the service that it extends, too")
        return service

    def _text(self, value: object) -> str:
        """Return a scalar as text, with its variables replaced; the empty text for anything else."""
        if not isinstance(value, str):
            return scalar_text(value)
        filled = fill(value, self._lookup)
        self._service.missing += filled.missing
        return filled.text

    def _list(self, value: object) -> list[str]:
        """Return the texts of a list, or of one scalar."""
        return [self._text(item) for item in value] if isinstance(value, list) else [self._text(value)]

    def _environment(self) -> Iterator[tuple[str, str]]:
        """Yield the variables, given as a mapping or as `NAME=value` in a list. A variable without a value takes the caller's."""
        given = self._body.get("environment")
        pairs: list[tuple[str, object]] = []
        if isinstance(given, dict):
            pairs = list(given.items())
        elif isinstance(given, list):
            parts = [str(item).partition("=") for item in given if isinstance(item, str)]
            pairs = [(name, value if equals else None) for name, equals, value in parts]
        elif given is not None:
            self._service.odd.append("`environment` is neither a mapping nor a list")
        for name, value in pairs:
            text = self._lookup(name) if value is None else self._text(value)
            if text is not None:
                yield name, text

    def _env_files(self) -> Iterator[tuple[str, bool]]:
        """Yield the paths of env files, and whether their values are taken as they are."""
        given = self._body.get("env_file")
        for item in given if isinstance(given, list) else [given]:
            entry = item if isinstance(item, dict) else {"path": item}
            path = self._text(entry.get("path"))
            whole = os.path.join(self._folder, path)
            if path and (entry.get("required") is not False or os.path.exists(whole)):
                yield whole, entry.get("format") == "raw"

    def _read_env_file(self, path: str, raw: bool) -> None:
        text, shown = read_text(path, env_files.LARGEST, pipes=False), printable(path, 300)
        self._meter.count(PER_FILE + len(text), path)
        found = parse_env(text, self._lookup, shown, raw=raw)
        self._service.variables |= found.values
        self._service.missing += found.missing
        self._service.odd += [f"line {number} of `{shown}` is no `NAME=value`" for number in found.odd_lines]

    def _words(self, key: str) -> list[str]:
        """Return the words of `command` or `entrypoint`. A text is split as a shell does; that of `sh -c` gets variables, too."""
        given = self._body.get(key)
        service = self._service
        words = self._list(given) if isinstance(given, list) else service.split(key, self._text(given))
        return service.in_shell(key, words, self._meter)

    def _ports(self) -> Iterator[int]:
        """Yield the ports of the container that are published."""
        given = self._body.get("ports")
        for item in given if isinstance(given, list) else []:
            text = self._text(item.get("target") if isinstance(item, dict) else item)
            if found := PORT.search(text):
                yield int(found[1])
