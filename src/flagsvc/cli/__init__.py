"""The command `flagsvc`: finds the command, parses its arguments, runs it, and turns errors into exit codes.

0    success, or the proxy is ready
1    failure, or the proxy is not ready
2    the usage or the configuration is wrong, or an extra is not installed: every problem is on standard error
130  stopped by Ctrl-C
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from flagsvc.cli.commands import BY_NAME, PREFIXES, Command
from flagsvc.cli.parser import ELSEWHERE, UsageError, find_command, format_overview, open_command, split_command
from flagsvc.core.ending import end_process
from flagsvc.core.errors import (
    BackupError,
    ConfigurationError,
    ExtensionError,
    FlagsvcError,
    MissingExtraError,
    SeedError,
)
from flagsvc.core.version import version_text
from flagsvc.settings.kinds import BOOLEANS

__all__ = ["main", "process"]

EXIT_CODES: dict[type[FlagsvcError], int] = {
    UsageError: 2,
    ConfigurationError: 2,
    MissingExtraError: 2,
    ExtensionError: 2,
    SeedError: 2,
    BackupError: 2,
}
"""Errors that the caller can correct; every other error of ours exits with 1."""


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of a file that standard output goes to, where the disk, a quota or a limit is reached."""


def process() -> NoReturn:
    """Run the process's command line, and end the process with its exit code."""
    end_process(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default that of the process, and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    program = " ".join(["flagsvc", *(name for name in split_command(arguments)[:1] if name in PREFIXES)])
    _escape_unencodable_characters()
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except JsonError as error:
        print_problems_as_json(program, str(error).splitlines())
        return _exit_code(error.cause)
    except FlagsvcError as error:
        as_json = isinstance(error, UsageError) and wants_json(program, os.environ)
        (print_problems_as_json if as_json else print_problems)(program, str(error).splitlines())
        return _exit_code(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard_output()
        return 1
    except OSError as error:
        if error.errno not in NO_ROOM or error.filename is not None:
            raise
        print_problems(program, [f"cannot write standard output: {(error.strerror or 'failed').lower()}"])
        _discard_output()
        return 1


def _run(arguments: list[str]) -> int:
    """Run the command named by the first argument."""
    first, rest = split_command(arguments)
    if first in ("--version", "-V"):
        print(f"flagsvc {version_text()}")
        return 0
    if first in ("--help", "-h"):
        print(format_overview())
        return 0
    if not first:
        print(format_overview(), file=sys.stderr)
        return 2
    if first in PREFIXES and first not in BY_NAME and rest[:1] in (["--help"], ["-h"]):
        print(format_overview(first))
        return 0
    others = [word for word in rest if word in ELSEWHERE] if first.startswith("-") else []  # Edge's options come first
    return _dispatch(find_command((others or [first])[0], *rest[:1]), rest)


def _dispatch(command: Command, arguments: list[str]) -> int:
    """Import the module of a command, parse its arguments and run it."""
    module, parser = open_command(command)
    try:
        parsed = parser.parse_args(arguments)
    except SystemExit as helped:  # after --help
        return int(helped.code or 0)
    code: int = module.run(parsed)
    return code


def _exit_code(error: FlagsvcError) -> int:
    return EXIT_CODES.get(type(error), 1)


def _escape_unencodable_characters() -> None:
    """Make standard output escape characters that its encoding does not have, as standard error does."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Discard further output, so that Python does not report a closed pipe at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
