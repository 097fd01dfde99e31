"""Fuzz tests as rows: what goes in, and what must hold of it. `tests/property` runs each row briefly, `tests/long` for long."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Generic, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

W = TypeVar("W")

HANG_S = 20.0
"""No input may take this long, even on a busy machine."""
TIMES_LONGER = 25
"""A long run uses this many times more inputs for each row."""
SECONDS = "FUZZ_SECONDS"
"""The variable that tells for how many seconds a long run goes on with each row; without it, it is done after one pass."""


@dataclass(frozen=True, repr=False)
class Row(Generic[W]):
    """One fuzz test: `check` is called with a world and an input; `examples` is the number of inputs of a short run."""

    name: str
    inputs: SearchStrategy[Any]
    check: Callable[[W, Any], None]
    examples: int = 150

    def __repr__(self) -> str:
        return self.name


def run(row: Row[W], world: W, *, times: int = 1) -> None:
    """Make inputs and check each. A short run (`times` 1) makes the same ones every time, a longer one others each time.

    Outside CI they hang on the modules that are loaded, too (`same_inputs`).
    """

    @settings(
        max_examples=row.examples * times,
        derandomize=times == 1,
        deadline=None,
        database=None,
        print_blob=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(row.inputs)
    def holds(value: Any) -> None:
        with no_hang():
            row.check(world, value)

    holds()


def run_long(row: Row[W], world: W) -> None:
    """Make many inputs, others each time, for as many seconds as the environment asks for, at least once."""
    end = time.monotonic() + float(os.environ.get(SECONDS, "0"))
    run(row, world, times=TIMES_LONGER)
    while time.monotonic() < end:
        run(row, world, times=TIMES_LONGER)


@contextmanager
def no_hang(seconds: float = HANG_S) -> Iterator[None]:
    """Fail when the block takes longer than `seconds`."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"this took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
