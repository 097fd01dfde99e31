"""The collector passes over what lasts, and still finds all garbage."""

from __future__ import annotations

import gc
import weakref

from flagsvc.process.garbage import UNFREEZE_S, freeze_survivors


class Ring:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.me = self


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
        gc.collect()
        assert gone() is not None
        moment = UNFREEZE_S
        gc.collect(1)
        assert gone() is not None, "only a full collection looks at everything"
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
