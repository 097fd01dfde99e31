"""Show the configuration in effect: what is set, where it came from, and its warnings and problems. Secrets are masked.

Takes the same options as `flagsvc proxy`, with --server those of `flagsvc server`. With problems, it lists all of them and exits
with 2.
"""

from __future__ import annotations

import os
import shutil
import sys
from argparse import ArgumentParser, Namespace

from flagsvc.cli.parser import add_config_argument, explain_environments
from flagsvc.cli.programs import (
    add_server_argument,
    add_server_flags,
    check_certificates,
    check_database,
    check_extensions,
    check_storage,
    read_flags,
)
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.load import resolve
from flagsvc.settings.load_environments import check_everywhere
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import add_options, as_json, folded, in_effect, reference, what_is_set
from flagsvc.settings.server import resolve_server, server_reference
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS


def add_arguments(parser: ArgumentParser) -> None:
    """Add the choice of program and output, `--config` and the flag of every option."""
    add_server_argument(parser)
    parser.add_argument("--all", action="store_true", help="show every option, also those at their defaults")
    parser.add_argument("--docs", action="store_true", help="print the reference page of the options (Markdown)")
    parser.add_argument("--json", action="store_true", help="print every option as JSON")
    add_config_argument(parser)
    explain_environments(parser)
    add_options(parser)
    add_server_flags(parser)


def run(args: Namespace) -> int:
    """Print the configuration in effect and return 0; raises `ConfigurationError` with all problems."""
    if args.docs:
        print(server_reference() if args.server else reference(), end="")
        return 0
    resolved = resolve_options(args)
    print_configuration(args, resolved)
    if resolved.problems:
        sys.stdout.flush()
        raise ConfigurationError(tuple(resolved.problems.values()))
    return 0


def resolve_options(args: Namespace) -> Resolved:
    """Return the configuration of the chosen program, with its files checked."""
    flags = read_flags(args)
    if args.server:
        resolved = resolve_server(os.environ, args.config, flags)
        check_database(resolved)
    else:
        resolved = resolve(os.environ, args.config, flags)
        check_everywhere(resolved, check_extensions)
        check_storage(resolved)
    check_everywhere(resolved, check_certificates)
    return resolved


def print_configuration(args: Namespace, resolved: Resolved) -> None:
    """Print a configuration in the chosen form."""
    rows = SERVER_OPTIONS if args.server else OPTIONS
    if args.json:
        print(as_json(resolved, rows))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    print((in_effect if args.all else what_is_set)(resolved, rows, width))
    if resolved.warnings:
        print("", *(folded(f"warning: {text}", width) for text in resolved.warnings), sep="\n")
