"""The metrics of the proxy, one row each: name, type, help and where its numbers come from (behaviour: Metrics endpoint).

A row of KEPT is read in the process that keeps the configuration, a row of SERVED in every process that answers requests. In one
process both are read there. With several workers, the process that keeps the configuration sums the readings of SERVED and writes
the text (specification: GET /proxy/internal-backstage/prometheus). A new metric of a number that `Sources` has needs only its row.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from flagsvc.core.clock import Clock
from flagsvc.core.version import VERSION, engine_form
from flagsvc.engine.classes.store import ClassStore
from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.counts import Calls, StatusCounts, Traffic
from flagsvc.http.messages import Response
from flagsvc.http.metrics import (
    CONTENT_TYPE,
    COUNTER,
    DURATIONS,
    GAUGE,
    HISTOGRAM,
    OPEN_METRICS,
    REQUESTS,
    VARY,
    Key,
    Labels,
    Measured,
    MetricRow,
    Readings,
    by_bucket,
    by_name,
    count_durations,
    count_requests,
    durations_row,
    limits_row,
    measure,
    measured,
    prefers_open_metrics,
    requests_row,
    streams_rows,
    traffic_rows,
)
from flagsvc.http.streams import Streams
from flagsvc.proxy.api.answers import ASK_AGAIN, Answers, ResponseHeaders
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.readiness import Readiness
from flagsvc.proxy.configuration.holder import Holder
from flagsvc.proxy.configuration.lifecycle import State
from flagsvc.proxy.usage import UsageCounters

if TYPE_CHECKING:
    from prometheus_client import Metric


Loops: TypeAlias = Callable[[], Mapping[str, int]]
"""Returns how often each background loop was restarted after a failure, by its name."""


class WorkerFigures(NamedTuple):
    """How many processes answer requests, how many were replaced, and how many of these had hung."""

    workers: int = 1
    restarts: int = 0
    hangs: int = 0


class TokenFigures(NamedTuple):
    """How many tokens the upstreams know, how many wait for an answer, and the number of requests that were sent about tokens.

    `calls` tells how these went.
    """

    known: int
    waiting: int
    asked: int
    calls: Calls


FormerCounts: TypeAlias = Mapping[str, Mapping[tuple[str, ...], float]]
"""Counts of environments that were replaced: by row, then by labels."""


StorageErrors: TypeAlias = Callable[[], int | None]
"""Returns how often the storage failed; None without a storage."""


class Sources(NamedTuple):
    """The sources of the samples. `private` tells that callers cannot read the metrics.

    `environments` returns the sources of each environment by its name; then the others are those of the process. The only
    environment has an empty name. `former` are the counts of environments that had the same names before. `tokens` is None if only
    listed keys are accepted. `is_pending` tells whether an environment is being replaced. `streams` are the event streams of the
    process, and `traffic` what its connections do. `readiness` tells whether callers should be sent here.
    """

    holder: Holder
    usage: UsageCounters
    status_counts: Sequence[StatusCounts]
    clock: Clock
    cache: AnswerCache
    workers: Callable[[], WorkerFigures] = WorkerFigures
    loops: Loops = dict
    reached: Mapping[str, int] = MappingProxyType({})
    private: bool = False
    storage_errors: StorageErrors = lambda: None
    environments: Callable[[], Mapping[str, Sources]] | None = None
    tokens: Callable[[], TokenFigures] | None = None
    former: Mapping[str, FormerCounts] = MappingProxyType({})
    is_pending: Callable[[], bool] = bool
    streams: Streams | None = None
    traffic: Traffic | None = None
    readiness: Readiness | None = None


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
    former = {name: sources.former.get(name, {}).get(row.name, {}) for name in parts}
    found = {name: add(row.read(part) or {}, former[name]) for name, part in parts.items()}
    if row.place == BOTH:
        found[""] = {**(row.read(sources) or {}), **found.get("", {})}
    if "" in parts:
        return dict(found[""])
    return {(name, *labels): value for name, values in found.items() for labels, value in values.items()}


def add(present: Mapping[Labels, float], former: Mapping[Labels, float]) -> Mapping[Labels, float]:
    return {**former, **{labels: value + former.get(labels, 0) for labels, value in present.items()}}


def divided(rows: Sequence[Row], sources: Sources) -> list[Row]:
    """Return the rows for these sources. With several environments, most of them have a label for the environment."""
    if sources.environments is None:
        return list(rows)
    label = () if "" in sources.environments() else (ENVIRONMENT,)
    return [
        row if row.place == PROCESS else row._replace(labels=(*label, *row.labels), read=partial(read_environments, row))
        for row in rows
    ]


def one(
    kind: str,
    name: str,
    help: str,
    read: Callable[[Sources], float | None],
    place: str = "",
    private: bool = False,
    bare: bool = False,
) -> Row:
    """Return a row with a single number, which has no labels. Without a number, the row has no sample."""

    def numbers(sources: Sources) -> Mapping[Labels, float]:
        value = read(sources)
        return {} if value is None else {(): value}

    return Row(name, kind, help, numbers, (), private, bare, place)


counter, gauge = partial(one, COUNTER), partial(one, GAUGE)


SPECIFIED: tuple[Row, ...] = (
    gauge(
        "last_metrics_update_epoch_timestamp_ms",
        "Epoch milliseconds of the last feature update that was received.",
        lambda sources: sources.holder.last_update_ms,
        bare=True,
    ),
    gauge(
        "last_metrics_fetch_epoch_timestamp_ms",
        "Epoch milliseconds of the last successful check for updates.",
        lambda sources: sources.holder.last_fetch_ms,
        bare=True,
    ),
    counter("flagsvc_proxy_up", "1 while the proxy runs.", lambda _: 1, PROCESS, bare=True),
    counter("unleash_proxy_up", "1 while the proxy runs, under the reference's name.", lambda _: 1, PROCESS, bare=True),
)
"""The metrics that the specification names. Their names have no suffix. A client library would add a suffix."""


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


def of_tokens(read: Callable[[TokenFigures], float]) -> Callable[[Sources], float | None]:
    """Return a function that reads one figure of the tokens; it returns None if only listed keys are accepted."""
    return lambda of: None if of.tokens is None else read(of.tokens())


def of_classes(read: Callable[[ClassStore], float]) -> Callable[[Sources], float]:
    """Return a function that reads one figure of the classes of contexts; 0 without a configuration or without classes."""

    def figure(of: Sources) -> float:
        lists = None if of.holder.current is None else of.holder.current.lists
        return read(lists) if isinstance(lists, ClassStore) else 0.0

    return figure


def requests(sources: Sources) -> dict[Labels, float]:
    return count_requests(sources.status_counts)


def durations(sources: Sources) -> dict[Labels, float]:
    return count_durations(sources.status_counts)


def calls(sources: Sources) -> tuple[str, Calls]:
    """Return the requests to the upstream: those about tokens belong to the process, the others to an environment."""
    return ("flags", sources.holder.calls) if sources.tokens is None else ("tokens", sources.tokens().calls)


def traffic(sources: Sources) -> Traffic | None:
    return sources.traffic


def streams(sources: Sources) -> Streams | None:
    return sources.streams


def reached(sources: Sources) -> dict[Labels, float]:
    return by_name(sources.reached)


def collected(what: str) -> Callable[[Sources], Mapping[Labels, float]]:
    """Return a function that reads one figure of the garbage collector for each generation."""
    return lambda _: {(str(generation),): stats[what] for generation, stats in enumerate(gc.get_stats())}


KEPT: tuple[Row, ...] = (
    Row(
        "flagsvc_build_info",
        GAUGE,
        "The running version, and whether its engine is `compiled` or `interpreted` (slower).",
        lambda _: {(VERSION, engine_form()): 1},
        ("version", "engine"),
        place=PROCESS,
    ),
    gauge(
        "flagsvc_ready",
        "1 while callers should be sent here, as /readyz says, else 0.",
        lambda of: None if of.readiness is None else float(not of.readiness.find_objection()),
        PROCESS,
    ),
    gauge("flagsvc_config_problems", "Malformed toggles and segments left out.", lambda of: of.holder.problems),
    gauge(
        "flagsvc_config_odd_values",
        "Toggles and segments that are served although a value in them is odd, as the reference serves them.",
        lambda of: of.holder.odd,
    ),
    gauge(
        "flagsvc_environment_pending",
        "1 while the former configuration answers, because a changed environment is not ready yet.",
        lambda of: float(of.is_pending()),
    ),
    gauge("flagsvc_config_age_seconds", "Time since the last check that went well.", lambda of: age(of)),
    Row(
        "flagsvc_config_state",
        GAUGE,
        "1 for the present state: cold, restored, bootstrapped, fresh, stale or refused.",
        states,
        ("state",),
    ),
    Row("flagsvc_config_info", GAUGE, "The revision that is served.", revision, ("revision",)),
    gauge(
        "flagsvc_config_last_success_timestamp_seconds",
        "When the last check that went well was.",
        lambda of: of.holder.last_fetch_ms / 1000,
    ),
    gauge("flagsvc_upstream_consecutive_failures", "Checks in a row that failed.", lambda of: of.holder.failures),
    Row(
        "flagsvc_upstream_answers",
        COUNTER,
        "Polls of the upstream by result, such as fetched, not-modified (304), unusable (no good document), refused (401, 403)"
        " and failed.",
        lambda of: by_name(of.holder.event_counts),
        ("event",),
    ),
    Row(
        "flagsvc_config_refresh_duration_seconds",
        HISTOGRAM,
        "Time of the phases of a refresh: fetch; compile, with the wait for workers; switch.",
        lambda of: by_bucket({(phase,): found for phase, found in of.holder.phases.items()}),
        ("phase",),
    ),
    Row(
        "flagsvc_upstream_request_duration_seconds",
        HISTOGRAM,
        "Time of requests to the upstream by what they do and how they end: `ok`, or the kind of the failure.",
        lambda of: by_bucket(calls(of)[1].durations),
        ("request", "outcome"),
        place=BOTH,
    ),
    Row(
        "flagsvc_upstream_received_bytes",
        COUNTER,
        "Bytes received from the upstream, compressed: in the session for flags and usage, or that for tokens of callers.",
        lambda of: {(calls(of)[0],): float(calls(of)[1].received)},
        ("session",),
        place=BOTH,
    ),
    gauge(
        "flagsvc_upstream_streaming",
        "1 while a stream of the upstream is open, 0 while it is polled.",
        lambda of: float(of.holder.stream.is_open),
    ),
    counter("flagsvc_upstream_streams", "Streams of the upstream that were opened.", lambda of: of.holder.stream.opened),
    counter(
        "flagsvc_upstream_fallbacks",
        "Times a stream was open and has ended, so that the upstream was polled until the next one.",
        lambda of: of.holder.stream.fallbacks,
    ),
    Row(
        "flagsvc_upstream_stream_events",
        COUNTER,
        "Events of the streams: unleash-connected, unleash-updated, fetch-mode and other.",
        lambda of: by_name(of.holder.stream.events),
        ("event",),
    ),
    Row(
        "flagsvc_upstream_stream_ends",
        COUNTER,
        "Streams that have ended (closed, broken, silent, behind, polling, renewed) or were not opened (not-offered, throttled,"
        " server, unreachable).",
        lambda of: by_name(of.holder.stream.ends),
        ("reason",),
    ),
    Row(
        "flagsvc_loop_restarts",
        COUNTER,
        "Unexpected failures after which a background loop went on.",
        lambda of: by_name(of.loops()),
        ("loop",),
        place=BOTH,
    ),
    gauge(
        "flagsvc_usage_waiting",
        "Toggles, variants and samples of impact metrics counted since usage metrics were last sent.",
        lambda of: of.usage.entries,
        private=True,
    ),
    gauge(
        "flagsvc_tokens_known",
        "Tokens of callers that the upstream knows; 0 or absent if none are looked up.",
        of_tokens(lambda of: of.known),
        PROCESS,
    ),
    gauge(
        "flagsvc_tokens_waiting",
        "Tokens that wait to be looked up; 0 or absent if none are looked up.",
        of_tokens(lambda of: of.waiting),
        PROCESS,
    ),
    counter(
        "flagsvc_token_lookups",
        "Requests that asked the upstream about tokens of callers, many at once; 0 or absent if none are looked up.",
        of_tokens(lambda of: of.asked),
        PROCESS,
    ),
    counter(
        "flagsvc_storage_errors",
        "Times the storage did not do what it was asked; absent without a storage.",
        lambda of: of.storage_errors(),
    ),
    gauge("flagsvc_workers", "Processes that answer requests.", lambda of: of.workers().workers, PROCESS),
    counter("flagsvc_worker_restarts", "Workers that were replaced.", lambda of: of.workers().restarts, PROCESS),
    counter(
        "flagsvc_worker_hangs",
        "Workers that did not answer any more; they are among those that were replaced.",
        lambda of: of.workers().hangs,
        PROCESS,
    ),
)
"""The metrics that only the process that keeps the configuration knows."""

SERVED: tuple[Row, ...] = (
    Row(
        "flagsvc_usage_dropped",
        COUNTER,
        "Usage counts left out: too many at once, malformed entries of reports, or refused by the upstream for good.",
        lambda of: {
            ("full",): of.usage.full,
            ("malformed",): of.usage.malformed,
            ("refused",): of.usage.refused,
        },
        ("reason",),
    ),
    counter(
        "flagsvc_usage_unknown",
        "Usage counts left out: the configuration does not know the toggle or the variant.",
        lambda of: of.usage.unknown,
        private=True,
    ),
    requests_row(requests)._replace(place=BOTH),
    durations_row(durations)._replace(place=BOTH),
    limits_row(reached)._replace(place=PROCESS),
    *traffic_rows(traffic, PROCESS),
    *streams_rows(streams, PROCESS),
    counter("flagsvc_answer_cache_hits", "Answers taken from the cache.", lambda of: of.cache.totals()[0]),
    counter("flagsvc_answer_cache_misses", "Answers not found in it.", lambda of: of.cache.totals()[1]),
    gauge("flagsvc_answer_cache_bytes", "Bytes of answers kept.", lambda of: of.cache.totals()[2]),
    counter(
        "flagsvc_class_cache_hits",
        "List answers by what is kept for the class of their context.",
        of_classes(lambda classes: classes.counts.hits),
    ),
    counter(
        "flagsvc_class_cache_misses",
        "List answers for a context of a class that nothing is kept for.",
        of_classes(lambda classes: classes.counts.misses),
    ),
    gauge(
        "flagsvc_class_cache_bytes",
        "Bytes kept for classes of contexts.",
        of_classes(lambda classes: int(classes.taken() + classes.classes.size)),
    ),
    *(
        Row(f"python_gc_{name}", COUNTER, help, collected(what), ("generation",), place=PROCESS)
        for name, what, help in (
            ("objects_collected", "collected", "Objects collected during gc."),
            ("objects_uncollectable", "uncollectable", "Uncollectable objects found during gc."),
            ("collections", "collections", "Times this generation was collected."),
        )
    ),
)
"""The metrics of each process that answers requests. With several workers, their sum is shown."""

COUNTED = frozenset(row.name for row in SERVED if row.kind != GAUGE)
"""The rows of SERVED whose numbers outlive a worker, because they only grow. The others are present values."""


def count_former(sources: Sources, before: FormerCounts) -> FormerCounts:
    """Return the counters of an environment that is replaced, with the counters `before` it. Requests are counted on anyway."""
    names = {REQUESTS, DURATIONS}
    rows = [row for row in (*KEPT, *SERVED) if row.kind != GAUGE and row.place != PROCESS and row.name not in names]
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


FetchMetrics: TypeAlias = Callable[[bool], Awaitable[bytes]]
"""Returns the metrics of all processes as text, as OpenMetrics if True. Raises HttpError."""


def exposition(
    sources: Sources, served: Mapping[Key, float], processes: Iterable[Metric] | None = None, *, is_open: bool = False
) -> bytes:
    """Return the text: first the specification's samples, then the others. `served` has the numbers of the rows of SERVED.

    `processes` are the operating system's figures of the processes; None for those of this process. `is_open` asks for OpenMetrics.
    """
    return write(gather(sources, served), processes, is_open=is_open)


def gather(sources: Sources, served: Mapping[Key, float]) -> list[Measured]:
    """Return the rows that are shown, with their numbers."""
    numbers = by_row(served)
    rows = [row for row in (*SPECIFIED, *KEPT) if sources.private or not row.private]
    kept = measure(divided(rows, sources), sources)
    shown = divided([row for row in SERVED if sources.private or not row.private], sources)
    return [*kept, *(measured(row, numbers.get(row.name, {})) for row in shown)]


def write(rows: Iterable[Measured], processes: Iterable[Metric] | None, *, is_open: bool) -> bytes:
    """Return the text of rows. Safe in any thread."""
    from flagsvc.http import metric_families  # with the first scrape: it takes two megabytes

    return metric_families.exposition(rows, metric_families.this_process() if processes is None else processes, is_open=is_open)


def gather_here(sources: Sources) -> list[Measured]:
    """Return the rows that are shown, with the numbers of this process."""
    return gather(sources, readings(sources))


async def render_metrics(sources: Sources, is_open: bool) -> bytes:
    """Return the text of the metrics of this process. A thread writes it, so that no caller waits for that."""
    return await asyncio.to_thread(write, gather_here(sources), None, is_open=is_open)


def by_row(readings: Mapping[Key, float]) -> dict[str, dict[Labels, float]]:
    found: dict[str, dict[Labels, float]] = {}
    for (name, *labels), value in readings.items():
        found.setdefault(name, {})[tuple(labels)] = value
    return found


class Prometheus(Handler):
    """GET /proxy/internal-backstage/prometheus: the metrics of this process, or of all processes with `fetch_metrics`."""

    def __init__(self, sources: Sources, answers: Answers, fetch_metrics: FetchMetrics | None = None) -> None:
        self.answers = answers
        self.fetch_metrics = fetch_metrics or partial(render_metrics, sources)
        self.headers: dict[bool, ResponseHeaders] = {
            is_open: ResponseHeaders(answers.cors, form.encode(), ASK_AGAIN, (b"Accept-Encoding", VARY), [])
            for is_open, form in ((False, CONTENT_TYPE), (True, OPEN_METRICS))
        }

    def answer(self, call: Call, body: bytes) -> Answer:
        return self.later(call)

    async def later(self, call: Call) -> Response:
        """Return the metrics. Raises HttpError (503) if the other processes cannot be asked."""
        is_open = prefers_open_metrics(call.accept)
        return self.answers.respond(self.headers[is_open], call, await self.fetch_metrics(is_open))
