"""Parses arguments. Wrong usage gives one message, which names the nearest flag and never repeats a value."""

from __future__ import annotations

import re
import sys
from argparse import (
    SUPPRESS,
    Action,
    ArgumentParser,
    ArgumentTypeError,
    HelpFormatter,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from flagsvc.cli.commands import BY_NAME, COMMANDS, PREFIXES, Command, Subcommand, words_after
from flagsvc.core.errors import FlagsvcError
from flagsvc.settings.environments import TABLE, VARIABLES
from flagsvc.settings.kinds import nearest, printable
from flagsvc.settings.option import FILE_FLAG
from flagsvc.settings.render import ROW
from flagsvc.settings.table import MOST_USED, SERVER_MOST_USED
from flagsvc.settings.unread import KIND_WORDS

SHORT_HELP_OPTIONS = (*MOST_USED, *SERVER_MOST_USED)
"""The options of both programs in the short help."""

MESSAGES = (
    (r"^argument (--?[\w-]++)[^:]*: expected .*arguments?$", r"`\1` needs a value"),
    (r"^argument (--?[\w-]++)[^:]*: ", r"`\1`: "),
    (r"^the following arguments are required: (.*)$", r"missing: \1"),
)
"""Patterns of the standard library's messages, and our wording."""


RUNS = "here it is `flagsvc proxy`, and `flagsvc migrate -- {} …` translates its command line"
ELSEWHERE = {
    "edge": RUNS.format("edge"),
    "offline": RUNS.format("offline"),
    "unleash-edge": RUNS.format("edge"),
    "ready": "here it is `flagsvc health`",
}
"""Commands of Unleash Edge that are none here → what to type instead."""
ENVIRONMENTS_FLAG = f"--{TABLE}"
NO_FLAG = (
    f"several environments are tables [{TABLE}.NAME] in the file of --config, or {VARIABLES[0]} names them: "
    "see `flagsvc help proxy`"
)


class UsageError(FlagsvcError):
    """A command line is wrong; the message says how."""


class OptionFormatter(HelpFormatter):
    """Help in two columns, with room for our longer flags."""

    def __init__(self, prog: str, **given: Any) -> None:
        super().__init__(prog, **{"max_help_position": 34, **given})


class ParagraphFormatter(OptionFormatter, RawDescriptionHelpFormatter):
    """A help formatter that keeps the lines of description and examples."""


class ShortHelp(Action):
    """Prints the short help and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, **given: Any) -> None:
        super().__init__(option_strings, SUPPRESS, **{**given, "default": SUPPRESS})

    def __call__(self, parser: ArgumentParser, *given: object) -> None:
        """Print it."""
        print(parser.format_short_help() if isinstance(parser, CommandParser) else parser.format_help(), end="")
        parser.exit()


def is_used_most(action: Action) -> bool:
    """Return whether the short help shows an argument: always one of the command itself, an option only if listed."""
    return getattr(action, ROW, SHORT_HELP_OPTIONS[0]) in SHORT_HELP_OPTIONS


class CommandParser(ArgumentParser):
    """An argument parser that raises `UsageError` where the standard library's prints and exits."""

    rest = ""
    """The name under which the parsed arguments hold the words behind `--`. Without it, such words are positional arguments."""
    absent: Mapping[str, str] = {}
    """Flags that somebody may expect and that the command does not have → what to do instead."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"formatter_class": OptionFormatter, "allow_abbrev": False, "add_help": False, **given})
        self.add_argument("-h", action=ShortHelp, nargs=0, help="show the most used options")
        self.add_argument("--help", action="help", help="show all options")

    def format_help(self) -> str:
        """Return the help; its usage line does not repeat every flag."""
        self._shorten_usage()
        return super().format_help()

    def format_short_help(self) -> str:
        """Return the help without rarely used options, and without the epilog."""
        self._shorten_usage()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text((self.description or "").partition("\n\n")[0])
        most_used = [action for action in self._actions if is_used_most(action)]
        formatter.start_section("arguments")
        formatter.add_arguments([action for action in most_used if not action.option_strings])
        formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([action for action in most_used if action.option_strings])
        formatter.end_section()
        if len(most_used) < len(self._actions):
            formatter.add_text(f"{self.prog} --help shows all options.")
        return formatter.format_help()

    def _shorten_usage(self) -> None:
        """Show only the positional arguments in the usage line."""
        positional = [str(action.metavar or action.dest) for action in self._get_positional_actions()]
        self.usage = " ".join(["%(prog)s", *positional, "[options]"])

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the parsed arguments; raise `UsageError` for an unknown one."""
        words = list(sys.argv[1:] if args is None else args)
        end = words.index("--") if self.rest and "--" in words else len(words)
        parsed, unknown = self.parse_known_args(words[:end], namespace)
        if self.rest:
            setattr(parsed, self.rest, words[end + 1 :])
        if unknown:
            self.error(self._unknown(unknown))
        return parsed

    def _unknown(self, unknown: Sequence[str]) -> str:
        """Return the message about unknown arguments; it does not repeat a value, which may be a secret."""
        flag = next((item.partition("=")[0] for item in unknown if item.startswith("-")), "")
        if not flag:
            return "unexpected argument: every option starts with --"
        hint = self.absent.get(flag) or nearest(flag, self._same_kind(flag))
        return f"unknown option `{printable(flag)}`; {hint}".removesuffix("; ")

    def _same_kind(self, flag: str) -> list[str]:
        """Return the flags that take what an unknown one does by its last word: none but ports for `--admin-port`."""
        word = flag.upper().rpartition("-")[2]
        return [
            each
            for each, action in self._option_string_actions.items()
            if word not in KIND_WORDS or word in (each.upper().rpartition("-")[2], action.metavar)
        ]

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` with the message in our wording."""
        for pattern, ours in MESSAGES:
            message = re.sub(pattern, ours, message)
        raise UsageError(message)


def format_overview(prefix: str = "") -> str:
    """Return the help of `flagsvc` itself, or of all commands with these first words."""
    shown = [command for command in COMMANDS if not prefix or f"{command.name} ".startswith(f"{prefix} ")]
    width = max(len(command.name) for command in shown)
    lines = [f"  {command.name:{width}}  {command.summary}" for command in shown]
    return "\n".join(
        [
            f"usage: flagsvc {'COMMAND' if not prefix else f'{prefix} COMMAND'} [options]",
            "",
            *(() if prefix else ("Evaluates feature flags for client applications: server-side, results only.", "")),
            "commands",
            *lines,
            "",
            "flagsvc COMMAND -h shows the most used options of a command, flagsvc help COMMAND all of them;",
            "flagsvc --version shows the version.",
        ]
    )


def split_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name of a command at the beginning of a command line, or the beginning of one, and the other words."""
    count = 1
    while " ".join(words[: count + 1]) in PREFIXES and count < len(words):
        count += 1
    return " ".join(words[:count]), list(words[count:])


def find_command(name: str, following: str = "") -> Command:
    """Return a command by its name; raise `UsageError` with the nearest name for an unknown one, or what it is called here.

    `following` is the word after the name. It is not repeated in the message, because it may be a secret.
    """
    if name in ELSEWHERE:
        raise UsageError(f"`{name}` is a command of Unleash Edge: {ELSEWHERE[name]}")
    if name not in PREFIXES:
        raise UsageError(f"unknown command `{printable(name)}`; {_hint(name, '')}")
    if words_after(name) and following and not following.startswith("-"):
        raise UsageError(f"unexpected argument; {_hint(following, name)}")
    if name not in BY_NAME:
        raise UsageError(f"`{name}` needs another word; {_hint('', name)}")
    return BY_NAME[name]


def _hint(word: str, prefix: str) -> str:
    """Return the nearest word of a command's name, or all that may follow the first words."""
    known = words_after(prefix)
    names = ", ".join(f"{prefix} {each}".strip() for each in known)
    return nearest(word, known) or f"the commands are {names}"


def open_command(command: Command) -> tuple[ModuleType | Subcommand, CommandParser]:
    """Import the module of a command; return it, or the part of it, and the parser of its arguments."""
    name, _, part = command.module.partition(":")
    module = import_module(name)
    found: ModuleType | Subcommand = getattr(module, part) if part else module
    parser = CommandParser(prog=f"flagsvc {command.name}", description=found.__doc__)
    found.add_arguments(parser)
    return found, parser


def explain_environments(parser: ArgumentParser) -> None:
    """Tell somebody who gives environments by a flag where they are set."""
    if isinstance(parser, CommandParser):
        parser.absent = dict.fromkeys((ENVIRONMENTS_FLAG, ENVIRONMENTS_FLAG + FILE_FLAG), NO_FLAG)


def add_config_argument(parser: ArgumentParser) -> None:
    """Add `--config FILE`, for all commands with a configuration."""
    parser.add_argument("--config", metavar="FILE", help="TOML file with the options' names [FLAGSVC_CONFIG]")


def parse_seconds(text: str, what: str = "up", *, zero: bool = False) -> float:
    """Return a number of seconds up to a day; 0 only with `zero`. `what` is a part of the message."""
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 86_400 or not (number or zero):
        raise ArgumentTypeError(f"expected a number of seconds {what} to 86400")
    return number


def add_help_arguments(parser: ArgumentParser) -> None:
    text = "the command, or the first words of several [default: list the commands]"
    parser.add_argument("command", metavar="COMMAND", nargs="*", help=text)


def show_help(args: Namespace) -> int:
    """Print the help and return 0; raises `UsageError` for a command that does not exist."""
    name, rest = split_command(args.command)
    if name in PREFIXES and name not in BY_NAME and not rest:
        print(format_overview(name))
    elif args.command:
        _, parser = open_command(find_command(name, *rest[:1]))
        print(parser.format_help(), end="")
    else:
        print(format_overview())
    return 0


HELP = Subcommand("Show all options of a command: the same as `flagsvc COMMAND --help`.", add_help_arguments, show_help)
