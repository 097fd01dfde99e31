"""Opens the flag server's database for a command, with the server running or not. The database library is imported late."""

from __future__ import annotations

import getpass
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from flagsvc.cli.batch.session import set_epilog
from flagsvc.cli.parser import UsageError, add_config_argument
from flagsvc.cli.programs import check_database
from flagsvc.core.errors import ConfigurationError, DatabaseError
from flagsvc.settings.load import UNREADABLE
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import add_group, given_flags
from flagsvc.settings.server import resolve_server
from flagsvc.settings.table import SERVER_OPTIONS

if TYPE_CHECKING:
    from flagsvc.server.store.actors import Actor
    from flagsvc.server.store.errors import CallerError
    from flagsvc.server.store.store import Store

DATABASE = "database"
NOTES = """\
database
  The command works on the database itself, whether the server runs or not. A running server notices a change within a
  second. FLAGSVC_DATABASE_URL, or --config with its table [server], name the database as for `flagsvc server`.

exit code: 0 done; 1 the database cannot be used; 2 the usage is wrong, or the database does not allow it
"""
CURRENT, KNOWN, ANY = WAYS = "open_existing_store", "open_known_store", "open_any_store"
"""How a database is opened: with this version's schema; with that or an older one; also where it is empty."""
LOCKED = "database is locked"
"""What SQLite says when another program holds its lock for too long."""


def add_database_arguments(parser: ArgumentParser, notes: str = NOTES) -> None:
    """Add `--config` and the flags that name the database."""
    set_epilog(parser, notes)
    add_config_argument(parser)
    add_group(parser, DATABASE, [row for row in SERVER_OPTIONS if row.name == DATABASE])


def resolve_database(args: Namespace) -> Resolved:
    """Return the options of the flag server with a valid database. Raises ConfigurationError and MissingExtraError."""
    resolved = resolve_server(os.environ, args.config, given_flags(vars(args), SERVER_OPTIONS))
    check_database(resolved)
    problems = [resolved.problems[name] for name in (UNREADABLE, DATABASE) if name in resolved.problems]
    if problems:
        raise ConfigurationError(problems)
    return resolved


@contextmanager
def open_database(args: Namespace, way: str = CURRENT) -> Iterator[Store]:
    """Yield the database of a command, opened in one of the `WAYS`: it must exist and have this version's schema.

    Raises ConfigurationError, MissingExtraError, DatabaseError, and UsageError for what a store function refuses.
    """
    database = resolve_database(args).values[DATABASE]
    from flagsvc.core.clock import SystemClock
    from flagsvc.core.log import build_logger
    from flagsvc.server.store import store as stores

    with clear_errors():
        store: Store = getattr(stores, way)(database, SystemClock(), build_logger())
        try:
            yield store
        finally:
            store.close()


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn what a store function refuses into a UsageError, and say what to do about a locked database."""
    from flagsvc.server.store.errors import CallerError

    try:
        yield
    except CallerError as error:
        raise UsageError(message_of(error)) from None
    except DatabaseError as error:
        hint = ": another program holds its lock; try again" if LOCKED in str(error) else ""
        raise DatabaseError(f"{error}{hint}") from error


def message_of(error: CallerError) -> str:
    """Return the reasons of a refusal in one line."""
    return "; ".join(each["message"].rstrip(".") for each in error.details)


def command_actor() -> Actor:
    """Return the author of a command's changes: the user of this machine."""
    from flagsvc.server.store.actors import COMMAND_ID, Actor

    name = "somebody"
    with suppress(OSError, KeyError):  # a container may have no name for its user
        name = getpass.getuser()
    return Actor(COMMAND_ID, f"{name} (command line)", root_role="admin")
