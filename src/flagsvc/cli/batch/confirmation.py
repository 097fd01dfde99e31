"""Asks for confirmation."""

from __future__ import annotations

import sys


def confirm(
    command: str, question: str, nothing_done: str, *, yes: bool, interactive: bool = True, shows: str = "--dry-run"
) -> int | None:
    """Return None if the user or --yes confirms; else print `nothing_done` and return the exit code.

    `interactive` is false if standard input contains a file instead of answers. `shows` is the option that only shows; empty if
    there is none.
    """
    if yes:
        return None
    if not (interactive and sys.stdin.isatty()):
        other = f", {shows} only shows" if shows else ""
        text = f"there is no terminal to ask at: --yes goes on without asking{other}"
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
