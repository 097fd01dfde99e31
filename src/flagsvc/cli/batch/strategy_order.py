"""Reads the order of strategies. A server's export does not contain it, and the first matching strategy decides the variant.

One request per flag reads it. It is written as `sortOrder`, from 0 for each flag, so that an import restores it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from flagsvc.cli.batch.changes import comparison_texts, normalize_strategy
from flagsvc.cli.batch.client import AdminClient, quote_path_part

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
    """Return the export of a server, with the order of strategies. Raises AdminApiError."""
    data = client.export(query)
    by_flag: dict[str, list[Json]] = {}
    for item in data.get("featureStrategies") or ():
        by_flag.setdefault(str(item.get("featureName")), []).append(item)
    projects = {item["name"]: str(item.get("project", "default")) for item in data["features"]}
    several = [name for name, items in by_flag.items() if len(items) > 1]
    rows = read_strategies(
        client, [(projects.get(name, "default"), name) for name in several], str(query["environment"])
    )
    sent = read_sdk_strategies(client, str(query["environment"])) if any(map(has_ties, rows.values())) else {}
    found = {name: sort_strategies(items, rows.get(name), sent.get(name, ())) for name, items in by_flag.items()}
    strategies = [item for items in found.values() for item in items]
    return OrderedExport(
        {**data, "featureStrategies": strategies}, sum("sortOrder" not in found[name][0] for name in several)
    )


def read_strategies(client: AdminClient, flags: Sequence[tuple[str, str]], environment: str) -> dict[str, Any]:
    """Return the strategies that the admin API lists for flags, given as project and name; None if it does not."""

    def ask(flag: tuple[str, str]) -> Any:
        project, name = map(quote_path_part, flag)
        where = f"/api/admin/projects/{project}/features/{name}/environments/{quote_path_part(environment)}"
        return client.value(f"{where}/strategies")

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
