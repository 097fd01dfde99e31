"""A process that ends itself loses nothing."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading

import pytest

from flagsvc.core import ending
from support.forms import SOURCES

HEAD = "import atexit, os, signal, sys, threading\nfrom flagsvc.core.ending import end_process\n"


def ended(script: str) -> tuple[int, str, str]:
    """Return the exit code and the output of a process that runs a script."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script],
        env={"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("code", [0, 3])
def test_what_is_registered_runs_and_output_is_written(code: int) -> None:
    """The exit code is the given code. Functions that are registered for the end run, and their output is written as well."""
    script = f"atexit.register(print, 'registered')\nprint('printed')\nsys.stderr.write('said')\nend_process({code})"
    assert ended(script) == (code, "printed\nregistered\n", "said")


def test_objects_are_not_taken_apart() -> None:
    """The process does not wait until Python has freed all objects."""
    assert ended("class A:\n  def __del__(self): print('freed')\na = A()\nend_process(0)") == (0, "", "")


def test_a_thread_that_runs_on_is_waited_for() -> None:
    """A thread that is not a daemon finishes its work. A daemon does not hold the end up."""
    ends_last = "threading.Thread(target=lambda: (threading.main_thread().join(), print('done'))).start()\nend_process(3)"
    assert ended(ends_last) == (3, "done\n", "")
    assert ended("threading.Thread(target=threading.Event().wait, daemon=True).start()\nend_process(3)") == (3, "", "")


@pytest.mark.parametrize(
    "script",
    [
        *(f"atexit.register(os.kill, os.getpid(), signal.{name})" for name in ("SIGTERM", "SIGINT", "SIGHUP")),
        "sys.stdout.write('lost')\nos.close(1)",
        *("sys.stdout.close()", "sys.stdout = None", "sys.stderr = None"),
    ],
)
def test_nothing_changes_the_exit_code(script: str) -> None:
    """Neither a signal when the work is done, nor output that nothing takes any more, nor a stream that is missing."""
    assert ended(f"{script}\nend_process(3)") == (3, "", "")


def test_the_order_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals are ignored first. Then what is registered runs, and at last the process ends, with all output written."""
    done: list[object] = []
    names = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {name: signal.getsignal(name) for name in names}

    def end(code: int) -> None:
        done.append(code)
        raise SystemExit(code)

    monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: done.extend(signal.getsignal(name) for name in names))
    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.current_thread()])
    try:
        with pytest.raises(SystemExit):
            ending.end_process(3)
        assert done == [signal.SIG_IGN] * 3 + [3]
        monkeypatch.setattr(threading, "enumerate", lambda: [threading.Thread()])
        with pytest.raises(SystemExit):
            ending.end_process(4)
        assert done[-1] == 3, "Python itself ends a process with other threads"
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
