"""Each option does what it says, however it is given: by variable, alias, file, flag and in code.

Each row of the tables in `option_rows_*.py` says what is seen from outside when an option has a value, and what
when it is not given; the two differ, so an option that is ignored fails here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from support.scene import document, scene

SECONDS = 60.0
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
FIRST = {row.name: row for row in reversed(ROWS)}


def cases() -> Iterator[Any]:
    """Give each row with each way to set its option."""
    for number, row in enumerate(ROWS):
        ways = list(row.ways()) if row is FIRST[row.name] else list(dict.fromkeys((next(row.ways()), CODE)))
        for way in ways:
            yield pytest.param(row, way, id=f"{number}-{row.name}-{way}")


def defaults() -> Iterator[Any]:
    """Give each row with each way of not giving its option."""
    for number, row in enumerate(ROWS):
        for way in (DEFAULT, DEFAULT_IN_CODE):
            yield pytest.param(row, way, id=f"{number}-{row.name}-{way}")


async def seen(row: Row, way: str, folder: Path) -> object:
    """Return what is seen of a row's option when it is given in this way."""
    for name, text in {**CERTIFICATES, **row.files}.items():
        (folder / name).write_text(text)
    async with scene(folder, tls=row.tls) as around:
        if row.features:
            around.served = document(*row.features)
        try:
            return await row.look(around, given(row, way, around, free_port()))
        except ConfigurationError as error:
            return named_in(error)


@pytest.mark.parametrize(("row", "way"), list(cases()))
def test_the_option_is_seen(row: Row, way: str, tmp_path: Path) -> None:
    """Given in this way, the option does what its row says."""
    assert asyncio.run(asyncio.wait_for(seen(row, way, tmp_path), SECONDS)) == row.seen


@pytest.mark.parametrize(("row", "way"), list(defaults()))
def test_the_default_is_seen(row: Row, way: str, tmp_path: Path) -> None:
    """Not given, the option has the default of its row."""
    assert asyncio.run(asyncio.wait_for(seen(row, way, tmp_path), SECONDS)) == row.unset


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
