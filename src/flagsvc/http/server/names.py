"""What each header name means: the kinds the contract reads, and those that concern the connection. Compiled."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

CONNECTION: Final = 101
EXPECT: Final = 102
UPGRADE: Final = 103
HOST: Final = 104

OURS: Final[dict[bytes, int]] = {b"connection": CONNECTION, b"expect": EXPECT, b"upgrade": UPGRADE, b"host": HOST}
"""The headers that only a transport reads."""

MOST: Final = 512
"""Spellings that are remembered at most."""
LONGEST: Final = 64
"""Bytes of a spelling that is remembered; together these bound what callers can make the process keep."""


class Names:
    """Header names, however they are spelt, and their kinds; 0 stands for what nobody reads.

    `contract` has the kinds of the headers the contract reads, by lower-case name.
    """

    def __init__(self, contract: dict[bytes, int]) -> None:
        self.kinds: dict[bytes, int] = {**OURS, **contract}
        self.known: dict[bytes, int] = dict(self.kinds)
        self.host: bytes = b""
        """The last good value of a Host: most requests have the same."""
        for name, kind in self.kinds.items():
            self.known[name.title()] = kind

    def kind(self, name: bytes) -> i64:
        """Return the kind of a header."""
        found = self.known.get(name)
        return self.learn(name) if found is None else found

    def learn(self, name: bytes) -> i64:
        """Return the kind of a header spelt as never before; remember it as long as there is room."""
        kind = self.kinds.get(name.lower(), 0)
        if len(self.known) < MOST and len(name) <= LONGEST:
            self.known[name] = kind
        return kind
