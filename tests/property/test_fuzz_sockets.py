"""The process serves its other callers, with any bytes on a connection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzzing.rows import Row, run
from fuzzing.sockets import ROWS, Target, target


@pytest.fixture(scope="module")
def attacked() -> Iterator[Target]:
    """A proxy in a process of its own."""
    with target() as running:
        yield running


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_any_bytes_are_survived(attacked: Target, row: Row[Target]) -> None:
    """The process lives, answers in order the requests that it can read, and answers a good request after each stream."""
    run(row, attacked)
