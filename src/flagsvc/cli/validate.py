"""Ask a flag server whether a file of flags can be imported into a project and environment; nothing is changed.

Besides the server's own validation, the command checks everything that the import would reject: a flagsvc server tries the
import and rolls it back; for another server of the family the checks run here, with data from its admin API.

FILE is a data set, such as `flagsvc export` writes, or a whole request with `project`, `environment` and `data`; JSON or
YAML, - for standard input. What --project and --environment say wins over the file.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import Any

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.checking import Findings, check_import, show
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
    """Add the arguments of the command."""
    session.add_file_arguments(parser, EPILOG)
    parser.add_argument("--json", action="store_true", help="print the result, or the error, as JSON")


def run(args: Namespace) -> int:
    """Validate, show the result, and return 0, 1 or 2."""
    return session.run_command("validate", lambda: validate(args), as_json=args.json)


def validate(args: Namespace) -> int:
    """Validate and show the result; raises AdminApiError and ConfigurationError."""
    file, request = session.read_request(args)
    with session.connect(args, "validate") as client, tables.progress("asking the server"):
        found = check_import(client, file, request)
    if args.json:
        print(json.dumps(found.as_json, indent=2))
        return int(found.refused)
    show(found, request)
    print(verdict(found, request, client.target.shown))
    return int(found.refused)


def verdict(found: Findings, request: dict[str, Any], server: str) -> str:
    """Return the one-line result of a validation."""
    errors = len(found.lists["errors"]) + len(found.problems)
    counts = [tables.format_count(errors, "error"), tables.format_count(len(found.lists["warnings"]), "warning")]
    missing = sum(len(item["affectedItems"]) for item in found.lists["permissions"])
    counts += [tables.format_count(missing, "missing permission")] if missing else []
    word = "cannot be imported" if found.refused else "can be imported"
    return f"{session.count_flags(request)} {word} into {session.describe_target(request, server)}: {', '.join(counts)}"
