"""Argument parsing with one clear message for bad usage, which names the nearest flag and never repeats a value."""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action, ArgumentParser, HelpFormatter
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from flagsvc.cli.commands import BY_NAME, COMMANDS, Command
from flagsvc.core.errors import FlagsvcError
from flagsvc.settings.kinds import nearest, printable
from flagsvc.settings.render import ROW
from flagsvc.settings.table import MOST_USED

SHORT = (*MOST_USED, "database", "seed")
"""The options of both programs that the short help tells."""

WORDING = (
    (r"^argument (--?[\w-]+)[^:]*: expected .*arguments?$", r"`\1` needs a value"),
    (r"^argument (--?[\w-]+)[^:]*: ", r"`\1`: "),
    (r"^the following arguments are required: (.*)$", r"missing: \1"),
)
"""The standard library's complaints and how they read here."""


class UsageError(FlagsvcError):
    """A command line is wrong; the message says how."""


class OptionFormatter(HelpFormatter):
    """Help in two columns that leave room for our longer flags."""

    def __init__(self, prog: str, **given: Any) -> None:
        super().__init__(prog, **{"max_help_position": 34, **given})


class ShortHelp(Action):
    """Prints the short help and ends."""

    def __init__(self, option_strings: Sequence[str], dest: str, **given: Any) -> None:
        super().__init__(option_strings, SUPPRESS, **{**given, "default": SUPPRESS})

    def __call__(self, parser: ArgumentParser, *given: object) -> None:
        """Print it."""
        print(parser.format_short_help() if isinstance(parser, CommandParser) else parser.format_help(), end="")
        parser.exit()


def is_used_most(action: Action) -> bool:
    """Return whether an argument is in the short help: a command's own always is, an option of the programs if in SHORT."""
    return getattr(action, ROW, SHORT[0]) in SHORT


class CommandParser(ArgumentParser):
    """An argument parser that raises `UsageError` where the standard library's prints and exits."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"formatter_class": OptionFormatter, "allow_abbrev": False, "add_help": False, **given})
        self.add_argument("-h", action=ShortHelp, nargs=0, help="show the most used options")
        self.add_argument("--help", action="help", help="show all options")

    def format_help(self) -> str:
        """Return the help; its usage line does not repeat every flag."""
        self._shorten_usage()
        return super().format_help()

    def format_short_help(self) -> str:
        """Return the help without the options that are rarely used, and without what else there is to say."""
        self._shorten_usage()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text((self.description or "").partition("\n\n")[0])
        shown = [action for action in self._actions if is_used_most(action)]
        formatter.start_section("arguments")
        formatter.add_arguments([action for action in shown if not action.option_strings])
        formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([action for action in shown if action.option_strings])
        formatter.end_section()
        if len(shown) < len(self._actions):
            formatter.add_text(f"{self.prog} --help shows all options.")
        return formatter.format_help()

    def _shorten_usage(self) -> None:
        """Name the positional arguments alone in the usage line."""
        positional = [str(action.metavar or action.dest) for action in self._get_positional_actions()]
        self.usage = " ".join(["%(prog)s", *positional, "[options]"])

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
            "flagsvc COMMAND -h shows the most used options of a command, flagsvc help COMMAND all of them;",
            "flagsvc --version shows the version.",
        ]
    )


def command_named(word: str) -> Command:
    """Return the row of a command; raise `UsageError` with the nearest one where there is none."""
    if word not in BY_NAME:
        hint = nearest(word, list(BY_NAME)) or f"the commands are {', '.join(BY_NAME)}"
        raise UsageError(f"unknown command `{printable(word)}`; {hint}")
    return BY_NAME[word]


def opened(command: Command) -> tuple[ModuleType, CommandParser]:
    """Import the module of a command; return it with the parser of its arguments."""
    module = import_module(command.module)
    parser = CommandParser(prog=f"flagsvc {command.name}", description=module.__doc__)
    module.add_arguments(parser)
    return module, parser


def add_config_argument(parser: ArgumentParser) -> None:
    """Add `--config FILE`, which the commands that need a configuration share."""
    parser.add_argument("--config", metavar="FILE", help="TOML file with the options' names [FLAGSVC_CONFIG]")
