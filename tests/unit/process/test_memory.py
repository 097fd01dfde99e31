"""The available memory: the minimum of the machine, its control groups and its limits."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from flagsvc.process import max_connections as of
from flagsvc.process.max_connections import make_connection_limits
from flagsvc.settings.server import ServerOptions
from flagsvc.testing import RecordingLog

MB = 1024 * 1024


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for control groups, and no limit on the address space."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return tmp_path


def group(root: Path, path: str, text: str) -> None:
    """Write a limit."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


def test_without_groups(system: Path) -> None:
    """The machine's memory counts."""
    assert of.available_memory(system, system / "none") > 64 * MB


def test_of_both_versions_and_up_to_the_root(system: Path) -> None:
    """The least limit on the way from the process's own group to the root holds; one that says `max` is none."""
    own = system / "own"
    own.write_text("4:memory:/a/b\n1:cpu:/a\n0::/c/d\n")
    group(system, "c/d/memory.max", "max")
    assert of.available_memory(system, own) > 600 * MB
    group(system, "c/memory.max", str(500 * MB))
    assert of.available_memory(system, own) == 500 * MB
    group(system, "memory/a/memory.limit_in_bytes", str(400 * MB))
    assert of.available_memory(system, own) == 400 * MB
    group(system, "memory.max", str(300 * MB))
    assert of.available_memory(system, own) == 300 * MB


def test_the_address_space(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on it counts too."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256 * MB, resource.RLIM_INFINITY))
    assert of.available_memory(system, system / "none") == 256 * MB


def test_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth for all processes together, within bounds; four of the largest requests fit in any case."""
    monkeypatch.setattr(of, "available_memory", lambda: 256 * MB)
    assert of.default_request_memory(MB, 1) == 32 * MB
    assert of.default_request_memory(MB, 2) == 16 * MB
    assert of.default_request_memory(MB, 64) == 8 * MB
    assert of.default_request_memory(50 * MB, 1) == 200 * MB
    monkeypatch.setattr(of, "available_memory", lambda: 64 * 1024 * MB)
    assert of.default_request_memory(MB, 1) == 512 * MB


def test_what_is_asked_for() -> None:
    """It holds. A warning names a limit that is too small for the largest request."""
    log = RecordingLog()
    options = ServerOptions(database="flags.db", request_memory=64 * MB)
    assert make_connection_limits(options, log).memory == 64 * MB and log.lines == []
    options = ServerOptions(database="flags.db", request_memory=64 * MB, body_limit=50 * MB)
    assert make_connection_limits(options, log).memory == 64 * MB
    [line] = log.lines
    assert "requestMemory" in str(line)
