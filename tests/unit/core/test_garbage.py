"""The collector passes over what lasts, and still finds all garbage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from flagsvc.core.garbage import UNFREEZE_S, collect_new, freeze_survivors


class Ring:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def collector_of_a_program() -> Iterator[None]:
    """Give the collector the state that it has at the start of a program; the tests have thresholds of their own."""
    thresholds = gc.get_threshold()
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*thresholds)
    gc.freeze()


def test_what_survived_is_set_aside() -> None:
    """A collection of the middle generation looks at it once, and a full one, too; those of the youngest set nothing aside."""
    before = gc.get_freeze_count()
    with freeze_survivors():
        lasting = [Ring() for _ in range(1000)]
        frozen = gc.get_freeze_count()
        assert frozen > before + 1000
        gc.collect(0)
        assert gc.get_freeze_count() <= frozen
        for generation in (1, 2):
            gc.collect(generation)
            assert gc.get_freeze_count() >= frozen + len(lasting) and len(gc.get_objects()) < len(lasting)
    assert gc.get_freeze_count() == 0


def test_garbage_is_found() -> None:
    """New garbage is found at once; what became garbage after it was set aside, by the first full collection after some minutes."""
    moment = 0.0
    with freeze_survivors(lambda: moment):
        new, old = Ring(), Ring()
        seen = weakref.ref(new)
        del new
        gc.collect(1)
        assert seen() is None
        gone = weakref.ref(old)
        del old
        moment = UNFREEZE_S - 1
        gc.collect(1)
        gc.collect()
        assert gone() is not None, "it is set aside"
        moment += UNFREEZE_S
        gc.collect(1)
        assert gone() is not None, "only a full collection looks at everything"
        gc.collect()
        assert gone() is None


def test_full_collections_come_by_themselves() -> None:
    """A process that only makes objects finds old garbage, too."""
    moment = 0.0
    with freeze_survivors(lambda: moment):
        gc.collect()
        old = Ring()
        gc.collect(1)
        gone = weakref.ref(old)
        del old
        moment = UNFREEZE_S
        kept: list[Ring] = []
        while gone() is not None and len(kept) < 1_000_000:
            kept.append(Ring())
        assert gone() is None


def test_what_is_new_is_looked_at_in_our_own_processes() -> None:
    """The collector of an application around a mounted proxy is left alone."""
    counts = [each["collections"] for each in gc.get_stats()]
    gc.disable()
    try:
        collect_new()
        assert [each["collections"] for each in gc.get_stats()] == counts
        with freeze_survivors():
            collect_new()
            assert [each["collections"] for each in gc.get_stats()] == [counts[0], counts[1] + 1, counts[2]]
    finally:
        gc.enable()


def test_nothing_of_it_stays() -> None:
    """The settings are restored, also after an exception."""
    before = list(gc.callbacks)
    try:
        with freeze_survivors():
            raise ValueError
    except ValueError:
        assert gc.callbacks == before and gc.get_freeze_count() == 0
