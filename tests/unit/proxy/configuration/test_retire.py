"""A configuration that is no longer served gives its memory back bit by bit."""

from __future__ import annotations

import asyncio
import sys
import weakref
from itertools import pairwise
from typing import Any
from unittest.mock import patch

from flagsvc.engine.lists import Container
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.configuration import retire as retiring
from flagsvc.proxy.configuration.holder import ConfigurationDocument
from flagsvc.proxy.configuration.retire import SLICE_OBJECTS, retire
from support.aio import until


class Thing:
    """Something whose end can be seen."""


class Heavy:
    """Stands for a snapshot of many things."""

    def __init__(self, count: int) -> None:
        self.few = {at: Thing() for at in range(min(10, count))}
        self.things = [Thing() for _ in range(max(0, count - 10))]

    def containers(self) -> list[tuple[Container, int]]:
        return [(self.things, SLICE_OBJECTS), (self.few, 4)]

    def all(self) -> list[weakref.ref[Thing]]:
        return [weakref.ref(each) for each in (*self.few.values(), *self.things)]


def replaced(count: int) -> list[weakref.ref[Thing]]:
    """Serve a configuration of many things, then another; return the things of the first."""
    holder = Holder()
    document = ConfigurationDocument(b"", "")
    heavy: Any = Heavy(count)
    seen: list[weakref.ref[Thing]] = heavy.all()
    holder.replace(heavy, document, 0)
    holder.replace(heavy, document, 0)
    heavy = Heavy(0)
    holder.replace(heavy, document, 0)
    return seen


async def test_a_large_configuration_goes_in_slices() -> None:
    """Never more than a slice between two turns of the loop, and in the end all of it."""
    seen = replaced(SLICE_OBJECTS * 3 - 10)
    alive = [sum(1 for each in seen if each() is not None)]
    while alive[-1]:
        await asyncio.sleep(0)
        alive.append(sum(1 for each in seen if each() is not None))
    assert len(alive) >= 3
    assert all(before - after <= SLICE_OBJECTS for before, after in pairwise(alive))


async def test_what_is_still_used_is_left_alone() -> None:
    """A request that waits for an enricher has the former configuration. Its containers are emptied when it has ended."""
    used: Any = Heavy(50)
    seen, things = used.all(), used.things
    with patch.object(retiring, "TRY_PAUSE_S", 0.001), patch.object(retiring, "TRIES", 1_000_000):
        retire(used)
        del used
        await until(lambda: not any(each() for each in seen[:10]))
        assert all(each() for each in seen[10:]) and len(things) == 40
        del things
        assert all(each() for each in seen[10:]), "the release has them still, and goes on with slices"
        await until(lambda: not any(each() for each in seen))


async def test_what_is_used_for_long_is_let_go() -> None:
    """After some tries a release knows nothing of a container any more, and its last user releases it."""
    used: Any = Heavy(50)
    with patch.object(retiring, "TRY_PAUSE_S", 0.0):
        retire(used)
        alone = sys.getrefcount(used.things)
        await until(lambda: sys.getrefcount(used.things) < alone)
    assert len(used.things) == 40


def test_outside_of_a_loop_it_goes_at_once() -> None:
    """Without an event loop, everything is released at once."""
    heavy: Any = Heavy(5)
    seen = weakref.ref(heavy.few[0])
    retire(heavy)
    del heavy
    assert seen() is None
