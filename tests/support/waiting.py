"""Waiting for a condition, with a deadline: for other processes and threads, which give no event. Async: `aio.until`."""

from __future__ import annotations

import time
from collections.abc import Callable

PAUSE_S = 0.01


def in_vain() -> str:
    """Say that nothing came."""
    return "waited in vain"


def wait_until(condition: Callable[[], object], seconds: float = 20.0, complaint: Callable[[], str] = in_vain) -> None:
    """Return when `condition` holds; fail, with what `complaint` says then, when it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, complaint()
        time.sleep(PAUSE_S)
