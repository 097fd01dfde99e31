"""Waiting for a condition, with a deadline: for other processes and threads, which give no event. Async: `aio.until`."""

from __future__ import annotations

import time
from collections.abc import Callable

PAUSE_S = 0.01


def timeout_message() -> str:
    """Say that nothing came."""
    return "condition not met before the deadline"


def wait_until(
    condition: Callable[[], object], seconds: float = 20.0, complaint: Callable[[], str] = timeout_message
) -> None:
    """Return when `condition` holds; fail, with what `complaint` says then, when it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, complaint()
        time.sleep(PAUSE_S)
