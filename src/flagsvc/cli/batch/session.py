"""What validate, import, export and move do alike: arguments, connection, validation, errors as lines or JSON (exit code 2)."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flagsvc.cli.batch import places, tables
from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.files import FlagFile, read_flags
from flagsvc.cli.batch.refusals import CannotAskError
from flagsvc.cli.batch.target import add_target_arguments, target_of, warn_of
from flagsvc.cli.parser import OptionFormatter as Columns
from flagsvc.core.errors import ConfigurationError, MissingExtraError
from flagsvc.core.extras import require
from flagsvc.settings.kinds import printable

REFUSED = ("refused", "conflict", "forbidden", "not-found")
"""Kinds of refusals of an import that are about what was to be imported."""


class ParagraphFormatter(Columns, RawDescriptionHelpFormatter):
    """Help whose description and examples keep their lines."""


class SchemaError(CannotAskError):
    """The server refused the form of the data (import validation 3): `violations` say where and what (exit code 1)."""

    def __init__(self, error: CannotAskError, violations: list[places.FileViolation]) -> None:
        self.violations = violations
        super().__init__("schema", str(error), status=error.status, details=error.details)


def describe(parser: ArgumentParser, epilog: str) -> None:
    """Give a command its closing text, whose lines stay as they are."""
    parser.epilog, parser.formatter_class = epilog, ParagraphFormatter


def add_file_arguments(parser: ArgumentParser, epilog: str) -> None:
    """Add FILE and where it would be imported to, and the server."""
    describe(parser, epilog)
    parser.add_argument("file", metavar="FILE", help="data set or whole request, - for standard input")
    parser.add_argument("--project", metavar="ID", help="project to import into [default: what FILE says]")
    parser.add_argument("--environment", metavar="NAME", help="environment to import into [default: what FILE says]")
    text = "how to read FILE [default: by its suffix, else by its first character]"
    parser.add_argument("--format", choices=("json", "yaml"), help=text)
    add_target_arguments(parser)


def request_of(args: Namespace) -> tuple[FlagFile, dict[str, Any]]:
    """Return the file and the request to send; raises ConfigurationError."""
    file = read_flags(args.file, args.format)
    return file, file.request(args.project, args.environment)


@contextmanager
def connected(args: Namespace, command: str) -> Iterator[AdminClient]:
    """Give a session with the server of the arguments; raises ConfigurationError."""
    target = target_of(args)
    warn_of(target, f"flagsvc {command}")
    with AdminClient(target) as client:
        yield client


def validated(client: AdminClient, file: FlagFile, request: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what the server says about a request; raises SchemaError, and CannotAskError where it says nothing about it."""
    try:
        lists = client.validate(request)
    except CannotAskError as error:
        found = [places.violation(item, request, bare=file.bare) for item in error.details if "path" in item]
        if error.kind == "refused" and found:
            raise SchemaError(error, found) from None
        if error.kind == "not-found":  # ours says so itself; this says it with the nearest name
            check_place(client, request)
        raise
    check_place(client, request)
    return lists


def check_place(client: AdminClient, request: dict[str, Any]) -> None:
    """Raise CannotAskError where the server is known not to have the project or the environment of a request."""
    client.check_named(**{key: request[key] for key in ("project", "environment") if isinstance(request[key], str)})


def refused(lists: dict[str, list[dict[str, Any]]]) -> bool:
    """Return whether an import would fail: for errors, and for missing permissions."""
    return bool(lists["errors"] or lists["permissions"])


def what(request: dict[str, Any]) -> str:
    """Return how many flags a request holds."""
    return tables.number(len(request["data"].get("features", ())), "flag")


def where(request: dict[str, Any], server: str) -> str:
    """Return what a request goes into."""
    project, environment = (printable(str(request[key])) for key in ("project", "environment"))
    return f"project `{project}`, environment `{environment}` of {server}"


def guarded(command: str, act: Callable[[], int], *, as_json: bool = False) -> int:
    """Return the exit code of `act`, 1 for a violation of the schema, 2 where the server could not be asked.

    Prints what is wrong. Raises ConfigurationError and MissingExtraError, which `main` prints, unless the caller wants JSON.
    """
    try:
        require("cli")
        return act()
    except CannotAskError as error:
        return tell(command, error, as_json=as_json)
    except (ConfigurationError, MissingExtraError) as error:
        if not as_json:
            raise
        print(json.dumps({"error": {"kind": "usage", "message": str(error)}}, indent=2))
        return 2


def tell(command: str, error: CannotAskError, *, as_json: bool) -> int:
    """Show an error and return its exit code."""
    found = error.violations if isinstance(error, SchemaError) else []
    message = f"{tables.number(len(found), 'violation')} of the schema" if found else str(error)
    if as_json:
        told: dict[str, Any] = {"kind": error.kind, "status": error.status, "message": message}
        told |= {"violations": [violation._asdict() for violation in found]} if found else {}
        print(json.dumps({"error": told}, indent=2))
    elif found:
        tables.violations(found)
        print("the data does not have the form that the server takes: nothing else was looked at")
    else:
        print(f"flagsvc {command}: {message}", file=sys.stderr)
    return 1 if found else 2
