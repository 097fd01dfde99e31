"""How many processors a process may use: affinity, and the quotas of control groups of both versions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.control_groups import processors
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.options import ProxyOptions

OPTIONS: dict[str, Any] = {"flagsvc_url": "file:///flags.json", "client_keys": "k"}


@pytest.fixture
def sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the process's CPU affinity sixteen processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda of: set(range(16)), raising=False)


@pytest.mark.usefixtures("sixteen")
@pytest.mark.parametrize(
    ("own", "files", "number"),
    [
        ("", {}, 16),
        ("0::/", {}, 16),
        ("0::/", {"cpu.max": "max 100000"}, 16),
        ("0::/a/b", {"a/b/cpu.max": "250000 100000"}, 3),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "200000 100000"}, 2),
        ("0::/a", {"a/cpu.max": "50000 100000"}, 1),
        ("0::/a", {"a/cpu.max": "3200000 100000"}, 16),
        ("0::/a", {"a/cpu.max": "nonsense"}, 16),
        ("3:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "400000", "cpu/a/cpu.cfs_period_us": "100000"}, 4),
        ("3:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 16),
        ("4:memory:/a", {"cpu/a/cpu.cfs_quota_us": "400000", "cpu/a/cpu.cfs_period_us": "100000"}, 16),
    ],
)
def test_the_least_of_all_limits_counts(own: str, files: dict[str, str], number: int, tmp_path: Path) -> None:
    """The smallest limit counts. A fractional quota is rounded up, and an unreadable quota is no limit."""
    if own:
        (tmp_path / "own").write_text(f"{own}\n")
    for name, text in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    assert processors(tmp_path / "groups", tmp_path / "own") == number


@pytest.mark.parametrize(("there", "workers"), [(1, 1), (6, 6), (1000, 256)])
def test_auto_is_a_number_of_workers(there: int, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` in code is the number of processors, but at most 256."""
    monkeypatch.setattr("flagsvc.core.control_groups.processors", lambda: there)
    assert ProxyOptions(**OPTIONS, workers="auto").workers == workers
    assert ProxyOptions(**OPTIONS, workers=4).workers == 4


@pytest.mark.parametrize("workers", ["0", "257", "automatic", "1.5"])
def test_what_is_no_number_of_workers(workers: str) -> None:
    """The message names `auto` and the range."""
    with pytest.raises(ConfigurationError, match="expected `auto`, or an integer from 1 to 256"):
        ProxyOptions(**OPTIONS, workers=workers)
