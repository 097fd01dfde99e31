"""How many bytes of requests and answers under way the connections of one server may hold together. Compiled.

What a connection holds is charged: a head or a body that is not complete, requests that wait for their turn, an answer that is not
taken. Where it is too much, those who hold most are let go. One network may hold half of it, which leaves room for the others.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from flagsvc.http.server.outbox import Sender

SMALL: Final = 2048
"""Bytes that are not charged: less than a connection itself takes."""


class Charged(Sender):
    """What holds bytes: `charged` of them, for a caller in `network`; empty for one that stands for many callers."""

    def __init__(self) -> None:
        self.charged: i64 = 0
        self.network: bytes = b""

    def give_up(self) -> None:
        """Give up what is held."""


def heaviest_first(each: Charged) -> int:
    """Return what to sort by."""
    return -int(each.charged)


class Budget:
    """The bytes of one server's connections: `most` of all of them, half of it of one network."""

    def __init__(self, most: int) -> None:
        self.most: Final[i64] = most
        self.total: i64 = 0
        self.networks: dict[bytes, int] = {}
        self.holders: set[Charged] = set()

    def charge(self, each: Charged, size: i64) -> None:
        """Note that somebody holds so many bytes now. Where that is too much for all, or for its network, some are let go."""
        grown = size - each.charged
        if grown == 0:
            return
        each.charged = size
        self.total += grown
        if size == 0:
            self.holders.discard(each)
        else:
            self.holders.add(each)
        network = each.network
        held: i64 = 0
        if network:
            held = self.networks.get(network, 0) + grown
            if held:
                self.networks[network] = held
            else:
                del self.networks[network]
        if grown > 0:
            if held > self.most // 2:
                self.relieve([one for one in self.holders if one.network == network], held, self.most // 2)
            elif self.total > self.most:
                self.relieve(list(self.holders), self.total, self.most)

    def relieve(self, holders: list[Charged], held: i64, bound: i64) -> None:
        """Let go of those who hold most, until three quarters of a bound are left: who comes next is not looked at one by one."""
        holders.sort(key=heaviest_first)
        for each in holders:
            if held <= bound // 4 * 3:
                return
            held -= each.charged
            each.give_up()
