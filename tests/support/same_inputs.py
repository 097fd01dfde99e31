"""Hypothesis without what it learns from the modules that happen to be loaded.

It draws now and then from the literals of all local modules that are loaded by then; which those are, in a process of a test run,
hangs on the tests it got before. So inputs that are to be the same in every run would not be.
"""

from __future__ import annotations

from hypothesis.internal.conjecture import providers


def forget_literals() -> None:
    """Have no inputs drawn from literals of loaded modules; before the first input of the process."""
    nothing = providers._local_constants
    assert len(nothing) == 0
    assert callable(providers._get_local_constants)
    providers._get_local_constants = lambda: nothing
