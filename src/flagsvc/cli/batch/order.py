"""The order of a flag's strategies. A server's export leaves it out, and the first strategy that matches decides the variant.

It is asked for flag by flag, and written as `sortOrder`, counted from 0 in each flag: an import restores it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from flagsvc.cli.batch.changes import strategy, texts
from flagsvc.cli.batch.client import AdminClient, in_path

Json = dict[str, Any]
AT_ONCE = 8
"""Requests under way at the same time."""
LAST = 1 << 30
"""Rank of a strategy that SDKs do not get."""


class Ordered(NamedTuple):
    """A data set whose strategies say their place, and how many flags the server does not tell it of."""

    data: Json
    unknown: int


def exported(client: AdminClient, query: Mapping[str, Any]) -> Ordered:
    """Return what a server exports, with the order of strategies. Raises CannotAskError."""
    data = client.export(query)
    by_flag: dict[str, list[Json]] = {}
    for item in data.get("featureStrategies") or ():
        by_flag.setdefault(str(item.get("featureName")), []).append(item)
    projects = {item["name"]: str(item.get("project", "default")) for item in data["features"]}
    several = [name for name, items in by_flag.items() if len(items) > 1]
    rows = told(client, [(projects.get(name, "default"), name) for name in several], str(query["environment"]))
    sent = sent_to_sdks(client, str(query["environment"])) if any(map(ties, rows.values())) else {}
    found = {name: placed(items, rows.get(name), sent.get(name, ())) for name, items in by_flag.items()}
    strategies = [item for items in found.values() for item in items]
    return Ordered(
        {**data, "featureStrategies": strategies}, sum("sortOrder" not in found[name][0] for name in several)
    )


def told(client: AdminClient, flags: Sequence[tuple[str, str]], environment: str) -> dict[str, Any]:
    """Return what the admin API lists as strategies of flags, of which project and name are given; None where it does not."""

    def ask(flag: tuple[str, str]) -> Any:
        project, name = map(in_path, flag)
        where = f"/api/admin/projects/{project}/features/{name}/environments/{in_path(environment)}"
        return client.value(f"{where}/strategies")

    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        return {name: rows for (_, name), rows in zip(flags, pool.map(ask, flags), strict=True)}
    finally:
        pool.shutdown(cancel_futures=True)


def sent_to_sdks(client: AdminClient, environment: str) -> dict[str, list[Json]]:
    """Return the strategies that SDKs get by flag, in the order that they get them; empty where the token may not read it."""
    document = client.value(f"/api/client/features?environment={in_path(environment)}")
    features = document.get("features") if isinstance(document, dict) else None
    return {item["name"]: item.get("strategies") or [] for item in features or () if isinstance(item, dict)}


def places_in(rows: Any) -> dict[str, float]:
    """Return the sort order by id of what the admin API lists, empty where that is no list of strategies."""
    try:
        return {row["id"]: row["sortOrder"] + 0 for row in rows}
    except (TypeError, KeyError):
        return {}


def ties(rows: Any) -> bool:
    """Return whether two strategies of a flag have the same sort order, so that it does not say which comes first."""
    orders = list(places_in(rows).values())
    return len(set(orders)) < len(orders)


def placed(items: Sequence[Json], rows: Any, sent: Iterable[Json]) -> list[Json]:
    """Return the strategies of a flag in their order, each with its place; as they came where the order is not known.

    `rows` is what the admin API lists of them, `sent` what SDKs get: a server sends those of equal sort order in an order that
    it does not tell elsewhere.
    """
    if len(items) == 1:
        return [{**items[0], "sortOrder": 0}]
    orders = places_in(rows)
    if not all(item.get("id") in orders for item in items):
        return list(items)
    listed = {id_: number for number, id_ in enumerate(orders)}
    ranks = dict(ranked(items, sent))
    ordered = sorted(items, key=lambda item: (orders[item["id"]], ranks[item["id"]], listed[item["id"]]))
    return [{**item, "sortOrder": place} for place, item in enumerate(ordered)]


def ranked(items: Sequence[Json], sent: Iterable[Json]) -> Iterator[tuple[str, int]]:
    """Give id and rank of strategies among those that SDKs get, which have no id; what they do not get comes last."""
    flag = items[0].get("featureName")
    ranks: dict[str, list[int]] = {}
    for number, item in enumerate(sent):
        ranks.setdefault(content(item, flag), []).append(number)
    for item in items:
        own = [] if item.get("disabled") else ranks.get(content(item, flag), [])
        yield item["id"], own.pop(0) if own else LAST


def content(item: Json, flag: object) -> str:
    """Return what a strategy does, as a text that is equal where it does the same."""
    return texts([strategy({**item, "featureName": flag, "title": "", "disabled": False}, {})])[0]
