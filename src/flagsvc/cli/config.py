"""Show the configuration in effect, each value with where it came from, secrets masked.

Takes the same options as `flagsvc proxy`. Lists every problem there is and then exits with 2.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace

from flagsvc.cli.certificates import check_certificates
from flagsvc.cli.extensions import check_extensions
from flagsvc.cli.parser import add_config_argument
from flagsvc.errors import ConfigurationError
from flagsvc.settings.load import resolve
from flagsvc.settings.render import add_options, as_json, given_flags, in_effect, reference


def add_arguments(parser: ArgumentParser) -> None:
    """Add the choice of output, `--config` and the flag of every option."""
    parser.add_argument("--docs", action="store_true", help="print the reference page of the options (Markdown)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_config_argument(parser)
    add_options(parser)


def run(args: Namespace) -> int:
    """Print what is in effect and return 0; raises `ConfigurationError` with every problem at once."""
    if args.docs:
        print(reference(), end="")
        return 0
    resolved = resolve(os.environ, args.config, given_flags(vars(args)))
    check_extensions(resolved)
    check_certificates(resolved)
    print(as_json(resolved) if args.json else in_effect(resolved))
    if not args.json:
        for text in resolved.warnings:
            print(f"\nwarning: {text}")
    if resolved.problems:
        sys.stdout.flush()
        raise ConfigurationError(tuple(resolved.problems.values()))
    return 0
