"""How many bytes of requests and answers under way the connections of one server may hold together. Compiled.

What a connection holds is charged: a head or a body that is not complete, requests that wait for their turn, an answer that is not
taken. Where the sum is too large, the connections that hold most end. One network may hold half of it, which leaves room for
the others.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from flagsvc.http.server.stream import Stream

SMALL: Final = 2048
"""Bytes that are not charged: less than a connection itself takes."""


def heaviest_first(connection: Stream) -> int:
    """Return what to sort by."""
    return -int(connection.charged)


class MemoryBudget:
    """The bytes of one server's connections: `limit` of all of them, half of it of one network."""

    def __init__(self, limit: int) -> None:
        self.limit: Final[i64] = limit
        self.total: i64 = 0
        self.networks: dict[bytes, int] = {}
        self.holders: set[Stream] = set()

    def charge(self, connection: Stream, size: i64) -> None:
        """Set how many bytes a connection holds. Where that is too much for all, or for its network, some connections end."""
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
        """End those that hold most, until three quarters of a limit are left: so the next bytes do not start another search."""
        holders.sort(key=heaviest_first)
        for connection in holders:
            if held <= limit // 4 * 3:
                return
            held -= connection.charged
            connection.free_memory()
