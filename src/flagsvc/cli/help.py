"""Show all options of a command: the same as `flagsvc COMMAND --help`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from flagsvc.cli.parser import find_command, format_overview, open_command


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's name."""
    parser.add_argument("command", metavar="COMMAND", nargs="?", help="the command [default: list the commands]")


def run(args: Namespace) -> int:
    """Print the help and return 0; raises `UsageError` for a command that does not exist."""
    if args.command is None:
        print(format_overview())
    else:
        _, parser = open_command(find_command(args.command))
        print(parser.format_help(), end="")
    return 0
