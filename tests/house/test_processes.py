"""Programs that tests start: waited for by a condition, shown when they fail, and gone afterwards."""

from __future__ import annotations

import os
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
    """Return a command that runs a line of Python."""
    return [sys.executable, "-c", text]


def gone(number: int) -> bool:
    """Return whether no process of this id is left."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_program_is_waited_for_and_stopped(tmp_path: Path) -> None:
    """The block continues when the condition holds, and leaves no process."""
    with processes.running("sleeper", python(SLEEPER), env={}, folder=tmp_path) as program:
        program.wait(lambda: "begun" in program.output(), "begun")
    assert gone(program.process.pid)


def test_a_program_that_will_not_end_is_killed(tmp_path: Path) -> None:
    """After its time a program is killed with its children."""
    with processes.running("stubborn", python(STUBBORN), env={}, folder=tmp_path) as program:
        program.wait(lambda: "begun" in program.output(), "begun")
        assert program.stop(seconds=0.2) == -9
    assert gone(program.process.pid)


def test_children_of_a_program_that_was_killed_are_killed(tmp_path: Path) -> None:
    """A program that ended without ending its children leaves none of them behind either."""
    with processes.running("parent", python(PARENT), env={}, folder=tmp_path) as program:
        program.wait(lambda: "begun" in program.output(), "begun")
        child = int(program.output().split()[0])
        program.process.kill()
        assert program.process.wait(20) == -9
        assert alive(child)
    wait_until(lambda: not alive(child))


def test_a_program_that_fails_shows_what_it_wrote(tmp_path: Path) -> None:
    """The failure of a test says what the program said, and how it ended."""
    failing = python("import sys; print('some complaint'); sys.exit(3)")
    with (
        pytest.raises(AssertionError, match="ended with 3 before it was ready:\nsome complaint"),
        processes.running("failing", failing, env={}, folder=tmp_path) as program,
    ):
        program.wait(lambda: False, "ready")


def test_waiting_ends(tmp_path: Path) -> None:
    """A condition that never holds fails within its time."""
    with (
        pytest.raises(AssertionError, match=r"was not ready within 0\.1 s"),
        processes.running("sleeper", python(SLEEPER), env={}, folder=tmp_path) as program,
    ):
        program.wait(lambda: False, "ready", 0.1)


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
