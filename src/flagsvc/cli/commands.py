"""The commands, one row each. A command is a module or a `Subcommand`: `add_arguments(parser)` and `run(args) -> int`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import NamedTuple


class Command(NamedTuple):
    """One command: its name, its module (imported only when it runs), and a one-line summary.

    A name may have several words. The module of such a command may hold several: `module:NAME` is a `Subcommand`.
    """

    name: str
    module: str
    summary: str


class Subcommand:
    """A command that shares its module with others. `text` is its description in the help."""

    def __init__(self, text: str, add_arguments: Callable[[ArgumentParser], None], run: Callable[[Namespace], int]) -> None:
        self.__doc__ = text
        self.add_arguments = add_arguments
        self.run = run


COMMANDS = (
    Command("proxy", "flagsvc.cli.programs:PROXY", "run the proxy"),
    Command("server", "flagsvc.cli.programs:SERVER", "run the flag server"),
    Command("server token create", "flagsvc.cli.team.tokens:CREATE", "create a token on the flag server's database"),
    Command("server token list", "flagsvc.cli.team.tokens:LIST", "list the tokens, without their secrets"),
    Command("server token revoke", "flagsvc.cli.team.tokens:REVOKE", "delete tokens; they end at once"),
    Command("server user create", "flagsvc.cli.team.users:CREATE", "create a user of the flag server"),
    Command("server user list", "flagsvc.cli.team.users:LIST", "list the users with their roles"),
    Command("server user role", "flagsvc.cli.team.users:ROLE", "set the role of a user, on the server or in a project"),
    Command("server user link", "flagsvc.cli.team.users:LINK", "link a user to an account at an OpenID provider"),
    Command("server user unlink", "flagsvc.cli.team.users:UNLINK", "unlink a user from such an account"),
    Command("server user remove", "flagsvc.cli.team.users:REMOVE", "delete a user with all personal tokens"),
    Command(
        "server sign-in-link",
        "flagsvc.cli.team.users:SIGN_IN_LINK",
        "print a link that signs a user in at the pages, once",
    ),
    Command("server backup", "flagsvc.cli.team.database:BACKUP", "write the flag server's database into a file"),
    Command("server restore", "flagsvc.cli.team.database:RESTORE", "make a database what it was at a backup"),
    Command("server seed apply", "flagsvc.cli.team.database:APPLY", "make the database what a seed file says, or plan it"),
    Command("config", "flagsvc.cli.programs:CONFIG", "show what is set, where each value came from, and what is odd"),
    Command("evaluate", "flagsvc.cli.evaluate", "evaluate a document of flags without a server"),
    Command("validate", "flagsvc.cli.import_:VALIDATE", "ask a flag server whether a file of flags can be imported"),
    Command("import", "flagsvc.cli.import_:IMPORT", "import a file of flags into a flag server"),
    Command("export", "flagsvc.cli.export", "write flags of a flag server into a file"),
    Command("move", "flagsvc.cli.move", "move the flags of a flag server to another, with all that they need"),
    Command("flags list", "flagsvc.cli.team.flags:LIST", "list the flags of a flag server with their states"),
    Command("flags show", "flagsvc.cli.team.flags:SHOW", "show a flag: every environment, strategies as sentences"),
    Command("flags on", "flagsvc.cli.team.flags:ON", "switch a flag on in an environment"),
    Command("flags off", "flagsvc.cli.team.flags:OFF", "switch a flag off in an environment"),
    Command("migrate", "flagsvc.cli.migrate", "print our configuration for that of Unleash Edge or @unleash/proxy"),
    Command("health", "flagsvc.cli.health", "tell by exit code whether the proxy, or the flag server, is ready"),
    Command("completion", "flagsvc.cli.completion", "print the completion script for bash, zsh or fish"),
    Command("help", "flagsvc.cli.parser:HELP", "show the options of a command"),
)

BY_NAME = {command.name: command for command in COMMANDS}
PREFIXES = tuple(
    dict.fromkeys(" ".join(words[:count]) for words in (name.split() for name in BY_NAME) for count in range(1, len(words) + 1))
)
"""Every command, and every beginning of the name of one, in whole words: `server`, `server token`, `server token create`."""


def words_after(prefix: str) -> list[str]:
    """Return the words that may follow the beginning of a command's name."""
    return [name.rpartition(" ")[2] for name in PREFIXES if name.rpartition(" ")[0] == prefix]
