"""The command line of Unleash Edge as its variables: global options, the subcommand and its options."""

from __future__ import annotations

import os.path
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from flagsvc.settings.edge import BY_VARIABLE, EdgeVariable, Takes
from flagsvc.settings.kinds import printable

EDGE, OFFLINE = "edge", "offline"
PROBES = ("health", "ready")
SUBCOMMANDS = (EDGE, OFFLINE, *PROBES)
PROGRAM = "unleash-edge"

EVERYWHERE = {"i": "INTERFACE", "a": "APP_NAME", "w": "WORKERS", "l": "LOG_FORMAT"}
SHORT = {
    "": {**EVERYWHERE, "p": "PORT", "b": "BASE_PATH"},
    EDGE: {
        **EVERYWHERE,
        "u": "UPSTREAM_URL",
        "b": "BACKUP_FOLDER",
        "m": "METRICS_INTERVAL_SECONDS",
        "f": "FEATURES_REFRESH_INTERVAL_SECONDS",
        "t": "TOKENS",
        "p": "PRETRUSTED_TOKENS",
        "H": "CUSTOM_CLIENT_HEADERS",
        "s": "SKIP_SSL_VERIFICATION",
    },
    OFFLINE: {
        **EVERYWHERE,
        "b": "BOOTSTRAP_FILE",
        "t": "TOKENS",
        "c": "CLIENT_TOKENS",
        "f": "FRONTEND_TOKENS",
        "r": "RELOAD_INTERVAL",
    },
    **{probe: {**EVERYWHERE, "e": "EDGE_URL", "c": "CA_CERTIFICATE_FILE"} for probe in PROBES},
}
"""Subcommand, empty before it → the letters of its options, and their variables."""


class EdgeCommand(NamedTuple):
    """What a command line says: the subcommand, empty if there is none, its variables, and the flags that Edge does not have.

    `stray` is the number of words that belong to nothing.
    """

    subcommand: str
    variables: dict[str, str]
    unknown: tuple[str, ...] = ()
    stray: int = 0


def is_edge_command(words: Sequence[str]) -> bool:
    """Return whether a command line is that of Edge: it has the name of the program, or one of its subcommands."""
    return any(is_program(word) or word in SUBCOMMANDS for word in words)


def read_edge_command(words: Sequence[str]) -> EdgeCommand:
    """Return what a command line of Edge says. The program's name may stand before it, and what starts it."""
    programs = [number for number, word in enumerate(words) if is_program(word)]
    rest = deque(words[programs[-1] + 1 :] if programs else words)
    reader = _CommandReader()
    while rest:
        reader.take(rest)
    variables = {name: ",".join(values) for name, values in reader.variables.items()}
    return EdgeCommand(reader.subcommand, variables, tuple(dict.fromkeys(reader.unknown)), reader.stray)


def is_program(word: str) -> bool:
    """Return whether a word of a command line is the program of Edge."""
    return os.path.basename(word) == PROGRAM


class _CommandReader:
    """Collects what the words say."""

    def __init__(self) -> None:
        self.subcommand = ""
        self.variables: dict[str, list[str]] = {}
        self.unknown: list[str] = []
        self.stray = 0

    def take(self, rest: deque[str]) -> None:
        """Read the next word, and the one behind it that is its value. Both are removed from `rest`."""
        word = rest.popleft()
        if word in SUBCOMMANDS and not self.subcommand:
            self.subcommand = word
        elif word.startswith("--"):
            flag, equals, value = word.partition("=")
            self._set(BY_VARIABLE.get(flag[2:].upper().replace("-", "_")), flag, value if equals else None, rest)
        elif word.startswith("-") and len(word) > 1:
            row = BY_VARIABLE.get(SHORT[self.subcommand].get(word[1], ""))
            self._set(row, word[:2], word[2:].removeprefix("=") or None, rest)
        else:
            self.stray += 1

    def _set(self, row: EdgeVariable | None, flag: str, value: str | None, rest: deque[str]) -> None:
        """Keep the value of a flag: the one attached to it, or the next word unless the flag is a switch."""
        if row is None:
            self.unknown.append(printable(flag))
        if row is not None and row.takes is Takes.NOTHING:
            self.variables[row.name] = [value or "true"]
            return
        if value is None and rest and not rest[0].startswith("--") and rest[0] not in SUBCOMMANDS:
            value = rest.popleft()
        if row is not None and value is not None:
            before = self.variables.get(row.name, []) if row.takes is Takes.LIST else []
            self.variables[row.name] = before
            before.append(value)
