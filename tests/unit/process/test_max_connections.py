"""Bounds of connections, from the options and from the system: its open files, and the memory of machine, groups and limits."""

from __future__ import annotations

import resource
from pathlib import Path
from unittest.mock import Mock

import pytest

from flagsvc.process import max_connections
from flagsvc.settings.server import ServerOptions
from flagsvc.testing import RecordingLog
from support.apps_options import options

INFINITE = resource.RLIM_INFINITY
MB = 1024 * 1024


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
    monkeypatch.setattr(resource, "setrlimit", Mock(side_effect=PermissionError))
    assert max_connections.available_connections(10_000) == 1024 - max_connections.RESERVED_FILES


def test_a_system_that_allows_less_is_named(system: list[tuple[int, int]]) -> None:
    """One line says how many connections there are room for, and what to do for these and for event streams. Streams get what
    connections leave, and count as connections beyond that."""
    log = RecordingLog()
    made = max_connections.make_connection_limits(options(), log)
    assert (made.connections, made.streams) == (4096 - max_connections.RESERVED_FILES, 0)
    [line] = log.lines
    assert "20128 open files" in str(line) and str(made.connections) in str(line)
    made = max_connections.make_connection_limits(options(max_connections=1000), log)
    assert (made.connections, made.streams) == (1000, 4096 - max_connections.RESERVED_FILES - 1000)
    assert len(log.lines) == 1, "with room for connections there is no line"


@pytest.fixture
def unlimited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for control groups, and no limit on the address space."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (INFINITE, INFINITE))
    return tmp_path


def group(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


def test_memory_without_groups(unlimited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's memory counts, or a limit on the address space where it is less."""
    assert max_connections.available_memory(unlimited, unlimited / "none") > 64 * MB
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256 * MB, INFINITE))
    assert max_connections.available_memory(unlimited, unlimited / "none") == 256 * MB


def test_of_both_versions_and_up_to_the_root(unlimited: Path) -> None:
    """The least limit on the way from the process's own group to the root holds; one that says `max` is none."""
    own = unlimited / "own"
    own.write_text("4:memory:/a/b\n1:cpu:/a\n0::/c/d\n")
    group(unlimited, "c/d/memory.max", "max")
    assert max_connections.available_memory(unlimited, own) > 600 * MB
    group(unlimited, "c/memory.max", str(500 * MB))
    assert max_connections.available_memory(unlimited, own) == 500 * MB
    group(unlimited, "memory/a/memory.limit_in_bytes", str(400 * MB))
    assert max_connections.available_memory(unlimited, own) == 400 * MB
    group(unlimited, "memory.max", str(300 * MB))
    assert max_connections.available_memory(unlimited, own) == 300 * MB


def test_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth for all processes together, within bounds; four of the largest requests fit in any case."""
    monkeypatch.setattr(max_connections, "available_memory", lambda: 256 * MB)
    assert max_connections.default_request_memory(MB, 1) == 32 * MB
    assert max_connections.default_request_memory(MB, 2) == 16 * MB
    assert max_connections.default_request_memory(MB, 64) == 8 * MB
    assert max_connections.default_request_memory(50 * MB, 1) == 200 * MB
    monkeypatch.setattr(max_connections, "available_memory", lambda: 64 * 1024 * MB)
    assert max_connections.default_request_memory(MB, 1) == 512 * MB


def test_what_is_asked_for() -> None:
    """It holds. A warning names a limit that is too small for the largest request."""
    log = RecordingLog()
    given = ServerOptions(database="flags.db", request_memory=64 * MB)
    assert max_connections.make_connection_limits(given, log).memory == 64 * MB and log.lines == []
    given = ServerOptions(database="flags.db", request_memory=64 * MB, body_limit=50 * MB)
    assert max_connections.make_connection_limits(given, log).memory == 64 * MB
    [line] = log.lines
    assert "requestMemory" in str(line)
