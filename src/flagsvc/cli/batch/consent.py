"""Asking whether to go on."""

from __future__ import annotations

import sys


def consent(command: str, question: str, undone: str, *, yes: bool, listening: bool = True) -> int | None:
    """Return None where a person, or --yes, says to go on, else the exit code, after saying that nothing was done.

    `listening` is false where standard input holds something else than answers; `undone` is what did not happen.
    """
    if yes:
        return None
    if not (listening and sys.stdin.isatty()):
        text = "there is no terminal to ask at: --yes goes on without asking, --dry-run only shows"
        print(f"flagsvc {command}: {undone}: {text}", file=sys.stderr)
        return 2
    sys.stdout.flush()
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return None
    print(undone)
    return 1
