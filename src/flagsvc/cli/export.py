"""Write flags of a flag server to a file or to standard output, for `flagsvc validate` and `flagsvc import`.

The file holds the flags with their metadata, and of one environment the strategies in their order and whether they are on; with
them the context fields, segments (by name), tags, dependencies and links they use.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

from flagsvc.cli.batch import files, session, strategy_order, tables
from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.target import NOTES, add_target_arguments
from flagsvc.settings.kinds import printable

EPILOG = f"""\
{NOTES}
examples
  flagsvc export --project default --environment development --output flags.json --url https://flags.example.com
  flagsvc export --features new-checkout,dark-mode --environment production --format yaml --url …
  flagsvc export --tag release-42 --environment production --output release.yaml --force --url …

exit code: 0; 1 the file cannot be written, or a flag of --features does not exist; 2 the server could not be asked
"""


def parse_names(text: str) -> list[str]:
    """Return names separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ArgumentTypeError("expected names with commas between")
    return list(dict.fromkeys(names))


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    session.set_epilog(parser, EPILOG)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--project", metavar="ID", help="all flags of this project that are not archived")
    chosen.add_argument("--features", metavar="NAMES", type=parse_names, help="these flags, with commas between")
    chosen.add_argument("--tag", metavar="VALUE", help="all flags that have a tag of this value, of any type")
    parser.add_argument("--environment", metavar="NAME", required=True, help="environment whose strategies are written")
    parser.add_argument("--output", metavar="FILE", help="file to write [default: standard output]")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")
    text = "how to write [default: by the suffix of FILE, else json]"
    parser.add_argument("--format", choices=("json", "yaml"), help=text)
    add_target_arguments(parser)


def run(args: Namespace) -> int:
    """Export the flags, write them, and return 0, 1 or 2; raises StoreError where FILE cannot be written."""
    return session.run_command("export", lambda: export(args))


def export(args: Namespace) -> int:
    """Export the flags and return 0 or 1; raises AdminApiError, ConfigurationError and StoreError."""
    path = None if args.output in (None, "-") else args.output
    if path:
        files.check_writable(path, force=args.force)
    with session.connect(args, "export") as client, tables.progress("asking the server"):
        data, unknown = export_flags(client, args)
    missing = [name for name in args.features or () if name not in names_of(data)]
    if missing:
        return report_missing(missing)
    kind = args.format or files.FORMATS.get(Path(path or "").suffix.lower(), "json")
    write_output(files.encode_file(data, kind), path, force=args.force)
    if unknown:
        print(f"flagsvc export: warning: {without_order(unknown)}", file=sys.stderr)
    print(f"flagsvc export: {format_summary(data, path)}", file=sys.stderr)
    return 0


def export_flags(client: AdminClient, args: Namespace) -> strategy_order.OrderedExport:
    """Return the data set for the arguments (import validation 7), with the order of strategies."""
    named = {"project": args.project} if args.project is not None else {}
    client.check_exists(environment=args.environment, **named)
    chosen = {"project": args.project, "features": args.features, "tag": args.tag}
    query = {key: value for key, value in chosen.items() if value is not None}
    return strategy_order.export_in_order(client, {"environment": args.environment, **query})


def without_order(count: int) -> str:
    """Return the warning about flags whose strategies have no place in the file."""
    flags = tables.format_count(count, "flag")
    return (
        f"the server does not tell the order of strategies of {flags}, and the file does not hold it: "
        "the first strategy that matches decides the variant"
    )


def names_of(data: dict[str, Any]) -> list[str]:
    """Return the names of the flags of a data set."""
    return [str(item["name"]) for item in data["features"]]


def report_missing(missing: list[str]) -> int:
    """Say which flags do not exist, and return 1."""
    names = ", ".join(f"`{printable(name)}`" for name in missing)
    print(f"flagsvc export: nothing was written: the server has no flag {names}", file=sys.stderr)
    return 1


def write_output(content: bytes, path: str | None, *, force: bool) -> None:
    """Write the result to its file or to standard output."""
    if path:
        files.write_atomically(path, content, force=force)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def format_summary(data: dict[str, Any], path: str | None) -> str:
    """Return a one-line summary of what was written."""
    place = f" to `{printable(path, 300)}`" if path else ""
    archived = sum(1 for item in data["features"] if item.get("archived"))
    note = f", {archived} of them archived" if archived else ""
    return f"{tables.format_count(len(data['features']), 'flag')} written{place}{note}"
