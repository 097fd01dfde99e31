"""The commands, one row each. A command is a module with `add_arguments(parser)` and `run(args) -> int`."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One command: its name, its module (imported only when it runs), and a one-line summary."""

    name: str
    module: str
    summary: str


COMMANDS = (
    Command("proxy", "flagsvc.cli.proxy", "run the proxy"),
    Command("server", "flagsvc.cli.server", "run the flag server"),
    Command("config", "flagsvc.cli.config", "show what is set, where each value came from, and what is odd"),
    Command("evaluate", "flagsvc.cli.evaluate", "evaluate a document of flags without a server"),
    Command("validate", "flagsvc.cli.validate", "ask a flag server whether a file of flags can be imported"),
    Command("import", "flagsvc.cli.import_", "import a file of flags into a flag server"),
    Command("export", "flagsvc.cli.export", "write flags of a flag server into a file"),
    Command("move", "flagsvc.cli.move", "move the flags of a flag server to another, with all that they need"),
    Command("migrate", "flagsvc.cli.migrate", "print our configuration for that of Unleash Edge or @unleash/proxy"),
    Command("health", "flagsvc.cli.health", "tell by exit code whether the proxy, or the flag server, is ready"),
    Command("completion", "flagsvc.cli.completion", "print the completion script for bash, zsh or fish"),
    Command("help", "flagsvc.cli.help", "show the options of a command"),
)

BY_NAME = {command.name: command for command in COMMANDS}
