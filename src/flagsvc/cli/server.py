"""Run the flag server: it holds feature flags in a database and serves them to proxies and server-side SDKs.

An option comes from its flag, else from its variable, else from the table [server] of the file of --config, else it has its
default. Every variable that starts with FLAGSVC_ also answers with UNLEASH_ in its place.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from flagsvc.cli.parser import add_config_argument
from flagsvc.cli.programs import check_database, log_warnings, report_errors_as_json
from flagsvc.core.notices import Notice
from flagsvc.settings.places import Resolved
from flagsvc.settings.real_server import adopted_text
from flagsvc.settings.render import add_options, given_flags
from flagsvc.settings.server import accepted_server, resolve_server
from flagsvc.settings.table import SERVER_OPTIONS


def add_arguments(parser: ArgumentParser) -> None:
    """Add `--config` and the flag of every option."""
    add_config_argument(parser)
    add_options(parser, rows=SERVER_OPTIONS)


def run(args: Namespace) -> int:
    """Load the options, log warnings about them, serve until stopped, and return the exit code.

    Raises `ConfigurationError` with every problem at once.
    """
    resolved = resolve_server(os.environ, args.config, given_flags(vars(args), SERVER_OPTIONS))
    with report_errors_as_json(bool(resolved.values["useJsonLogger"])):
        return _serve(resolved)


def _serve(resolved: Resolved) -> int:
    """Serve with the resolved options."""
    check_database(resolved)
    log_warnings(resolved)
    loaded = accepted_server(resolved)
    from flagsvc.process.serve_flags import serve_flags

    taken = adopted_text(loaded.sources)
    notices = [Notice(f"flagsvc takes variables of a real server: {taken}", {"taken": taken})] if taken else []
    return serve_flags(loaded.options, notices)
