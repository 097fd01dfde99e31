"""Shared by commands for both programs: the flags of both, and the check of the flag server's database."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Collection

from flagsvc.cli.parser import UsageError
from flagsvc.core.extras import require
from flagsvc.settings.names import settable
from flagsvc.settings.normalise import QUOTES, in_quotes
from flagsvc.settings.option import FILE_NAME
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import add_group, given_flags
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

SERVER_ONLY_OPTIONS = tuple(row for row in SERVER_OPTIONS if row.flag not in {option.flag for option in OPTIONS})
"""The options that only the flag server has."""


def add_server_argument(parser: ArgumentParser, names: Collection[str] | None = None) -> None:
    """Add `--server`; it takes the flags of `names`, or all."""
    which = "" if names is None else " that say where it listens"
    text = f"look at the flag server in place of the proxy; takes the flags of flagsvc server{which}"
    parser.add_argument("--server", action="store_true", help=text)


def add_server_flags(parser: ArgumentParser, names: Collection[str] | None = None) -> None:
    """Add a group with the flags that only the flag server has: those of `names`, or all."""
    add_group(parser, "with --server", [row for row in SERVER_ONLY_OPTIONS if names is None or row.name in names])


def read_flags(args: Namespace) -> dict[str, str]:
    """Return the given flags, by option name. Raises UsageError for a flag of the other program."""
    rows, way = (SERVER_OPTIONS, "leave out") if args.server else (OPTIONS, "add")
    given = given_flags(vars(args), (*OPTIONS, *SERVER_OPTIONS))
    known = set(settable(rows))
    for option in (*OPTIONS, *SERVER_OPTIONS):
        if option.name not in known and {option.name, option.name + FILE_NAME} & given.keys():
            other = "proxy" if args.server else "flag server"
            raise UsageError(f"`{option.flag}` is an option of the {other}: {way} `--server`")
    return given


def check_database(resolved: Resolved) -> None:
    """Add a problem if the options `database` or `databaseListenUrl` are invalid; the database library is imported only here.

    Raises MissingExtraError if that library is not installed.
    """
    require("server")
    if "database" in resolved.problems:
        return
    from flagsvc.core.errors import DatabaseError
    from flagsvc.server.store.engines import database_url
    from flagsvc.server.store.store import require_listenable

    try:
        database_url(resolved.values["database"])
    except DatabaseError as error:
        hint = f"; {QUOTES}" if in_quotes(resolved.values["database"]) else ""
        resolved.problems["database"] = f"database: {error}{hint}"
        return
    listen = resolved.values.get("databaseListenUrl")
    if listen is not None and "databaseListenUrl" not in resolved.problems:
        try:
            require_listenable(resolved.values["database"], listen)
        except DatabaseError as error:
            resolved.problems["databaseListenUrl"] = f"databaseListenUrl: {error}"
