"""Run the proxy: evaluates flags of the upstream server for the applications that hold a client key.

An option comes from its flag, else from its variable, else from the file of --config, else it has its default. Every
variable that starts with FLAGSVC_ also answers with UNLEASH_ in its place.

Several environments are tables [environments.NAME] in that file. Or FLAGSVC_ENVIRONMENTS names them, and the variables of each have
its name in them, such as FLAGSVC_PRODUCTION_API_TOKEN. No flag sets them: there is no --environments.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial

from flagsvc.cli.parser import add_config_argument, explain_environments
from flagsvc.cli.programs import (
    check_certificates,
    check_extensions,
    check_storage,
    log_warnings,
    report_errors_as_json,
)
from flagsvc.settings.load import accepted, resolve
from flagsvc.settings.load_environments import check_everywhere
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import add_options, given_flags


def add_arguments(parser: ArgumentParser) -> None:
    """Add `--config` and the flag of every option."""
    add_config_argument(parser)
    explain_environments(parser)
    add_options(parser)


def run(args: Namespace) -> int:
    """Load the options, log warnings about them, serve until stopped, and return the exit code.

    Raises `ConfigurationError` with every problem at once (behaviour: Odd values).
    """
    read = partial(resolve, os.environ, args.config, given_flags(vars(args)))
    resolved = read()
    with report_errors_as_json(bool(resolved.values["useJsonLogger"])):
        return _serve(resolved, read)


def _serve(resolved: Resolved, read: Callable[[], Resolved]) -> int:
    """Serve with the resolved options; `read` resolves them again."""
    if resolved.problems:  # without problems the files are loaded once, where they are used
        check_everywhere(resolved, check_extensions)
        check_everywhere(resolved, check_certificates)
        check_storage(resolved)
    log_warnings(resolved)
    loaded = accepted(resolved)
    from flagsvc.process.reload import ConfigurationFiles
    from flagsvc.process.serve import serve

    return serve(loaded.options, ConfigurationFiles(read, loaded.files, resolved))
