"""The fuzz tests of `tests/property` for a long time, with new inputs in every run.

`make test-long`; with FUZZ_SECONDS=60 each of them runs for a minute, and all together for about an hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import pytest

from fuzzing import commands, documents, others, requests, sockets, stored, upstreams
from fuzzing.commands import CommandFolder
from fuzzing.proxy import WORLDS, fuzzed
from fuzzing.rows import Row, run_long
from support.processes import scratch


@contextmanager
def command_folder() -> Iterator[CommandFolder]:
    with scratch() as folder:
        yield CommandFolder(folder)


Open = Callable[[], AbstractContextManager[Any]]
SUITES: tuple[tuple[str, tuple[Row[Any], ...], Open], ...] = (
    *((f"requests, {name}", requests.ROWS, partial(fuzzed, **options)) for name, options in WORLDS.items()),
    ("documents", documents.ROWS, asyncio.Runner),
    ("upstream", upstreams.ROWS, asyncio.Runner),
    ("storage", stored.FILES, scratch),
    ("deltas", stored.DELTAS, nullcontext),
    ("other processes", others.ROWS, nullcontext),
    ("commands", commands.ROWS, command_folder),
    ("sockets", sockets.ROWS, sockets.target),
)
CASES = [pytest.param(row, world, id=f"{suite}: {row}") for suite, rows, world in SUITES for row in rows]


@pytest.mark.long
@pytest.mark.parametrize(("row", "world"), CASES)
def test_for_long(row: Row[Any], world: Open) -> None:
    """What holds for a few inputs holds for many."""
    with world() as target:
        run_long(row, target)
