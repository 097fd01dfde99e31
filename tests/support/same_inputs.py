"""Hypothesis without what it learns from the modules that happen to be loaded, and how many inputs it makes.

It draws now and then from the literals of all local modules that are loaded by then; which those are, in a process of a test run,
hangs on the tests it got before. So inputs that are to be the same in every run would not be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings
from hypothesis.internal.conjecture import providers


def forget_literals() -> None:
    """Have no inputs drawn from literals of loaded modules; before the first input of the process."""
    nothing = providers._local_constants
    assert len(nothing) == 0
    assert callable(providers._get_local_constants)
    providers._get_local_constants = lambda: nothing


def examples(number: int) -> int:
    """Return how many inputs a test makes of so many under the profile `long`: in a usual run half, under `check` a fifth."""
    return number // _fold()


T = TypeVar("T")


def thinned(inputs: Sequence[T]) -> Sequence[T]:
    """Return the inputs of a test: in a usual run every second, under the profile `check` every fifth."""
    return inputs[:: _fold()]


def _fold() -> int:
    return 100 // (settings.default or settings.get_profile("flagsvc")).max_examples
