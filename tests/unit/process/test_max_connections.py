"""Bounds of connections, from the options and from the system."""

from __future__ import annotations

import resource

import pytest

from flagsvc.process import max_connections
from flagsvc.testing import RecordingLog
from support.apps_options import options

INFINITE = resource.RLIM_INFINITY


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Yield a list whose last item is the system's limit: soft and hard limit of open files."""
    allowed = [(1024, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda which: allowed[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda which, wanted: allowed.append(wanted))
    return allowed


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "room", "asked"),
    [
        (1024, 4096, 500, 500, None),
        (1024, 4096, 896, 896, None),
        (1024, 4096, 897, 897, 1025),
        (1024, 4096, 10_000, 4096 - max_connections.RESERVED_FILES, 4096),
        (1024, INFINITE, 10_000, 10_000, 10_000 + max_connections.RESERVED_FILES),
        (INFINITE, INFINITE, 10_000, 10_000, None),
        (64, 64, 10_000, max_connections.MIN_CONNECTIONS, 64),
    ],
)
def test_available_connections(
    system: list[tuple[int, int]], soft: int, hard: int, wanted: int, room: int, asked: int | None
) -> None:
    """The soft limit is raised if necessary and allowed. Some files are reserved for other uses."""
    system[0] = (soft, hard)
    assert max_connections.available_connections(wanted) == room
    assert system[1:] == ([] if asked is None else [(asked, hard)])


def test_a_system_that_refuses(monkeypatch: pytest.MonkeyPatch, system: list[tuple[int, int]]) -> None:
    """If the system refuses, the limit stays."""

    def refuse(which: int, wanted: tuple[int, int]) -> None:
        raise PermissionError

    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert max_connections.available_connections(10_000) == 1024 - max_connections.RESERVED_FILES


def test_the_options_are_taken(system: list[tuple[int, int]]) -> None:
    """Each option is a bound of the front, and nothing is said."""
    log = RecordingLog()
    given = options(max_connections=500, header_timeout=1, body_timeout=2, write_timeout=3, keep_alive_timeout=4)
    made = max_connections.make_connection_limits(given, log)
    assert (made.connections, made.head_s, made.body_s, made.write_s, made.keep_alive_s) == (500, 1, 2, 3, 4)
    assert log.lines == []


def test_a_system_that_allows_less_is_named(system: list[tuple[int, int]]) -> None:
    """One line says how many connections there are room for, and what to do."""
    log = RecordingLog()
    made = max_connections.make_connection_limits(options(), log)
    assert made.connections == 4096 - max_connections.RESERVED_FILES
    [line] = log.lines
    assert "10128 open files" in str(line) and str(made.connections) in str(line)
