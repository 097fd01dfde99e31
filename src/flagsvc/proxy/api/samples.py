"""The metrics of the proxy, one row each: name, type, help and where its numbers come from (behaviour: Metrics endpoint).

A row of KEPT is read in the process that keeps the configuration, a row of SERVED in every process that answers requests. In one
process both are read there. With several workers, the process that keeps the configuration sums the readings of SERVED and writes
the text. A new metric of a number that `Sources` has needs only its row. `prometheus` writes the rows.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from flagsvc.core.version import VERSION, engine_form
from flagsvc.engine.classes.store import ClassStore
from flagsvc.http.call import StatusCounts
from flagsvc.http.metrics import REQUESTS, Labels, MetricRow, Readings, by_name, limits_row, measure, requests_row
from flagsvc.proxy.api.sources import FormerCounts, Sources, TokenStatus
from flagsvc.proxy.configuration.lifecycle import State

STATES = tuple(str(state) for state in State)

Row: TypeAlias = MetricRow[Sources]

PROCESS = "process"
"""The place of a row whose numbers are those of the process."""
BOTH = "both"
"""The place of a row with numbers of each environment, and of the process for what belongs to no environment.

Rows without a place are read in each environment.
"""
ENVIRONMENT = "environment"
"""The label with the name of the environment. A process with a single environment does not have it."""


def read_environments(row: Row, sources: Sources) -> dict[Labels, float]:
    """Return the numbers of a row in each environment, with its name as first label. The only environment has no label."""
    parts = {} if sources.environments is None else sources.environments()
    found = {name: add(row.read(part) or {}, of_former(sources, name, row)) for name, part in parts.items()}
    if row.place == BOTH:
        found[""] = {**(row.read(sources) or {}), **found.get("", {})}
    if "" in parts:
        return dict(found[""])
    return {(name, *labels): value for name, values in found.items() for labels, value in values.items()}


def of_former(sources: Sources, name: str, row: Row) -> Mapping[Labels, float]:
    """Return what was counted in environments that had this name before."""
    return sources.former.get(name, {}).get(row.name, {})


def add(present: Mapping[Labels, float], former: Mapping[Labels, float]) -> Mapping[Labels, float]:
    return {**former, **{labels: value + former.get(labels, 0) for labels, value in present.items()}}


def divided(rows: Sequence[Row], sources: Sources) -> list[Row]:
    """Return the rows for these sources. With several environments, most of them have a label for the environment."""
    if sources.environments is None:
        return list(rows)
    label = () if "" in sources.environments() else (ENVIRONMENT,)
    return [
        row
        if row.place == PROCESS
        else row._replace(labels=(*label, *row.labels), read=partial(read_environments, row))
        for row in rows
    ]


SPECIFIED: tuple[Row, ...] = (
    Row(
        "last_metrics_update_epoch_timestamp_ms",
        "gauge",
        "Epoch milliseconds of the last feature update that was received.",
        lambda sources: {(): sources.holder.last_update_ms},
        bare=True,
    ),
    Row(
        "last_metrics_fetch_epoch_timestamp_ms",
        "gauge",
        "Epoch milliseconds of the last successful check for updates.",
        lambda sources: {(): sources.holder.last_fetch_ms},
        bare=True,
    ),
    Row("flagsvc_proxy_up", "counter", "1 while the proxy runs.", lambda _: {(): 1}, bare=True, place=PROCESS),
    Row(
        "unleash_proxy_up",
        "counter",
        "1 while the proxy runs, under the reference's name.",
        lambda _: {(): 1},
        bare=True,
        place=PROCESS,
    ),
)
"""The metrics that the specification names. Their names have no suffix, unlike those that a client library makes."""


def age(sources: Sources) -> float:
    """Return the seconds since the last successful check; NaN before the first."""
    checked = sources.holder.checked_at
    return float("nan") if checked is None else max(0.0, sources.clock.monotonic() - checked)


def states(sources: Sources) -> dict[Labels, float]:
    """Return the present state as one number for each state."""
    return {(state,): float(sources.holder.state == state) for state in STATES}


def revision(sources: Sources) -> dict[Labels, float]:
    snapshot = sources.holder.current
    return {} if snapshot is None else {(snapshot.cache_keys.revision,): 1.0}


def of_tokens(read: Callable[[TokenStatus], float]) -> Callable[[Sources], Mapping[Labels, float]]:
    """Return a function that reads one figure of the tokens; it returns nothing if only listed keys are accepted."""
    return lambda of: {} if of.tokens is None else {(): read(of.tokens)}


def of_classes(read: Callable[[ClassStore], float]) -> Callable[[Sources], Mapping[Labels, float]]:
    """Return a function that reads one figure of the classes of contexts; 0 without a configuration or without classes."""

    def figure(of: Sources) -> Mapping[Labels, float]:
        lists = None if of.holder.current is None else of.holder.current.lists
        return {(): read(lists) if isinstance(lists, ClassStore) else 0.0}

    return figure


def storage_errors(sources: Sources) -> dict[Labels, float]:
    """Return how often a request to the storage server failed; nothing without such a server."""
    errors = sources.storage_errors()
    return {} if errors is None else {(): float(errors)}


def requests(sources: Sources) -> dict[Labels, float]:
    """Return the number of requests by route template, method and status."""
    return {labels: count for counts in sources.status_counts for labels, count in statuses(counts).items()}


def reached(sources: Sources) -> dict[Labels, float]:
    """Return how often each limit was reached."""
    return by_name(sources.reached)


def statuses(counts: StatusCounts) -> dict[Labels, float]:
    """Return how often one method of one route was answered with each status."""
    return {(counts.route, counts.method, str(status)): count for status, count in counts.statuses.items()}


def collected(what: str) -> Callable[[Sources], Mapping[Labels, float]]:
    """Return a function that reads one figure of the garbage collector for each generation."""
    return lambda _: {(str(generation),): stats[what] for generation, stats in enumerate(gc.get_stats())}


KEPT: tuple[Row, ...] = (
    Row(
        "flagsvc_build_info",
        "gauge",
        "The running version, and whether its engine is `compiled` or `interpreted` (slower).",
        lambda _: {(VERSION, engine_form()): 1},
        ("version", "engine"),
        place=PROCESS,
    ),
    Row(
        "flagsvc_config_problems",
        "gauge",
        "Malformed toggles and segments left out.",
        lambda of: {(): of.holder.problems},
    ),
    Row(
        "flagsvc_config_odd_values",
        "gauge",
        "Toggles and segments that are served although a value in them is odd, as the reference serves them.",
        lambda of: {(): of.holder.odd},
    ),
    Row(
        "flagsvc_environment_pending",
        "gauge",
        "1 while the former configuration answers, because a changed environment is not ready yet.",
        lambda of: {(): float(of.is_pending())},
    ),
    Row("flagsvc_config_age_seconds", "gauge", "Time since the last check that went well.", lambda of: {(): age(of)}),
    Row("flagsvc_config_state", "gauge", "1 for the state of the configuration.", states, ("state",)),
    Row("flagsvc_config_info", "gauge", "The revision that is served.", revision, ("revision",)),
    Row(
        "flagsvc_config_last_success_timestamp_seconds",
        "gauge",
        "When the last check that went well was.",
        lambda of: {(): of.holder.last_fetch_ms / 1000},
    ),
    Row(
        "flagsvc_upstream_consecutive_failures",
        "gauge",
        "Checks in a row that failed.",
        lambda of: {(): of.holder.failures},
    ),
    Row(
        "flagsvc_upstream_answers",
        "counter",
        "Polls of the upstream by result, such as fetched, not-modified (304), unusable (no good document), refused (401, 403)"
        " and failed.",
        lambda of: by_name(of.holder.event_counts),
        ("event",),
    ),
    Row(
        "flagsvc_loop_restarts",
        "counter",
        "Unexpected failures after which a background loop went on.",
        lambda of: by_name(of.loops()),
        ("loop",),
        place=BOTH,
    ),
    Row(
        "flagsvc_usage_waiting",
        "gauge",
        "Toggles, variants and samples of impact metrics counted since usage metrics were last sent.",
        lambda of: {(): of.usage.entries},
        private=True,
    ),
    Row(
        "flagsvc_tokens_known",
        "gauge",
        "Tokens of callers that the upstream knows; 0 or absent if none are looked up.",
        of_tokens(lambda of: of.known),
        place=PROCESS,
    ),
    Row(
        "flagsvc_tokens_waiting",
        "gauge",
        "Tokens that wait to be looked up; 0 or absent if none are looked up.",
        of_tokens(lambda of: of.waiting),
        place=PROCESS,
    ),
    Row(
        "flagsvc_token_lookups",
        "counter",
        "Requests that asked the upstream about tokens of callers, many at once; 0 or absent if none are looked up.",
        of_tokens(lambda of: of.asked),
        place=PROCESS,
    ),
    Row(
        "flagsvc_storage_errors",
        "counter",
        "Times the storage server did not do what it was asked.",
        storage_errors,
    ),
    Row(
        "flagsvc_workers",
        "gauge",
        "Processes that answer requests.",
        lambda of: {(): of.worker_pool.workers},
        place=PROCESS,
    ),
    Row(
        "flagsvc_worker_restarts",
        "counter",
        "Workers that were replaced.",
        lambda of: {(): of.worker_pool.restarts},
        place=PROCESS,
    ),
    Row(
        "flagsvc_worker_hangs",
        "counter",
        "Workers that did not answer any more; they are among those that were replaced.",
        lambda of: {(): of.worker_pool.hangs},
        place=PROCESS,
    ),
)
"""The metrics that only the process that keeps the configuration knows."""

GENERATION = ("generation",)
SERVED: tuple[Row, ...] = (
    Row(
        "flagsvc_usage_dropped",
        "counter",
        "Usage counts left out: too many at once, malformed entries of reports, or refused by the upstream for good.",
        lambda of: {
            ("full",): of.usage.full,
            ("malformed",): of.usage.malformed,
            ("refused",): of.usage.refused,
        },
        ("reason",),
    ),
    Row(
        "flagsvc_usage_unknown",
        "counter",
        "Usage counts left out: the configuration does not know the toggle or the variant.",
        lambda of: {(): of.usage.unknown},
        private=True,
    ),
    requests_row(requests)._replace(place=BOTH),
    limits_row(reached)._replace(place=PROCESS),
    Row("flagsvc_answer_cache_hits", "counter", "Answers taken from the cache.", lambda of: {(): of.cache.totals()[0]}),
    Row("flagsvc_answer_cache_misses", "counter", "Answers not found in it.", lambda of: {(): of.cache.totals()[1]}),
    Row("flagsvc_answer_cache_bytes", "gauge", "Bytes of answers kept.", lambda of: {(): of.cache.totals()[2]}),
    Row(
        "flagsvc_class_cache_hits",
        "counter",
        "List answers by what is kept for the class of their context.",
        of_classes(lambda classes: classes.counts.hits),
    ),
    Row(
        "flagsvc_class_cache_misses",
        "counter",
        "List answers for a context of a class that nothing is kept for.",
        of_classes(lambda classes: classes.counts.misses),
    ),
    Row(
        "flagsvc_class_cache_bytes",
        "gauge",
        "Bytes kept for classes of contexts.",
        of_classes(lambda classes: int(classes.taken() + classes.classes.size)),
    ),
    Row(
        "python_gc_objects_collected",
        "counter",
        "Objects collected during gc.",
        collected("collected"),
        GENERATION,
        place=PROCESS,
    ),
    Row(
        "python_gc_objects_uncollectable",
        "counter",
        "Uncollectable objects found during gc.",
        collected("uncollectable"),
        GENERATION,
        place=PROCESS,
    ),
    Row(
        "python_gc_collections",
        "counter",
        "Times this generation was collected.",
        collected("collections"),
        GENERATION,
        place=PROCESS,
    ),
)
"""The metrics of each process that answers requests. With several workers, their sum is shown."""

COUNTED = frozenset(row.name for row in SERVED if row.kind == "counter")
"""The rows of SERVED whose numbers outlive a worker, because they are counters. The others are present values."""


def count_former(sources: Sources, before: FormerCounts) -> FormerCounts:
    """Return the counters of an environment that another one replaces, with those `before` it. Requests are counted on anyway."""
    rows = [row for row in (*KEPT, *SERVED) if row.kind == "counter" and row.place != PROCESS and row.name != REQUESTS]
    return {row.name: add(row.read(sources) or {}, before.get(row.name, {})) for row in rows}


def present(found: Readings, sources: Sources) -> Readings:
    """Return the readings of SERVED without those of environments that are gone."""
    if sources.environments is None or "" in sources.environments():
        return found
    names, undivided = {"", *sources.environments()}, {row.name for row in SERVED if row.place == PROCESS}
    return {key: value for key, value in found.items() if key[0] in undivided or key[1] in names}


def readings(sources: Sources) -> Readings:
    """Return the numbers of the rows of SERVED in this process."""
    found = measure(divided(SERVED, sources), sources)
    return {(row.name, *labels): value for row in found for labels, value in row.values.items()}
