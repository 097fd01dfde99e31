"""`flagsvc validate` and `import`: a file of flags, which a flag server checks, and imports after the command shows the changes."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.changes import KINDS, ImportChanges, compare, read_flags
from flagsvc.cli.batch.checking import Findings, check_import, coerce_request, show
from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.files import FlagFile
from flagsvc.cli.batch.server_errors import AdminApiError
from flagsvc.cli.batch.tables import confirm
from flagsvc.cli.batch.target import NOTES
from flagsvc.cli.commands import Subcommand
from flagsvc.cli.export import export_in_order

ABOUT_FILE = """\
FILE is a data set, as `flagsvc export` writes it, or a whole request with `project`, `environment` and `data`; JSON or YAML, -
for standard input. --project and --environment take precedence over the file."""
VALIDATE_TEXT = f"""Ask a flag server whether a file of flags can be imported into a project and environment; nothing is changed.

Besides the server's own validation, the command checks everything that the import would reject: a flagsvc server tries the
import and rolls it back; for another server of the family the checks run here, with data from its admin API.

{ABOUT_FILE}
"""
IMPORT_TEXT = f"""Import a file of flags into a project and environment of a flag server, after it shows the changes.

{ABOUT_FILE}

The server validates the file first. The command also checks what only the import would reject, like `flagsvc validate`. With
errors or missing permissions nothing is imported. An import is one transaction: all of it or nothing.
"""
VALIDATE_EPILOG = f"""\
{NOTES}
examples
  flagsvc validate flags.json --url https://flags.example.com --token-file token --project default --environment production
  flagsvc export … | flagsvc validate - --url … --project default --environment production --json

--json prints the server's `errors`, `warnings` and `permissions`, further `problems` of an import (each with rule, flag, place
and message), and `unchecked` for what could not be checked

exit code: 0 it can be imported, perhaps with warnings; 1 it cannot (errors, missing permissions, violations of the schema);
2 a request to the server failed
"""
IMPORT_EPILOG = f"""\
{NOTES}
what happens to a flag
  new       it is created in the project, in all of its environments
  changed   its metadata, tags and, in this environment, strategies are replaced by those of the file
  left out  it is archived on the server: revive it first
  Flags that FILE does not name, and other environments, do not change.

examples
  flagsvc import flags.json --url https://flags.example.com --token-file token --project default --environment production
  flagsvc import flags.json --url … --project default --environment production --dry-run
  flagsvc import request.yaml --url … --yes

exit code: 0 imported, or with --dry-run it can be imported; 1 it cannot be imported, or the import was not confirmed; 2 a
request to the server failed, or there was no terminal to ask for confirmation
"""
NO_USER = (
    "this is an admin token, which belongs to no user, and a flag server imports only for a user: give a personal access "
    "token of a user with {tokens}"
)
UNCLEAR = "it may have been imported or not: --dry-run shows what is there now"
SOURCES = {
    "context_fields": ("/api/admin/context", "", "name"),
    "tag_types": ("/api/admin/tag-types", "tagTypes", "name"),
}


def add_import_arguments(parser: ArgumentParser) -> None:
    session.add_file_arguments(parser, IMPORT_EPILOG)
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


@session.command("import")
def run_import(args: Namespace) -> int:
    """Validate, show the changes, ask for confirmation, and import; raises AdminApiError and ConfigurationError."""
    file, request = session.read_request(args)
    with session.connect(args, "import") as client:
        found = show_import(client, file, request)
        if found is None:
            return 1
        target = session.describe_target(request, client.target.shown)
        print(f"{session.count_flags(request)} into {target}: {format_counts(found)}")
        if args.dry_run:
            print("nothing was imported: this was a dry run")
            return 0
        code = confirm("import", "Import this?", "nothing was imported", yes=args.yes, interactive=args.file != "-")
        return send_import(client, request, found) if code is None else code


def show_import(client: AdminClient, file: FlagFile, request: dict[str, Any]) -> ImportChanges | None:
    """Show the validation and the changes, and return the changes; None if the file cannot be imported."""
    with tables.progress("the server validates"):
        looked = check_import(client, file, request)
        no_user = client.is_admin_token()
    show(looked, request)
    if looked.refused:
        print("nothing was imported: the server would refuse it")
        return None
    if no_user:
        print(f"flagsvc import: nothing was imported: {NO_USER.format(tokens=client.target.side.tokens)}", file=sys.stderr)
        return None
    with tables.progress("comparing with what is there"):
        found = compare_with_target(client, request)
    tables.show_changes(found)
    return found


def compare_with_target(client: AdminClient, request: dict[str, Any]) -> ImportChanges:
    """Return the changes, from a comparison with an export of the same flags from the target."""
    data = (coerce_request(request) or request)["data"]
    names = list(read_flags(data))
    query = {"environment": request["environment"], "features": names}
    known = {key: client.names(*source) for key, source in SOURCES.items()}
    there: dict[str, Any] = {}
    if names:
        ordered = any("sortOrder" in item for item in data.get("featureStrategies") or ())
        there = export_in_order(client, query).data if ordered else client.export(query)
    return compare(data, there, **known)


def format_counts(found: ImportChanges) -> str:
    """Return the number of flags of each kind of change, as text."""
    words = {kind: found.count(kind) for kind in KINDS}
    return ", ".join(f"{count} {kind}" for kind, count in words.items() if count) or "no flags"


def send_import(client: AdminClient, request: dict[str, Any], found: ImportChanges) -> int:
    """Import and print the result; return 0, or 1 if the server rejected it."""
    try:
        with tables.progress(f"importing {session.count_flags(request)}"):
            client.import_(request)
    except KeyboardInterrupt:
        print(f"flagsvc import: stopped: {UNCLEAR}", file=sys.stderr)
        raise
    except AdminApiError as error:
        if error.kind in session.REJECTIONS:
            print(f"flagsvc import: nothing was imported: {error}", file=sys.stderr)
            return 1
        if error.kind in ("unclear", "server"):
            raise AdminApiError(error.kind, f"{error}; {UNCLEAR}", status=error.status) from None
        raise
    print(f"imported: {format_counts(found)}")
    return 0


def add_validate_arguments(parser: ArgumentParser) -> None:
    session.add_file_arguments(parser, VALIDATE_EPILOG)
    parser.add_argument("--json", action="store_true", help="print the result, or the error, as JSON")


@session.command("validate")
def run_validate(args: Namespace) -> int:
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


VALIDATE = Subcommand(VALIDATE_TEXT, add_validate_arguments, run_validate)
IMPORT = Subcommand(IMPORT_TEXT, add_import_arguments, run_import)
