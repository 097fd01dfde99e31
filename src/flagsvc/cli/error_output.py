"""Prints errors to standard error, as text or, for a program that logs JSON, as lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from flagsvc.core.errors import FlagsvcError
from flagsvc.settings.kinds import BOOLEANS

SERVING = ("flagsvc proxy", "flagsvc server")
"""The programs that log, and may log JSON."""
VARIABLE = "JSON_LOGGER"


class JsonError(FlagsvcError):
    """Wraps an error that must be printed as lines of JSON."""

    def __init__(self, cause: FlagsvcError) -> None:
        self.cause = cause
        super().__init__(str(cause))


def wants_json(program: str, environment: Mapping[str, str]) -> bool:
    """Return whether a program logs JSON by its environment variable, the only source before its command line is parsed."""
    return program in SERVING and BOOLEANS.get(environment.get(VARIABLE, "").strip().lower(), False)


def print_problems(program: str, problems: Sequence[str]) -> None:
    """Print problems: a single one as a line, several as a list."""
    if len(problems) == 1:
        print(f"{program}: {problems[0]}", file=sys.stderr)
    else:
        lines = [f"{program}: {len(problems)} problems", *(f"  - {problem}" for problem in problems)]
        print("\n".join(lines), file=sys.stderr)


def print_problems_as_json(program: str, problems: Sequence[str]) -> None:
    """Print one line of JSON for each problem."""
    from flagsvc.core.log import build_logger

    logger = build_logger(as_json=True)
    for problem in problems:
        logger.fatal(f"{program}: {problem}")
