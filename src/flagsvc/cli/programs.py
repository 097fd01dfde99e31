"""`flagsvc proxy`, `server` and `config`, and what other commands for both programs share with them.

That is the flags of both, and checks of what options name (certificates, extensions, the storage, the database) before a start,
so that all problems are listed together.
"""

from __future__ import annotations

import os
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from flagsvc.cli import JsonError
from flagsvc.cli.commands import Subcommand
from flagsvc.cli.parser import UsageError, add_config_argument, explain_environments
from flagsvc.core.errors import ConfigurationError, ExtensionError, FlagsvcError
from flagsvc.core.extras import missing_extra, require
from flagsvc.core.log import build_logger
from flagsvc.core.notices import Notice
from flagsvc.core.version import INTERPRETED, INTERPRETED_WARNING, engine_form
from flagsvc.settings.load import accepted, resolve
from flagsvc.settings.load_environments import check_everywhere
from flagsvc.settings.names import settable
from flagsvc.settings.normalise import QUOTES, in_quotes
from flagsvc.settings.option import FILE_NAME
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.places import Resolved
from flagsvc.settings.real_server import adopted_text
from flagsvc.settings.render import (
    add_group,
    add_options,
    as_json,
    folded,
    given_flags,
    in_effect,
    reference,
    what_is_set,
)
from flagsvc.settings.server import ServerOptions, resolve_server, server_reference
from flagsvc.settings.storage import server_at
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

if TYPE_CHECKING:
    import ssl

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


TLS = ("tlsCert", "tlsKey", "tlsKeyPassword")
PAIRS = (
    TLS,
    ("upstreamCert", "upstreamKey", "upstreamKeyPassword"),
    ("storageCert", "storageKey", "storageKeyPassword"),
)
AUTHORITIES = ("tlsClientCa", "upstreamCa", "storageCa")


def check_certificates(resolved: Resolved) -> None:
    """Load the files as the program would, and add their problems. `ssl` is imported only if a file is given."""
    named = [names[0] for names in PAIRS] + list(AUTHORITIES)
    if not any(resolved.values.get(name) for name in named):
        return
    import ssl

    for name, load in _loads(resolved):
        try:
            load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        except ConfigurationError as error:
            resolved.problems.setdefault(name, "; ".join(error.problems))


def _loads(resolved: Resolved) -> Iterator[tuple[str, Callable[[ssl.SSLContext], None]]]:
    """Yield each given option's name and the function that loads its files."""
    from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames, load_authorities

    values = resolved.values
    for names in PAIRS:
        if is_file_used(names[0], values) and not resolved.problems.keys() & set(names):
            yield names[0], CertificateFiles(CertificateOptionNames(*names), *(values[name] for name in names)).load
    for name in AUTHORITIES:
        if is_file_used(name, values):
            yield name, partial(load_authorities, name=name, path=values[name])


def is_file_used(name: str, values: Mapping[str, Any]) -> bool:
    """Return whether the program reads the file of an option. Files for the storage are read only for a server with TLS."""
    if not name.startswith("storage"):
        return bool(values.get(name))
    server = server_at(values.get("storage") or "none")
    return bool(values.get(name)) and server is not None and server.tls


def check_storage(resolved: Resolved) -> None:
    """Add a problem if the storage is a server and its client package is not installed."""
    if server_at(resolved.values["storage"]) is not None and (problem := missing_extra("redis")):
        resolved.problems["storage"] = f"storage ({resolved.sources['storage']}): {problem}"


EXTENSIONS = {"customStrategies": "load_strategies", "expCustomEnrichers": "load_enrichers"}
"""The options that name files of code, and the functions that load them; imported only if such a file is given."""


def check_extensions(resolved: Resolved) -> None:
    """Load the files of custom strategies and enrichers as the proxy would, and add their problems."""
    for name, function in EXTENSIONS.items():
        if not resolved.values[name]:
            continue
        from flagsvc.proxy import extensions

        try:
            getattr(extensions, function)(resolved.values[name])
        except ExtensionError as error:
            resolved.problems[name] = f"{name} ({resolved.sources[name]}): {error}"


def log_warnings(resolved: Resolved) -> None:
    """Log warnings about the options, also when they are rejected, and a warning if the engine is interpreted."""
    logger = build_logger(level=resolved.values["logLevel"], as_json=resolved.values["useJsonLogger"])
    for text in resolved.warnings:
        logger.warn(f"configuration: {text}")
    if engine_form() == INTERPRETED and not resolved.problems:
        logger.warn(INTERPRETED_WARNING)


@contextmanager
def report_errors_as_json(wanted: bool) -> Iterator[None]:
    """Wrap our errors so that they are printed as lines of JSON, if `wanted`: the program then logs JSON too."""
    try:
        yield
    except FlagsvcError as error:
        if not wanted:
            raise
        raise JsonError(error) from error


PROXY_TEXT = """Run the proxy: evaluates flags of the upstream server for the applications that hold a client key.

An option comes from its flag, else from its variable, else from the file of --config, else it has its default. Every
variable that starts with FLAGSVC_ also answers with UNLEASH_ in its place.

Several environments are tables [environments.NAME] in that file. Or FLAGSVC_ENVIRONMENTS names them, and the variables of each have
its name in them, such as FLAGSVC_PRODUCTION_API_TOKEN. No flag sets them: there is no --environments.
"""
SERVER_TEXT = """Run the flag server: it holds feature flags in a database and serves them to proxies and server-side SDKs.

An option comes from its flag, else from its variable, else from the table [server] of the file of --config, else it has its
default. Every variable that starts with FLAGSVC_ also answers with UNLEASH_ in its place.
"""


def add_proxy_arguments(parser: ArgumentParser) -> None:
    """Add `--config` and the flag of every option."""
    add_config_argument(parser)
    explain_environments(parser)
    add_options(parser)


def run_proxy(args: Namespace) -> int:
    """Load the options, log warnings about them, serve until stopped, and return the exit code.

    Raises `ConfigurationError` with every problem at once (behaviour: Odd values).
    """
    read = partial(resolve, os.environ, args.config, given_flags(vars(args)))
    resolved = read()
    with report_errors_as_json(bool(resolved.values["useJsonLogger"])):
        if resolved.problems:  # without problems the files are loaded once, where they are used
            check_everywhere(resolved, check_extensions)
            check_everywhere(resolved, check_certificates)
            check_storage(resolved)
        log_warnings(resolved)
        loaded = accepted(resolved, ProxyOptions)
        from flagsvc.process.reload import ConfigurationFiles
        from flagsvc.process.serve import serve

        return serve(loaded.options, ConfigurationFiles(read, loaded.files, resolved))


def add_server_program_arguments(parser: ArgumentParser) -> None:
    """Add `--config` and the flag of every option."""
    add_config_argument(parser)
    add_options(parser, rows=SERVER_OPTIONS)


def run_server(args: Namespace) -> int:
    """Load the options, log warnings about them, serve until stopped, and return the exit code.

    Raises `ConfigurationError` with every problem at once.
    """
    resolved = resolve_server(os.environ, args.config, given_flags(vars(args), SERVER_OPTIONS))
    with report_errors_as_json(bool(resolved.values["useJsonLogger"])):
        check_database(resolved)
        log_warnings(resolved)
        loaded = accepted(resolved, ServerOptions)
        from flagsvc.process.serve_flags import serve_flags

        taken = adopted_text(loaded.sources)
        notices = [Notice(f"flagsvc takes variables of a real server: {taken}", {"taken": taken})] if taken else []
        return serve_flags(loaded.options, notices)


PROXY = Subcommand(PROXY_TEXT, add_proxy_arguments, run_proxy)
SERVER = Subcommand(SERVER_TEXT, add_server_program_arguments, run_server)


CONFIG_TEXT = """\
Show the configuration in effect: what is set, where it came from, and its warnings and problems. Secrets are masked.

Takes the same options as `flagsvc proxy`, with --server those of `flagsvc server`. With problems, it lists all of them and exits
with 2.
"""


def add_config_arguments(parser: ArgumentParser) -> None:
    """Add the choice of program and output, `--config` and the flag of every option."""
    add_server_argument(parser)
    parser.add_argument("--all", action="store_true", help="show every option, also those at their defaults")
    parser.add_argument("--docs", action="store_true", help="print the reference page of the options (Markdown)")
    parser.add_argument("--json", action="store_true", help="print every option as JSON")
    add_config_argument(parser)
    explain_environments(parser)
    add_options(parser)
    add_server_flags(parser)


def show_configuration(args: Namespace) -> int:
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


CONFIG = Subcommand(CONFIG_TEXT, add_config_arguments, show_configuration)
