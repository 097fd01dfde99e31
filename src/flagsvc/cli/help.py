"""Show all options of a command: the same as `flagsvc COMMAND --help`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from flagsvc.cli.commands import BY_NAME, PREFIXES
from flagsvc.cli.parser import find_command, format_overview, open_command, split_command


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's name."""
    text = "the command, or the first words of several [default: list the commands]"
    parser.add_argument("command", metavar="COMMAND", nargs="*", help=text)


def run(args: Namespace) -> int:
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
