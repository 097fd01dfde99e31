"""Whatever bytes come over a connection, the process goes on serving the others."""

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
    """The process lives, answers in order what it can read, and a good request after each stream."""
    run(row, attacked)
