"""Each option does what it says, however it is given: by variable, alias, file, flag and in code.

Each row of the tables in `option_rows_*.py` says what is seen from outside when an option has a value, and what
when it is not given; the two differ, so an option that is ignored fails here.

A configuration in which everything is wrong: all problems are reported at once, with option and source and no secret.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import option_rows_callers as callers
import option_rows_inside as inside
import option_rows_limits as limits
import option_rows_secure as secure
import option_rows_upstream as upstream
import pytest
from option_ways import (
    CERTIFICATES,
    CODE,
    DEFAULT,
    DEFAULT_IN_CODE,
    FILE,
    FLAG,
    SECRET_FILE,
    SECRET_FLAG,
    Row,
    given,
    named_in,
)

from flagsvc import ConfigurationError, ProxyOptions
from flagsvc.settings.options import OPTIONS
from flagsvc.settings.table import BY_NAME
from support.option_samples import wrong
from support.processes import flagsvc, free_port, running
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
SERVING = ("port", "host", "keepAliveTimeout", "shutdownGrace", "workers", "workerTimeout")
"""The options of a server: they mean nothing to an application under another server."""


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


def test_the_options_of_a_server_are_few() -> None:
    """All others are options of the application, and are tried without a socket."""
    assert [row.name for row in upstream.LISTENING if row.name in SERVING] == list(SERVING)


WRONG = {option.name: wrong(option) for option in OPTIONS if not option.in_code_only}
"""A wrong value for every option that text can give."""
WAYS = ("variable", "alias", "file", "flag")
WRONG_OBJECTS: dict[str, Any] = {"logger": print, "storage_provider": "a folder", "exp_bootstrap": 7}


def spread(shift: int, folder: Path) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """Return an environment, arguments and the source of each wrong value; the values are spread over all ways to set an option."""
    environment: dict[str, str] = {"UNLEASH_SHUTDOWN_GRACE": ""}  # what the programs of tests are given otherwise
    arguments, sources, lines = list[str](), dict[str, str](), list[str]()
    path = folder / "wrong.toml"
    for number, (name, text) in enumerate(WRONG.items()):
        option, way = BY_NAME[name], WAYS[(number + shift) % len(WAYS)]
        plain = [variable.name for variable in option.variables if not variable.holds_path]
        if way == "file":
            lines.append(f"{name} = {json.dumps(text)}")
            sources[name] = f"file {path}"
        elif way == "flag":
            arguments.append(f"{option.flag}={text}")
            sources[name] = f"flag {option.flag}"
        else:
            variable = plain[0 if way == "variable" else -1]
            environment[variable] = text
            sources[name] = f"environment {variable}"
    path.write_text("\n".join(lines))
    return environment, ["--config", str(path), *arguments], sources


@pytest.mark.parametrize("command", ["config", "proxy"])
@pytest.mark.parametrize("shift", range(len(WAYS)))
def test_all_problems_come_at_once(shift: int, command: str, tmp_path: Path) -> None:
    """The exit code is 2. One message has a line for each option and its source, no traceback, and nothing of a secret."""
    environment, arguments, sources = spread(shift, tmp_path)
    with running("flagsvc", [*flagsvc(), command, *arguments], env=environment, folder=tmp_path) as program:
        assert program.process.wait(20) == 2
    output = program.output()
    problems = dict(re.findall(r"^  - (\S+) \(([^)]*)\): expected ", output, re.MULTILINE))
    assert problems == sources
    assert f"flagsvc {command}: {len(WRONG)} problems\n" in output
    assert "very-secret" not in output and "Traceback" not in output


def test_all_problems_come_at_once_in_code() -> None:
    """The error names every option by its name in code, those for code only included."""
    given: dict[str, Any] = {BY_NAME[name].field: text for name, text in WRONG.items()} | WRONG_OBJECTS
    with pytest.raises(ConfigurationError) as caught:
        ProxyOptions(**given)
    about = {re.split("[: ]", problem)[0] for problem in caught.value.problems}
    assert about == {*given, "expBootstrap"} - {"exp_bootstrap"}
    assert len(caught.value.problems) == len(given) and "very-secret" not in str(caught.value)
