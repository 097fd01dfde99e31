"""Run the flag server: it holds feature flags in a database and serves them to proxies and server-side SDKs.

An option comes from its flag, else from its variable, else it has its default. Every variable that starts with FLAGSVC_ also
answers with UNLEASH_ in its place.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from flagsvc.cli.starting import asks_for_json, errors_as_json, warn
from flagsvc.errors import ConfigurationError, DatabaseError
from flagsvc.settings.render import add_options, given_flags
from flagsvc.settings.server import LoadedServer, load_server
from flagsvc.settings.server_table import SERVER_OPTIONS


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flag of every option."""
    add_options(parser, rows=SERVER_OPTIONS)


def run(args: Namespace) -> int:
    """Load the options, warn of what is odd in them, serve until stopped, and return the exit code.

    Raises `ConfigurationError` with every problem at once.
    """
    flags = given_flags(vars(args), SERVER_OPTIONS)
    with errors_as_json(asks_for_json(os.environ, flags)):
        return _serve(load_server(os.environ, flags))


def _serve(loaded: LoadedServer) -> int:
    """Serve with the options that were found."""
    _check_database(loaded.options.database)
    warn(loaded)
    from flagsvc.apps.serve_flags import serve_flags

    return serve_flags(loaded.options)


def _check_database(database: str) -> None:
    """Raise ConfigurationError for a text that names no database; the library that knows is loaded only here."""
    from flagsvc.flagstore.store import database_url

    try:
        database_url(database)
    except DatabaseError as error:
        raise ConfigurationError([f"database: {error}"]) from None
