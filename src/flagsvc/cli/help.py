"""Show the options of a command, all of them: the same as `flagsvc COMMAND --help`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from flagsvc.cli.parser import command_named, opened, overview


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's name."""
    parser.add_argument("command", metavar="COMMAND", nargs="?", help="the command [default: show which there are]")


def run(args: Namespace) -> int:
    """Print the help and return 0; raises `UsageError` for a command that does not exist."""
    if args.command is None:
        print(overview())
    else:
        _, parser = opened(command_named(args.command))
        print(parser.format_help(), end="")
    return 0
