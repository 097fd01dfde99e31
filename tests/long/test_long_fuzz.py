"""The fuzz tests of `tests/property` for long, with inputs that are others in every run (`make test-long`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pytest

from fuzzing import commands, documents, requests, sockets, upstreams
from fuzzing.commands import Desk
from fuzzing.proxy import WORLDS, fuzzed
from fuzzing.rows import TIMES_LONGER, Row, run
from processes import scratch


@contextmanager
def desk() -> Iterator[Desk]:
    """Give a folder with odd files."""
    with scratch() as folder:
        yield Desk(folder)


Open = Callable[[], AbstractContextManager[Any]]
SUITES: tuple[tuple[str, tuple[Row[Any], ...], Open], ...] = (
    *((f"requests, {name}", requests.ROWS, partial(fuzzed, **options)) for name, options in WORLDS.items()),
    ("documents", documents.ROWS, asyncio.Runner),
    ("upstream", upstreams.ROWS, upstreams.exchange),
    ("commands", commands.ROWS, desk),
    ("sockets", sockets.ROWS, sockets.target),
)
CASES = [pytest.param(row, world, id=f"{suite}: {row}") for suite, rows, world in SUITES for row in rows]


@pytest.mark.long
@pytest.mark.parametrize(("row", "world"), CASES)
def test_for_long(row: Row[Any], world: Open) -> None:
    """What holds for a few inputs holds for many."""
    with world() as target:
        run(row, target, times=TIMES_LONGER)
