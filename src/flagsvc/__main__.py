"""The program `flagsvc`, also as `python -m flagsvc`. First of all it sees to it that no SIGHUP ends it, then it loads the rest."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

SERVING = ("proxy", "server")
"""The commands that SIGHUP asks to read their files again. What they read at their start honours one that comes before they can."""
LOST = 129
"""The exit code of a program whose terminal is gone, as a shell has it."""


def heed_no_hangup() -> None:
    """Have a SIGHUP not end the process; but a terminal that goes away sends it as well, and ends what was started from it."""

    def hang_up(number: int, frame: object) -> None:
        if not os.isatty(0):
            os._exit(LOST)

    signal.signal(signal.SIGHUP, hang_up if os.isatty(0) else signal.SIG_IGN)


def run() -> NoReturn:
    """Run the process's command line, and end the process with its exit code."""
    if sys.argv[1:2] and sys.argv[1] in SERVING and hasattr(signal, "SIGHUP"):
        heed_no_hangup()
    from flagsvc.cli import process

    process()


if __name__ == "__main__":
    run()
