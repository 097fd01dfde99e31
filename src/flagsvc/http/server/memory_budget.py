"""The bytes that unfinished requests and answers of one server may use together. Compiled.

A connection is charged for what it holds: an incomplete head or body, requests that wait for their turn or their answer, an answer
that the caller has not read.
If the sum is too large, the connections that hold most are closed. One network may use half of the budget, so that others have
room.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from flagsvc.http.server.stream import Stream

SMALL: Final = 2048
"""Bytes that are not charged, because a connection itself takes more."""


def heaviest_first(connection: Stream) -> int:
    """Return the sort key: most bytes first."""
    return -int(connection.charged)


class MemoryBudget:
    """The bytes of one server's connections: `limit` for all, half of it for one network."""

    def __init__(self, limit: int) -> None:
        self.limit: Final[i64] = limit
        self.total: i64 = 0
        self.networks: dict[bytes, int] = {}
        self.holders: set[Stream] = set()

    def charge(self, connection: Stream, size: i64) -> None:
        """Set how many bytes a connection holds. If that is too much for all, or for its network, some connections are closed."""
        if size < SMALL:
            size = 0
        grown = size - connection.charged
        if grown == 0:
            return
        connection.charged = size
        self.total += grown
        if size == 0:
            self.holders.discard(connection)
        else:
            self.holders.add(connection)
        network = connection.network
        held: i64 = 0
        if network:
            held = self.networks.get(network, 0) + grown
            if held:
                self.networks[network] = held
            else:
                del self.networks[network]
        if grown > 0:
            if held > self.limit // 2:
                self.relieve([one for one in self.holders if one.network == network], held, self.limit // 2)
            elif self.total > self.limit:
                self.relieve(list(self.holders), self.total, self.limit)

    def relieve(self, holders: list[Stream], held: i64, limit: i64) -> None:
        """Close the connections that hold most, until three quarters of a limit are used.

        So the next bytes do not start another search.
        """
        holders.sort(key=heaviest_first)
        for connection in holders:
            if held <= limit // 4 * 3:
                return
            held -= connection.charged
            connection.free_memory()
