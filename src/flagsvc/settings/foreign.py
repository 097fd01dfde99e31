"""Warnings about variables of Unleash Edge, of a real server and of Node.js that a new user may set, with what replaces them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from flagsvc.settings.edge import ROWS, Fate, hint
from flagsvc.settings.kinds import is_blank
from flagsvc.settings.option import is_injected
from flagsvc.settings.real_server import ROWS as REAL_ROWS
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS


class Foreign(NamedTuple):
    """What to do about a variable of another program. There is no warning if a variable of `instead` has the same value.

    Many programs use a `common` name. It gives a warning only if a variable that only Edge uses is set, too.
    """

    hint: str
    common: bool = False
    instead: tuple[str, ...] = ()


AUTHORITIES = ("FLAGSVC_UPSTREAM_CA", "UNLEASH_UPSTREAM_CA", "SSL_CERT_FILE")
MIGRATE = "environment: `flagsvc migrate` translates the variables of Unleash Edge, all at once"
SHARED = ("PORT", "LOG_LEVEL", "DATABASE_URL", "DATABASE_URL_FILE")
"""Variables of a real server that are also ours: they tell nothing about where the environment comes from."""
OURS = frozenset(variable.name for option in (*OPTIONS, *SERVER_OPTIONS) for variable in option.variables)

FOREIGN: dict[str, Foreign] = {
    **{row.name: Foreign(hint(row), row.common) for row in ROWS if row.name not in OURS},
    "NODE_EXTRA_CA_CERTS": Foreign(
        "use FLAGSVC_UPSTREAM_CA, or SSL_CERT_FILE in place of the system's", instead=AUTHORITIES
    ),
}
"""Variable → what to do about it. A value is never shown: it may be a token."""


def foreign(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable of another program that was probably meant for the proxy; the last one has a way out."""
    there = {
        name: FOREIGN[name]
        for name, value in sorted(environment.items())
        if name in FOREIGN and not is_blank(value) and not is_injected(name, value)
    }
    edge = any(not row.common and not row.instead for row in there.values())
    for name, row in there.items():
        told = any(environment.get(other) == environment[name] for other in row.instead)
        if (edge or not row.common) and not told:
            yield f"environment {name}: flagsvc does not read it; {row.hint}"
    if edge:
        yield MIGRATE


def foreign_to_server(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable of a real Unleash server that the flag server does not take."""
    there = [
        row
        for row in REAL_ROWS
        if not is_blank(value := environment.get(row.name, "")) and not is_injected(row.name, value)
    ]
    if all(row.common or row.name in SHARED for row in there):
        return
    for row in there:
        if row.fate in (Fate.ABSENT, Fate.NEEDLESS) and environment[row.name].strip().lower() not in row.quiet:
            yield f"environment {row.name}: not taken: {row.here}"
