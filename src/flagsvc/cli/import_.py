"""Import a file of flags into a project and environment of a flag server, after showing what that would change.

FILE is a data set, such as `flagsvc export` writes, or a whole request with `project`, `environment` and `data`; JSON or
YAML, - for standard input. What --project and --environment say wins over the file.

The server validates it first. What only the import would refuse is checked too, as by `flagsvc validate`. With errors or
missing permissions nothing is imported. An import is one transaction: all of it, or nothing.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from flagsvc.cli.batch import order, session, tables
from flagsvc.cli.batch.changes import KINDS, ImportChanges, compare, named_in
from flagsvc.cli.batch.checking import coerced, findings, show
from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.consent import consent
from flagsvc.cli.batch.files import FlagFile
from flagsvc.cli.batch.refusals import CannotAskError
from flagsvc.cli.batch.target import NOTES

EPILOG = f"""\
{NOTES}
what happens to a flag
  new       it is created in the project, in all of its environments
  changed   its metadata, tags and, in this environment, strategies are replaced by those of the file
  left out  it is archived there: revive it first
  Flags that FILE does not name, and other environments, stay as they are.

examples
  flagsvc import flags.json --url https://flags.example.com --token-file token --project default --environment production
  flagsvc import flags.json --url … --project default --environment production --dry-run
  flagsvc import request.yaml --url … --yes

exit code: 0 imported, or with --dry-run nothing in the way of it; 1 it cannot be imported, or the answer was no; 2 the
server could not be asked, or there was nobody to ask whether to go on
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


def add_arguments(parser: ArgumentParser) -> None:
    """Put the arguments of the command on its parser."""
    session.add_file_arguments(parser, EPILOG)
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask whether to go on")


def run(args: Namespace) -> int:
    """Validate, show, ask, import, and return 0, 1 or 2."""
    return session.guarded("import", lambda: import_(args))


def import_(args: Namespace) -> int:
    """Do it step by step; raises CannotAskError and ConfigurationError."""
    file, request = session.request_of(args)
    with session.connected(args, "import") as client:
        found = looked_at(client, file, request)
        if found is None:
            return 1
        target = session.where(request, client.target.shown)
        print(f"{session.what(request)} into {target}: {counted(found)}")
        if args.dry_run:
            print("nothing was imported: this was a dry run")
            return 0
        code = consent("import", "Import this?", "nothing was imported", yes=args.yes, listening=args.file != "-")
        return imported(client, request, found) if code is None else code


def looked_at(client: AdminClient, file: FlagFile, request: dict[str, Any]) -> ImportChanges | None:
    """Show what the server says and what would change, and return that; None where it cannot be imported."""
    with tables.progress("the server validates"):
        looked = findings(client, file, request)
        no_user = client.may_not_import()
    show(looked, request)
    if looked.refused:
        print("nothing was imported: the server would refuse it")
        return None
    if no_user:
        print(
            f"flagsvc import: nothing was imported: {NO_USER.format(tokens=client.target.side.tokens)}", file=sys.stderr
        )
        return None
    with tables.progress("comparing with what is there"):
        found = compared(client, request)
    tables.changes(found)
    return found


def compared(client: AdminClient, request: dict[str, Any]) -> ImportChanges:
    """Return what would change, by an export of the same flags from the target."""
    data = (coerced(request) or request)["data"]
    names = named_in(data)
    query = {"environment": request["environment"], "features": names}
    known = {key: client.names(*source) for key, source in SOURCES.items()}
    return compare(data, there(client, query, data) if names else {}, **known)


def there(client: AdminClient, query: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return what the target exports, with the order of strategies where the data set says one."""
    ordered = any("sortOrder" in item for item in data.get("featureStrategies") or ())
    return order.exported(client, query).data if ordered else client.export(query)


def counted(found: ImportChanges) -> str:
    """Return how many flags each thing happens to."""
    words = {kind: found.count(kind) for kind in KINDS}
    return ", ".join(f"{count} {kind}" for kind, count in words.items() if count) or "no flags"


def imported(client: AdminClient, request: dict[str, Any], found: ImportChanges) -> int:
    """Import and say what was done; return 0, or 1 where the server refused."""
    try:
        with tables.progress(f"importing {session.what(request)}"):
            client.import_(request)
    except KeyboardInterrupt:
        print(f"flagsvc import: stopped: {UNCLEAR}", file=sys.stderr)
        raise
    except CannotAskError as error:
        if error.kind in session.REFUSED:
            print(f"flagsvc import: nothing was imported: {error}", file=sys.stderr)
            return 1
        if error.kind in ("unclear", "server"):
            raise CannotAskError(error.kind, f"{error}; {UNCLEAR}", status=error.status) from None
        raise
    print(f"imported: {counted(found)}")
    return 0
