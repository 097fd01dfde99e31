"""The collector passes over what lasts, and still finds all garbage."""

from __future__ import annotations

import gc
import weakref

from flagsvc.process.garbage import UNFREEZE_EVERY, freeze_survivors


class Ring:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.me = self


def test_what_survived_is_set_aside() -> None:
    """A full collection looks at it once; the younger collections set nothing aside."""
    before = gc.get_freeze_count()
    with freeze_survivors():
        lasting = [Ring() for _ in range(1000)]
        frozen = gc.get_freeze_count()
        assert frozen > before + 1000
        gc.collect(1)
        assert gc.get_freeze_count() <= frozen
        gc.collect()
        assert gc.get_freeze_count() >= frozen + len(lasting) and len(gc.get_objects()) < len(lasting)
    assert gc.get_freeze_count() == 0


def test_garbage_is_found() -> None:
    """New garbage is found at once; older garbage after some full collections at the latest."""
    with freeze_survivors():
        new, old = Ring(), Ring()
        seen = weakref.ref(new)
        del new
        gc.collect()
        assert seen() is None
        gone = weakref.ref(old)
        del old
        gc.collect()
        assert gone() is not None
        for _ in range(UNFREEZE_EVERY):
            gc.collect()
        assert gone() is None


def test_nothing_of_it_stays() -> None:
    """The settings are restored, also after an exception."""
    before = list(gc.callbacks)
    try:
        with freeze_survivors():
            raise ValueError
    except ValueError:
        assert gc.callbacks == before and gc.get_freeze_count() == 0
