"""Ask a flag server whether a file of flags can be imported into a project and environment; nothing is changed.

Beside the server's own validation everything is checked that its import would refuse: a flagsvc server tries the import and
takes it back, and for another server of the family the checks run here, on what its admin API tells.

FILE is a data set, such as `flagsvc export` writes, or a whole request with `project`, `environment` and `data`; JSON or
YAML, - for standard input. What --project and --environment say wins over the file.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import Any

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.checking import Findings, findings, show
from flagsvc.cli.batch.target import NOTES

EPILOG = f"""\
{NOTES}
examples
  flagsvc validate flags.json --url https://flags.example.com --token-file token --project default --environment production
  flagsvc export … | flagsvc validate - --url … --project default --environment production --json

--json prints `errors`, `warnings` and `permissions` as the server has them, `problems` (each with rule, flag, place and
message) for what an import would refuse besides, and `unchecked` for what could not be checked

exit code: 0 it can be imported, perhaps with warnings; 1 it cannot (errors, missing permissions, violations of the schema);
2 the server could not be asked
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Put the arguments of the command on its parser."""
    session.add_file_arguments(parser, EPILOG)
    parser.add_argument("--json", action="store_true", help="print the result, or the error, as JSON")


def run(args: Namespace) -> int:
    """Ask the server, show what it says, and return 0, 1 or 2."""
    return session.guarded("validate", lambda: validate(args), as_json=args.json)


def validate(args: Namespace) -> int:
    """Ask and show; raises CannotAskError and ConfigurationError where there was no asking."""
    file, request = session.request_of(args)
    with session.connected(args, "validate") as client, tables.progress("asking the server"):
        found = findings(client, file, request)
    if args.json:
        print(json.dumps(found.as_json, indent=2))
        return int(found.refused)
    show(found, request)
    print(verdict(found, request, client.target.shown))
    return int(found.refused)


def verdict(found: Findings, request: dict[str, Any], server: str) -> str:
    """Return the result of a validation in one line."""
    errors = len(found.lists["errors"]) + len(found.problems)
    counts = [tables.number(errors, "error"), tables.number(len(found.lists["warnings"]), "warning")]
    missing = sum(len(item["affectedItems"]) for item in found.lists["permissions"])
    counts += [tables.number(missing, "missing permission")] if missing else []
    word = "cannot be imported" if found.refused else "can be imported"
    return f"{session.what(request)} {word} into {session.where(request, server)}: {', '.join(counts)}"
