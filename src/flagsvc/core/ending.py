"""The end of a process whose work is done."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from typing import NoReturn

ENDING_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")
"""Signals that ask a process to end."""


def end_process(code: int) -> NoReturn:
    """End the process with an exit code. What is registered for the end runs, and output that waits is written.

    Python itself takes all modules and objects apart, which costs the flag server 0.3 s of CPU time. It ends the process only where
    other threads run on, because it waits for them. A signal must not change the exit code, because all work is done.
    """
    for name in ENDING_SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if any(not each.daemon for each in threading.enumerate() if each is not threading.current_thread()):
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with contextlib.suppress(OSError, ValueError):  # what reads it is gone
            stream.flush()
    os._exit(code)
