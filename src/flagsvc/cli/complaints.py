"""How a command tells what is wrong, on standard error: lines of text, or of JSON where the program's other lines are JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from flagsvc.core.errors import FlagsvcError
from flagsvc.settings.kinds import BOOLEANS

SERVING = ("flagsvc proxy", "flagsvc server")
"""The programs that log, and may log JSON."""
VARIABLE = "JSON_LOGGER"


class JsonError(FlagsvcError):
    """Asks for `cause` to be told as lines of JSON."""

    def __init__(self, cause: FlagsvcError) -> None:
        self.cause = cause
        super().__init__(str(cause))


def asked_for_json(program: str, environment: Mapping[str, str]) -> bool:
    """Return whether a program logs JSON by its variable: all that is known before its command line is understood."""
    return program in SERVING and BOOLEANS.get(environment.get(VARIABLE, "").strip().lower(), False)


def complain(program: str, problems: Sequence[str]) -> None:
    """Print what is wrong: one problem in a line, several as a list."""
    if len(problems) == 1:
        print(f"{program}: {problems[0]}", file=sys.stderr)
    else:
        lines = [f"{program}: {len(problems)} problems", *(f"  - {problem}" for problem in problems)]
        print("\n".join(lines), file=sys.stderr)


def complain_as_json(program: str, problems: Sequence[str]) -> None:
    """Print one line of JSON for each problem."""
    from flagsvc.core.log import build_logger

    logger = build_logger(as_json=True)
    for problem in problems:
        logger.fatal(f"{program}: {problem}")
