"""Asks for confirmation."""

from __future__ import annotations

import sys


def confirm(command: str, question: str, nothing_done: str, *, yes: bool, interactive: bool = True) -> int | None:
    """Return None if the user or --yes confirms; else print `nothing_done` and return the exit code.

    `interactive` is false if standard input contains a file instead of answers.
    """
    if yes:
        return None
    if not (interactive and sys.stdin.isatty()):
        text = "there is no terminal to ask at: --yes goes on without asking, --dry-run only shows"
        print(f"flagsvc {command}: {nothing_done}: {text}", file=sys.stderr)
        return 2
    sys.stdout.flush()
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return None
    print(nothing_done)
    return 1
