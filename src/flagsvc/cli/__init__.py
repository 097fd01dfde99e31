"""The command `flagsvc`: finds the row of the command, lets it add its arguments, runs it, turns errors into exit codes.

0    done, or the proxy is ready
1    it did not work, or the proxy is not ready
2    the usage or the configuration is wrong: every problem is on standard error
130  stopped by Ctrl-C
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from flagsvc.cli.commands import BY_NAME, Command
from flagsvc.cli.complaints import JsonError, asked_for_json, complain, complain_as_json
from flagsvc.cli.parser import UsageError, command_named, opened, overview
from flagsvc.core.errors import ConfigurationError, ExtensionError, FlagsvcError, SeedError
from flagsvc.core.version import version_text

__all__ = ["main", "process"]

LATE = ("SIGTERM", "SIGINT", "SIGHUP")
"""Signals that ask a process to end."""
EXIT_CODES: dict[type[FlagsvcError], int] = {UsageError: 2, ConfigurationError: 2, ExtensionError: 2, SeedError: 2}
"""What is for the person who called to put right; any other of our errors is 1."""


def process() -> NoReturn:
    """Run the process's command line, and end the process with its exit code.

    That takes Python a moment, and by then all is done: a signal that comes so late is no reason for another exit code.
    """
    code = main()
    for name in LATE:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    program = " ".join(["flagsvc", *(word for word in arguments[:1] if word in BY_NAME)])
    _take_any_character()
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except JsonError as error:
        complain_as_json(program, str(error).splitlines())
        return _exit_code(error.cause)
    except FlagsvcError as error:
        as_json = isinstance(error, UsageError) and asked_for_json(program, os.environ)
        (complain_as_json if as_json else complain)(program, str(error).splitlines())
        return _exit_code(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _silence()
        return 1


def _run(arguments: list[str]) -> int:
    """Run the command that the first argument names."""
    first, rest = (arguments or [""])[0], arguments[1:]
    if first in ("--version", "-V"):
        print(f"flagsvc {version_text()}")
        return 0
    if first in ("--help", "-h"):
        print(overview())
        return 0
    if not first:
        print(overview(), file=sys.stderr)
        return 2
    return _dispatch(command_named(first), rest)


def _dispatch(command: Command, arguments: list[str]) -> int:
    """Import the module of a command, parse its arguments and run it."""
    module, parser = opened(command)
    try:
        parsed = parser.parse_args(arguments)
    except SystemExit as helped:  # after --help
        return int(helped.code or 0)
    code: int = module.run(parsed)
    return code


def _exit_code(error: FlagsvcError) -> int:
    """Return the exit code that an error ends with."""
    return EXIT_CODES.get(type(error), 1)


def _take_any_character() -> None:
    """Let standard output show a character that its encoding does not have as an escape, as standard error does."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _silence() -> None:
    """Let nobody complain that nobody reads standard output any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
