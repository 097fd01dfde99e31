"""Waiting for a condition, with a deadline: for other processes and threads, which give no event. Async: `aio.until`.

`threads` runs functions beside a block.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAUSE_S = 0.01


def wait_until(
    condition: Callable[[], object], seconds: float = 20.0, complaint: Callable[[], str] = lambda: "the condition is not met"
) -> None:
    """Return when `condition` holds; fail, with what `complaint` says then, when it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, complaint()
        time.sleep(PAUSE_S)


def setting(*events: threading.Event) -> Callable[[], None]:
    """Return a function that sets events."""

    def stop() -> None:
        for event in events:
            event.set()

    return stop


@contextmanager
def threads(*works: Callable[[], object], stop: Callable[[], object]) -> Iterator[None]:
    """Run functions in threads beside the block. At its end `stop` tells them to return, and the threads are waited for."""
    started = [threading.Thread(target=work) for work in works]
    for thread in started:
        thread.start()
    try:
        yield
    finally:
        stop()
        for thread in started:
            thread.join()
