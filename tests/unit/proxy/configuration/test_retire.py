"""A configuration that is no longer served gives its memory back bit by bit."""

from __future__ import annotations

import asyncio
import weakref
from itertools import pairwise

from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.configuration.holder import ConfigurationDocument
from flagsvc.proxy.configuration.retire import SLICE_OBJECTS, retire
from support.aio import asynchronous


class Thing:
    """Something whose end can be seen."""


class Heavy:
    """A configuration of many things."""

    revision = "x"

    def __init__(self, count: int) -> None:
        self.names: dict[str, frozenset[str]] = {}
        self.things = [Thing() for _ in range(count)]

    def list_contents(self) -> list[list[object]]:
        """Return them in two lists."""
        return [list(self.things[:10]), list(self.things[10:])]


def replaced(count: int) -> list[weakref.ref[Thing]]:
    """Serve a configuration of many things, then another; return the things of the first."""
    holder: Holder[Heavy] = Holder()
    document = ConfigurationDocument(b"", "")
    heavy = Heavy(count)
    seen = [weakref.ref(thing) for thing in heavy.things]
    holder.replace(heavy, document, 0)
    holder.replace(heavy, document, 0)
    del heavy
    holder.replace(Heavy(0), document, 0)
    return seen


@asynchronous
async def test_a_large_configuration_goes_in_slices() -> None:
    """Never more than a slice between two turns of the loop, and in the end all of it."""
    seen = replaced(SLICE_OBJECTS * 3 - 10)
    alive = [sum(1 for each in seen if each() is not None)]
    while alive[-1]:
        await asyncio.sleep(0)
        alive.append(sum(1 for each in seen if each() is not None))
    assert len(alive) >= 3
    assert all(before - after <= SLICE_OBJECTS for before, after in pairwise(alive))


def test_outside_of_a_loop_it_goes_at_once() -> None:
    """Without an event loop, everything is released at once."""
    heavy = Heavy(5)
    seen = weakref.ref(heavy.things[0])
    retire(heavy)
    del heavy
    assert seen() is None


def test_what_says_nothing_about_itself_is_just_let_go() -> None:
    """A snapshot that cannot list its contents is released as a whole."""
    retire(None)
    retire(object())
