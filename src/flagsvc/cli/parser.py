"""Argument parsing with one clear message for bad usage, which names the nearest flag and never repeats a value."""

from __future__ import annotations

import re
from argparse import ArgumentParser, HelpFormatter
from collections.abc import Sequence
from typing import Any, NoReturn

from flagsvc.cli.commands import COMMANDS
from flagsvc.errors import FlagsvcError
from flagsvc.settings.parse import nearest, printable

WORDING = (
    (r"^argument (--?[\w-]+)[^:]*: expected .*arguments?$", r"`\1` needs a value"),
    (r"^argument (--?[\w-]+)[^:]*: ", r"`\1`: "),
    (r"^the following arguments are required: (.*)$", r"missing: \1"),
)
"""The standard library's complaints and how they read here."""


class UsageError(FlagsvcError):
    """A command line is wrong; the message says how."""


class Formatter(HelpFormatter):
    """Help in two columns that leave room for our longer flags."""

    def __init__(self, prog: str, **given: Any) -> None:
        super().__init__(prog, **{"max_help_position": 34, **given})


class Parser(ArgumentParser):
    """An argument parser that raises `UsageError` where the standard library's prints and exits."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"formatter_class": Formatter, "allow_abbrev": False, **given})

    def format_help(self) -> str:
        """Return the help; its usage line does not repeat every flag."""
        positional = [str(action.metavar or action.dest) for action in self._get_positional_actions()]
        self.usage = " ".join(["%(prog)s", *positional, "[options]"])
        return super().format_help()

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the parsed arguments; raise `UsageError` for one that is not known."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown(unknown))
        return parsed

    def _unknown(self, unknown: Sequence[str]) -> str:
        """Return what is wrong with arguments nobody takes; a value may be a secret and is not repeated."""
        flag = next((item.partition("=")[0] for item in unknown if item.startswith("-")), "")
        if not flag:
            return "unexpected argument: every option starts with --"
        return f"unknown option `{printable(flag)}`; {nearest(flag, list(self._option_string_actions))}".removesuffix(
            "; "
        )

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` with the message in the words of this project."""
        for pattern, ours in WORDING:
            message = re.sub(pattern, ours, message)
        raise UsageError(message)


def overview() -> str:
    """Return the help of `flagsvc` itself."""
    width = max(len(command.name) for command in COMMANDS)
    lines = [f"  {command.name:{width}}  {command.summary}" for command in COMMANDS]
    return "\n".join(
        [
            "usage: flagsvc COMMAND [options]",
            "",
            "Evaluates feature flags for client applications: server-side, results only.",
            "",
            "commands",
            *lines,
            "",
            "flagsvc COMMAND --help tells the options of a command; flagsvc --version the version.",
        ]
    )


def add_config_argument(parser: ArgumentParser) -> None:
    """Add `--config FILE`, which the commands that need a configuration share."""
    parser.add_argument("--config", metavar="FILE", help="TOML file with the options' names [FLAGSVC_CONFIG]")
