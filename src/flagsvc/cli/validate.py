"""Ask a flag server whether a file of flags can be imported into a project and environment; nothing is changed.

FILE is a data set, such as `flagsvc export` writes, or a whole request with `project`, `environment` and `data`; JSON or
YAML, - for standard input. What --project and --environment say wins over the file.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import Any

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.target import NOTES

EPILOG = f"""\
{NOTES}
examples
  flagsvc validate flags.json --url https://flags.example.com --token-file token --project default --environment production
  flagsvc export … | flagsvc validate - --url … --project default --environment production --json

exit code: 0 it can be imported, perhaps with warnings; 1 it cannot (errors, missing permissions, violations of the schema);
2 the server could not be asked
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Put the arguments of the command on its parser."""
    session.add_file_arguments(parser, EPILOG)
    parser.add_argument("--json", action="store_true", help="print the server's result, or the error, as JSON")


def run(args: Namespace) -> int:
    """Ask the server, show what it says, and return 0, 1 or 2."""
    return session.guarded("validate", lambda: validate(args), as_json=args.json)


def validate(args: Namespace) -> int:
    """Ask and show; raises CannotAskError and ConfigurationError where there was no asking."""
    file, request = session.request_of(args)
    with session.connected(args, "validate") as client, tables.progress("asking the server"):
        lists = session.validated(client, file, request)
    if args.json:
        print(json.dumps(lists, indent=2))
        return int(session.refused(lists))
    tables.problems(lists)
    print(verdict(lists, request, client.target.shown))
    return int(session.refused(lists))


def verdict(lists: dict[str, list[dict[str, Any]]], request: dict[str, Any], server: str) -> str:
    """Return the result of a validation in one line."""
    counts = [tables.number(len(lists["errors"]), "error"), tables.number(len(lists["warnings"]), "warning")]
    missing = sum(len(item["affectedItems"]) for item in lists["permissions"])
    counts += [tables.number(missing, "missing permission")] if missing else []
    word = "cannot be imported" if session.refused(lists) else "can be imported"
    return f"{session.what(request)} {word} into {session.where(request, server)}: {', '.join(counts)}"
