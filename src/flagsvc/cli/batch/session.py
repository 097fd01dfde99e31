"""Shared by validate, import, export and move: arguments, connection, validation, and errors as text or JSON (exit code 2)."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeAlias

from flagsvc.cli.batch import tables
from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.files import FlagFile, read_flags
from flagsvc.cli.batch.server_errors import AdminApiError, FileViolation, read_violation
from flagsvc.cli.batch.target import add_target_arguments, read_target, warn_insecure
from flagsvc.cli.parser import ParagraphFormatter
from flagsvc.core.errors import ConfigurationError, MissingExtraError
from flagsvc.core.extras import require
from flagsvc.settings.kinds import printable

Run: TypeAlias = Callable[[Namespace], int]
"""The function of a command: it returns the exit code."""
REJECTIONS = ("refused", "conflict", "forbidden", "not-found")
"""Kinds of errors of an import that concern the imported data."""


class SchemaError(AdminApiError):
    """The server rejected the form of the data (import validation 3); `violations` has the places and messages."""

    exit_code = 1

    def __init__(self, error: AdminApiError, violations: list[FileViolation]) -> None:
        self.violations = violations
        super().__init__("schema", str(error), status=error.status, details=error.details)


def set_epilog(parser: ArgumentParser, epilog: str) -> None:
    """Set the epilog of a command's help; its lines are kept."""
    parser.epilog, parser.formatter_class = epilog, ParagraphFormatter


def add_file_arguments(parser: ArgumentParser, epilog: str) -> None:
    """Add FILE, the target project and environment, and the server."""
    set_epilog(parser, epilog)
    parser.add_argument("file", metavar="FILE", help="data set or whole request, - for standard input")
    parser.add_argument("--project", metavar="ID", help="project to import into [default: what FILE says]")
    parser.add_argument("--environment", metavar="NAME", help="environment to import into [default: what FILE says]")
    text = "how to read FILE [default: by its suffix, else by its first character]"
    parser.add_argument("--format", choices=("json", "yaml"), help=text)
    add_target_arguments(parser)


def read_request(args: Namespace) -> tuple[FlagFile, dict[str, Any]]:
    """Read the file, and return it and the request to send; raises ConfigurationError."""
    file = read_flags(args.file, args.format)
    return file, file.request(args.project, args.environment)


@contextmanager
def connect(args: Namespace, command: str) -> Iterator[AdminClient]:
    """Yield a client for the server of the arguments; raises ConfigurationError."""
    target = read_target(args)
    warn_insecure(target, f"flagsvc {command}")
    with AdminClient(target) as client:
        yield client


def validate_request(client: AdminClient, file: FlagFile, request: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the validation of a request; raises SchemaError, and AdminApiError if the server does not validate it."""
    try:
        lists = client.validate(request)
    except AdminApiError as error:
        found = [read_violation(item, request, bare=file.bare) for item in error.details if "path" in item]
        if error.kind == "refused" and found:
            raise SchemaError(error, found) from None
        if error.kind == "not-found":  # our server also answers 404; this error adds the nearest name
            check_target_exists(client, request)
        raise
    check_target_exists(client, request)
    return lists


def check_target_exists(client: AdminClient, request: dict[str, Any]) -> None:
    """Raise AdminApiError if the server does not have the project or the environment of a request, if that is known."""
    client.check_exists(**{key: request[key] for key in ("project", "environment") if isinstance(request[key], str)})


def count_flags(request: dict[str, Any]) -> str:
    """Return the number of flags in a request, as text."""
    return tables.format_count(len(request["data"].get("features", ())), "flag")


def describe_target(request: dict[str, Any], server: str) -> str:
    """Return the project, the environment and the server of a request, as text."""
    project, environment = (printable(str(request[key])) for key in ("project", "environment"))
    return f"project `{project}`, environment `{environment}` of {server}"


def command(name: str) -> Callable[[Run], Run]:
    """Return a decorator for the function of a command, which then returns 2 where a request to the server failed.

    It prints what is wrong. It raises ConfigurationError and MissingExtraError, which `main` prints, unless --json is given.
    """

    def decorate(act: Run) -> Run:
        @wraps(act)
        def run(args: Namespace) -> int:
            as_json = getattr(args, "json", False)
            try:
                require("cli")
                return act(args)
            except AdminApiError as error:
                return report_error(name, error, as_json=as_json)
            except (ConfigurationError, MissingExtraError) as error:
                if not as_json:
                    raise
                print(json.dumps({"error": {"kind": "usage", "message": str(error)}}, indent=2))
                return 2

        return run

    return decorate


def report_error(command: str, error: AdminApiError, *, as_json: bool) -> int:
    """Print an error and return its exit code."""
    found = error.violations if isinstance(error, SchemaError) else []
    message = f"{tables.format_count(len(found), 'violation')} of the schema" if found else str(error)
    if as_json:
        error_json: dict[str, Any] = {"kind": error.kind, "status": error.status, "message": message}
        error_json |= {"violations": [violation._asdict() for violation in found]} if found else {}
        print(json.dumps({"error": error_json}, indent=2))
    elif found:
        tables.show_violations(found)
        print("the data does not have the form that the server takes: nothing else was looked at")
    else:
        print(f"flagsvc {command}: {message}", file=sys.stderr)
    return error.exit_code
