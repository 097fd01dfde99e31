"""Process metrics of several collect_process_metrics."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flagsvc.process.serve_workers import collect_process_metrics, measure_process
from support.needs import missing


@pytest.fixture(autouse=True)
def proc() -> None:
    """Skip the test if the system has no /proc."""
    if not list(measure_process("self")):
        missing("this system has no /proc")


def values(*pids: int) -> dict[str, float]:
    """Return the metrics by name."""
    return {metric.name: metric.samples[0].value for metric in collect_process_metrics(pids)}


def test_the_sum() -> None:
    """Memory and descriptors of a worker are added; the start time is the parent's."""
    alone = values()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        both = values(child.pid)
        assert both["process_virtual_memory_bytes"] > alone["process_virtual_memory_bytes"]
        assert both["process_max_fds"] > alone["process_max_fds"]
        assert both["process_start_time_seconds"] == alone["process_start_time_seconds"]
        child.kill()


def test_time_of_those_that_have_ended() -> None:
    """The CPU time of a worker that has ended stays in the sum."""
    before = values()["process_cpu_seconds"]
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert values()["process_cpu_seconds"] > before


def test_a_process_that_is_gone() -> None:
    """It adds nothing."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert values(child.pid)["process_max_fds"] == values()["process_max_fds"]
