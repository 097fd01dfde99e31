"""The kinds of header names: those that the contract reads, and those that the connection reads. Compiled."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from flagsvc.http.call import HOST

CONNECTION: Final = 101
EXPECT: Final = 102
UPGRADE: Final = 103

CONNECTION_HEADERS: Final[dict[bytes, int]] = {
    b"connection": CONNECTION,
    b"expect": EXPECT,
    b"upgrade": UPGRADE,
    b"host": HOST,
}
"""The headers that only the connection reads."""

MAX_SPELLINGS: Final = 512
"""The most spellings that are remembered."""
MAX_LENGTH: Final = 64
"""The most bytes of a remembered spelling. Both limits bound the memory that callers can use."""


class HeaderNames:
    """The kinds of header names in all spellings. 0 is the kind of a header that is not read.

    `contract` has the kinds of the headers that the contract reads, by lower-case name. `head_limit` is the most bytes of a
    head.
    """

    def __init__(self, contract: dict[bytes, int], head_limit: int) -> None:
        self.head_limit: Final[i64] = head_limit
        self.kinds: dict[bytes, int] = {**CONNECTION_HEADERS, **contract}
        self.known: dict[bytes, int] = dict(self.kinds)
        self.host: bytes = b""
        """The last valid value of a Host header. Most requests have the same."""
        for name, kind in self.kinds.items():
            self.known[name.title()] = kind

    def kind(self, name: bytes) -> i64:
        """Return the kind of a header."""
        found = self.known.get(name)
        return self.learn(name) if found is None else found

    def learn(self, name: bytes) -> i64:
        """Return the kind of a header in a new spelling, and remember the spelling if there is room."""
        kind = self.kinds.get(name.lower(), 0)
        if len(self.known) < MAX_SPELLINGS and len(name) <= MAX_LENGTH:
            self.known[name] = kind
        return kind
