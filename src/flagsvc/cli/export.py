"""Write flags of a flag server to a file or to standard output, for `flagsvc validate` and `flagsvc import`.

The file contains the flags with their metadata, and their strategies, in order, and states in one environment. It also contains
the context fields, segments (by name), tags, dependencies and links of the flags.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from flagsvc.cli.batch import files, session, tables
from flagsvc.cli.batch.changes import comparison_texts, normalize_strategy
from flagsvc.cli.batch.client import AdminClient, feature_path, quote_path_part
from flagsvc.cli.batch.target import NOTES, add_target_arguments
from flagsvc.settings.kinds import printable

EPILOG = f"""\
{NOTES}
examples
  flagsvc export --project default --environment development --output flags.json --url https://flags.example.com
  flagsvc export --features new-checkout,dark-mode --environment production --format yaml --url …
  flagsvc export --tag release-42 --environment production --output release.yaml --force --url …

exit code: 0; 1 the file cannot be written, or a flag of --features does not exist; 2 a request to the server failed
"""
ORDER_WARNING = (
    "flagsvc export: warning: the server does not tell the order of strategies of {}, and the file does not hold it: "
    "the first strategy that matches decides the variant"
)


def parse_names(text: str) -> list[str]:
    """Return names separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ArgumentTypeError("expected names with commas between")
    return list(dict.fromkeys(names))


def add_arguments(parser: ArgumentParser) -> None:
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


@session.command("export")
def run(args: Namespace) -> int:
    """Export the flags, write them, and return 0 or 1; raises AdminApiError, ConfigurationError and StoreError."""
    path = None if args.output in (None, "-") else args.output
    if path:
        files.check_writable(path, force=args.force)
    with session.connect(args, "export") as client, tables.progress("asking the server"):
        data, unknown = export_flags(client, args)
    there = {str(item["name"]) for item in data["features"]}
    if missing := [name for name in args.features or () if name not in there]:
        names = ", ".join(f"`{printable(name)}`" for name in missing)
        print(f"flagsvc export: nothing was written: the server has no flag {names}", file=sys.stderr)
        return 1
    kind = args.format or files.FORMATS.get(Path(path or "").suffix.lower(), "json")
    files.write_output(files.encode_file(data, kind), path, force=args.force)
    if unknown:
        flags = tables.format_count(unknown, "flag")
        print(ORDER_WARNING.format(flags), file=sys.stderr)
    print(f"flagsvc export: {format_summary(data, path)}", file=sys.stderr)
    return 0


def export_flags(client: AdminClient, args: Namespace) -> OrderedExport:
    """Return the data set for the arguments (import validation 7), with the order of strategies."""
    named = {"project": args.project} if args.project is not None else {}
    client.check_exists(environment=args.environment, **named)
    chosen = {"project": args.project, "features": args.features, "tag": args.tag}
    query = {key: value for key, value in chosen.items() if value is not None}
    return export_in_order(client, {"environment": args.environment, **query})


def format_summary(data: dict[str, Any], path: str | None) -> str:
    """Return a one-line summary of what was written."""
    place = f" to `{printable(path, 300)}`" if path else ""
    archived = sum(1 for item in data["features"] if item.get("archived"))
    note = f", {archived} of them archived" if archived else ""
    return f"{tables.format_count(len(data['features']), 'flag')} written{place}{note}"


Json = dict[str, Any]
PARALLEL_REQUESTS = 8
"""The most requests in parallel."""
LAST_RANK = 1 << 30
"""The rank of a strategy that SDKs do not get."""


class OrderedExport(NamedTuple):
    """A data set whose strategies have their order, and the number of flags for which the order is unknown."""

    data: Json
    unknown: int


def export_in_order(client: AdminClient, query: Mapping[str, Any]) -> OrderedExport:
    """Return the export of a server, with the order of strategies. Raises AdminApiError.

    A server's export does not contain it, and the first matching strategy decides the variant. One request per flag reads it. It is
    written as `sortOrder`, from 0 for each flag, so that an import restores it.
    """
    data = client.export(query)
    by_flag: dict[str, list[Json]] = {}
    for item in data.get("featureStrategies") or ():
        by_flag.setdefault(str(item.get("featureName")), []).append(item)
    projects = {item["name"]: str(item.get("project", "default")) for item in data["features"]}
    several = [name for name, items in by_flag.items() if len(items) > 1]
    rows = read_strategies(client, [(projects.get(name, "default"), name) for name in several], str(query["environment"]))
    sent = read_sdk_strategies(client, str(query["environment"])) if any(map(has_ties, rows.values())) else {}
    found = {name: sort_strategies(items, rows.get(name), sent.get(name, ())) for name, items in by_flag.items()}
    strategies = [item for items in found.values() for item in items]
    return OrderedExport({**data, "featureStrategies": strategies}, sum("sortOrder" not in found[name][0] for name in several))


def read_strategies(client: AdminClient, flags: Sequence[tuple[str, str]], environment: str) -> dict[str, Any]:
    """Return the strategies that the admin API lists for flags, given as project and name; None if it does not."""

    def ask(flag: tuple[str, str]) -> Any:
        return client.value(f"{feature_path(*flag)}/environments/{quote_path_part(environment)}/strategies")

    pool = ThreadPoolExecutor(PARALLEL_REQUESTS)
    try:
        return {name: rows for (_, name), rows in zip(flags, pool.map(ask, flags), strict=True)}
    finally:
        pool.shutdown(cancel_futures=True)


def read_sdk_strategies(client: AdminClient, environment: str) -> dict[str, list[Json]]:
    """Return the strategies that SDKs get, by flag, in their order; empty if the token may not read them."""
    document = client.value(f"/api/client/features?environment={quote_path_part(environment)}")
    features = document.get("features") if isinstance(document, dict) else None
    return {item["name"]: item.get("strategies") or [] for item in features or () if isinstance(item, dict)}


def sort_orders(rows: Any) -> dict[str, float]:
    """Return the sort orders in a list of the admin API, by id; empty if it is not a list of strategies."""
    try:
        return {row["id"]: row["sortOrder"] + 0 for row in rows}
    except (TypeError, KeyError):
        return {}


def has_ties(rows: Any) -> bool:
    """Return whether two strategies of a flag have the same sort order, so that their order is unclear."""
    orders = list(sort_orders(rows).values())
    return len(set(orders)) < len(orders)


def sort_strategies(items: Sequence[Json], rows: Any, sent: Iterable[Json]) -> list[Json]:
    """Return the strategies of a flag in order, each with its sort order; unchanged if the order is unknown.

    `rows` comes from the admin API, `sent` is what SDKs get. Only `sent` shows the order of strategies with equal sort orders.
    """
    if len(items) == 1:
        return [{**items[0], "sortOrder": 0}]
    orders = sort_orders(rows)
    if not all(item.get("id") in orders for item in items):
        return list(items)
    listed = {id_: number for number, id_ in enumerate(orders)}
    ranks = dict(rank_strategies(items, sent))
    ordered = sorted(items, key=lambda item: (orders[item["id"]], ranks[item["id"]], listed[item["id"]]))
    return [{**item, "sortOrder": place} for place, item in enumerate(ordered)]


def rank_strategies(items: Sequence[Json], sent: Iterable[Json]) -> Iterator[tuple[str, int]]:
    """Yield the id and the rank of strategies among those that SDKs get, which have no id. Others come last."""
    flag = items[0].get("featureName")
    ranks: dict[str, list[int]] = {}
    for number, item in enumerate(sent):
        ranks.setdefault(comparison_key(item, flag), []).append(number)
    for item in items:
        own = [] if item.get("disabled") else ranks.get(comparison_key(item, flag), [])
        yield item["id"], own.pop(0) if own else LAST_RANK


def comparison_key(item: Json, flag: object) -> str:
    """Return a text that is equal for strategies with the same effect."""
    return comparison_texts([normalize_strategy({**item, "featureName": flag, "title": "", "disabled": False}, {})])[0]
