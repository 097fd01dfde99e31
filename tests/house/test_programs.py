"""Programs that tests start are gone afterwards, and know nothing of the options of the machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support import processes
from support.waiting import wait_until
from support.worker_pools import alive

SLEEPER = "print('begun', flush=True); import sys; sys.stdin.read()"
# The child does not read standard input: only a signal ends it in time.
PARENT = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid);" + SLEEPER
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEPER


def python(text: str) -> list[object]:
    return [sys.executable, "-c", text]


def test_a_program_that_will_not_end_is_killed(tmp_path: Path) -> None:
    """After its time a program is killed with its children."""
    with processes.running("stubborn", python(STUBBORN), env={}, folder=tmp_path) as program:
        program.wait(lambda: "begun" in program.output(), "begun")
        assert program.stop(seconds=0.2) == -9
    assert not alive(program.process.pid)


def test_children_of_a_program_that_was_killed_are_killed(tmp_path: Path) -> None:
    """A program that ended without ending its children leaves none of them behind either."""
    with processes.running("parent", python(PARENT), env={}, folder=tmp_path) as program:
        program.wait(lambda: "begun" in program.output(), "begun")
        child = int(program.output().split()[0])
        program.process.kill()
        assert program.process.wait(20) == -9
        assert alive(child)
    wait_until(lambda: not alive(child))


def test_a_program_inherits_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the test run do not reach the programs."""
    for name in ("FLAGSVC_URL", "UNLEASH_API_TOKEN", "HTTP_PROXY", "LOG_LEVEL"):
        monkeypatch.setenv(name, "something")
    telling = python("import os; print(sorted(os.environ))")
    with processes.running("telling", telling, env={"GIVEN": "1"}, folder=tmp_path) as program:
        assert program.process.wait(20) == 0
    assert "GIVEN" in program.output()
    assert "something" not in program.output()
    assert not {"FLAGSVC_URL", "UNLEASH_API_TOKEN", "HTTP_PROXY", "LOG_LEVEL"} & set(program.output().split("'"))
