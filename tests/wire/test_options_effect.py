"""Each option does what it says, however it is given: by variable, alias, file, flag and in code.

Each row of the tables in `option_rows_*.py` says what is seen from outside when an option has a value, and what
when it is not given; the two differ, so an option that is ignored fails here. All ways to give it make the same options.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import option_rows_callers as callers
import option_rows_inside as inside
import option_rows_limits as limits
import option_rows_secure as secure
import option_rows_upstream as upstream
import pytest
from option_ways import CERTIFICATES, CODE, DEFAULT, DEFAULT_IN_CODE, FILE, FLAG, SECRET_FILE, SECRET_FLAG, Row, given, named_in

from flagsvc import ConfigurationError
from flagsvc.settings.options import OPTIONS
from flagsvc.settings.table import BY_NAME
from support.processes import free_port
from support.scene import Scene, document, scene

SECONDS = 60.0
T = TypeVar("T")
ROWS: tuple[Row, ...] = (
    *upstream.REQUIRED,
    *upstream.LISTENING,
    *upstream.UPSTREAM,
    *upstream.METRICS,
    *limits.LISTENING,
    *limits.REQUESTS,
    *secure.LISTENING,
    *secure.UPSTREAM,
    *callers.CALLERS,
    *callers.CORS,
    *inside.EVALUATION,
    *inside.STORAGE,
    *inside.REDIS,
    *inside.LOGGING,
    *inside.EXPERIMENTAL,
)
OF_THE_REFERENCE = "UNLEASH_URL"
"""With this variable, the default of another option is that of the reference: `tests/unit/settings/test_load.py`."""
FIRST = {row.name: row for row in reversed(ROWS)}


def numbered(rows: Sequence[Row]) -> list[Any]:
    """Return rows as cases with names."""
    return [pytest.param(row, id=f"{number}-{row.name}") for number, row in enumerate(rows)]


@asynccontextmanager
async def around_row(row: Row, folder: Path) -> AsyncIterator[Scene]:
    """Give the surroundings of a row, with its files and features."""
    for name, text in {**CERTIFICATES, **row.files}.items():
        (folder / name).write_text(text)
    async with scene(folder, tls=row.tls) as around:
        if row.features:
            around.served = document(*row.features)
        yield around


async def seen(row: Row, way: str, folder: Path) -> object:
    """Return what is seen of a row's option when it is given in this way."""
    async with around_row(row, folder) as around:
        try:
            return await row.look(around, given(row, way, around, free_port()))
        except ConfigurationError as error:
            return named_in(error)


async def made(row: Row, ways: Sequence[str], folder: Path) -> list[object]:
    """Return the options that each of some ways makes, or what is wrong with them."""
    port, found = free_port(), list[object]()
    async with around_row(row, folder) as around:
        for way in ways:
            try:
                found.append(given(row, way, around, port))
            except ConfigurationError as error:
                found.append(named_in(error))
    return found


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of asynchronous work, which is bounded in time."""
    return asyncio.run(asyncio.wait_for(work, SECONDS))


@pytest.mark.parametrize("row", numbered(ROWS))
def test_the_option_is_seen(row: Row, tmp_path: Path) -> None:
    """Given in the first way, the option does what its row says."""
    assert run(seen(row, next(row.ways()), tmp_path)) == row.seen


@pytest.mark.parametrize("row", numbered(ROWS))
def test_the_default_is_seen(row: Row, tmp_path: Path) -> None:
    """Not given, the option has the default of its row."""
    assert run(seen(row, DEFAULT, tmp_path)) == row.unset


@pytest.mark.parametrize("row", numbered(ROWS))
def test_every_way_makes_the_same_options(row: Row, tmp_path: Path) -> None:
    """So what is seen of an option in one way is seen in every other way, and its default in code is the default elsewhere."""
    for ways in ([way for way in row.ways() if way != OF_THE_REFERENCE], [DEFAULT, DEFAULT_IN_CODE]):
        first, *others = run(made(row, ways, tmp_path))
        assert others == [first] * len(others)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}={row.written or 'object'}")
def test_every_row_can_fail(row: Row) -> None:
    """The option changes the effect, so that no row passes when its option is ignored."""
    assert row.seen != row.unset
    assert callable(row.text) or not BY_NAME[row.name].in_code_only


def test_every_option_has_a_row() -> None:
    """Every option of the table has a row, those for code only included, and no row is about anything else."""
    assert {option.name for option in OPTIONS} == set(FIRST)


def test_an_option_is_tried_in_every_way() -> None:
    """A secret has the most ways: variable, alias and file, each with the value or the name of a file that holds it, and code."""
    prefixes = ("FLAGSVC_PROXY_CLIENT_KEYS", "UNLEASH_PROXY_CLIENT_KEYS")
    variables = [f"{prefix}{end}" for prefix in prefixes for end in ("", "_FILE")]
    assert list(FIRST["clientKeys"].ways()) == [*variables, FILE, FLAG, SECRET_FILE, SECRET_FLAG, CODE]
    assert list(FIRST["port"].ways()) == ["PORT", "PROXY_PORT", FILE, FLAG, CODE]
    assert list(FIRST["logger"].ways()) == [CODE]
