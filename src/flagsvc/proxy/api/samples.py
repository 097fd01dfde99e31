"""The metrics of the proxy, one row each: name, type, help and where its numbers come from (behaviour: Metrics endpoint).

A row of KEPT is read in the process that keeps the configuration, a row of SERVED in every process that answers requests. In one
process both are read there. With several workers, the process that keeps the configuration sums the readings of SERVED and writes
the text. A new metric of a number that `Sources` has needs only its row. `prometheus` writes the rows.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from flagsvc.core.clock import Clock
from flagsvc.core.version import VERSION, engine_form
from flagsvc.http.call import StatusCounts
from flagsvc.http.metrics import Labels, MetricRow, Readings, by_name, limits_row, measure, requests_row
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.ports import ConfigurationHolder, UsageCounting

STATES = ("cold", "restored", "bootstrapped", "fresh", "stale", "rejected")
ROLES = ("alone", "follower", "leader")

Loops: TypeAlias = Callable[[], Mapping[str, int]]
"""Returns how often each background loop was restarted after a failure, by its name."""


class WorkerProcesses(Protocol):
    """The processes that answer requests."""

    @property
    def workers(self) -> int:
        """The number of processes."""

    @property
    def restarts(self) -> int:
        """How often a process was replaced."""

    @property
    def hangs(self) -> int:
        """How many replaced processes did not answer."""


class SingleProcess(NamedTuple):
    """The only process."""

    workers: int = 1
    restarts: int = 0
    hangs: int = 0


class ReplicaStatus(Protocol):
    """The fleet as one replica sees it."""

    @property
    def role(self) -> str:
        """Its role: one of ROLES."""

    @property
    def changes(self) -> int:
        """How often it took or lost the lease."""

    @property
    def errors(self) -> int:
        """How often a request to the storage server failed."""

    @property
    def published(self) -> float:
        """When it last published a configuration, in seconds since the epoch; 0.0 for never."""

    @property
    def applied(self) -> float:
        """When it last took a configuration from the fleet, in the same unit."""


def no_loops() -> dict[str, int]:
    """Return no loops."""
    return {}


class Sources(NamedTuple):
    """The sources of the samples. `private` tells that callers cannot read the metrics."""

    holder: ConfigurationHolder
    usage: UsageCounting
    status_counts: Sequence[StatusCounts]
    clock: Clock
    cache: AnswerCache
    worker_pool: WorkerProcesses = SingleProcess()
    loops: Loops = no_loops
    reached: Mapping[str, int] = MappingProxyType({})
    private: bool = False
    fleet: ReplicaStatus | None = None


Row: TypeAlias = MetricRow[Sources]

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
    Row("flagsvc_proxy_up", "counter", "1 while the proxy runs.", lambda _: {(): 1}, bare=True),
    Row(
        "unleash_proxy_up",
        "counter",
        "1 while the proxy runs, under the reference's name.",
        lambda _: {(): 1},
        bare=True,
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
    """Return the served revision, if there is one."""
    snapshot = sources.holder.current
    return {} if snapshot is None else {(snapshot.cache_keys.revision,): 1.0}


def of_fleet(read: Callable[[ReplicaStatus], float]) -> Callable[[Sources], Mapping[Labels, float]]:
    """Return a function that reads one figure of the fleet; it returns nothing if there is no fleet."""
    return lambda of: {} if of.fleet is None else {(): read(of.fleet)}


def roles(sources: Sources) -> dict[Labels, float]:
    """Return the role of this replica as one number for each role; nothing if there is no fleet."""
    fleet = sources.fleet
    return {} if fleet is None else {(role,): float(fleet.role == role) for role in ROLES}


def requests(sources: Sources) -> dict[Labels, float]:
    """Return the number of requests by route template, method and status."""
    return {labels: count for counts in sources.status_counts for labels, count in statuses(counts).items()}


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
    ),
    Row("flagsvc_config_problems", "gauge", "Malformed toggles left out.", lambda of: {(): of.holder.problems}),
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
        "Checks for updates by result, such as fetched, not-modified (304), refused (401, 403) and failed.",
        lambda of: by_name(of.holder.event_counts),
        ("event",),
    ),
    Row(
        "flagsvc_loop_restarts",
        "counter",
        "Unexpected failures after which a background loop went on.",
        lambda of: by_name(of.loops()),
        ("loop",),
    ),
    Row(
        "flagsvc_usage_waiting",
        "gauge",
        "Toggles and variants counted since usage metrics were last sent.",
        lambda of: {(): of.usage.entries},
        private=True,
    ),
    Row("flagsvc_fleet_role", "gauge", "1 for who this replica is in its fleet.", roles, ("role",)),
    Row(
        "flagsvc_fleet_lease_changes",
        "counter",
        "Times this replica took or lost the lease.",
        of_fleet(lambda fleet: fleet.changes),
    ),
    Row(
        "flagsvc_fleet_published_timestamp_seconds",
        "gauge",
        "When this replica last gave its fleet a configuration.",
        of_fleet(lambda fleet: fleet.published),
    ),
    Row(
        "flagsvc_fleet_applied_timestamp_seconds",
        "gauge",
        "When this replica last took a configuration from its fleet.",
        of_fleet(lambda fleet: fleet.applied),
    ),
    Row(
        "flagsvc_storage_errors",
        "counter",
        "Times the storage server did not do what it was asked.",
        of_fleet(lambda fleet: fleet.errors),
    ),
    Row("flagsvc_workers", "gauge", "Processes that answer requests.", lambda of: {(): of.worker_pool.workers}),
    Row("flagsvc_worker_restarts", "counter", "Workers that were replaced.", lambda of: {(): of.worker_pool.restarts}),
    Row(
        "flagsvc_worker_hangs",
        "counter",
        "Workers that did not answer any more; they are among those that were replaced.",
        lambda of: {(): of.worker_pool.hangs},
    ),
)
"""The metrics that only the process that keeps the configuration knows."""

GENERATION = ("generation",)
SERVED: tuple[Row, ...] = (
    Row(
        "flagsvc_usage_dropped",
        "counter",
        "Usage counts left out: too many at once, or refused by the upstream for good.",
        lambda of: {("full",): of.usage.full, ("refused",): of.usage.refused},
        ("reason",),
    ),
    Row(
        "flagsvc_usage_unknown",
        "counter",
        "Usage counts left out: the configuration does not know the toggle or the variant.",
        lambda of: {(): of.usage.unknown},
        private=True,
    ),
    requests_row(requests),
    limits_row(lambda of: by_name(of.reached)),
    Row("flagsvc_answer_cache_hits", "counter", "Answers taken from the cache.", lambda of: {(): of.cache.hits}),
    Row("flagsvc_answer_cache_misses", "counter", "Answers not found in it.", lambda of: {(): of.cache.misses}),
    Row("flagsvc_answer_cache_bytes", "gauge", "Bytes of answers kept.", lambda of: {(): of.cache.size}),
    Row("python_gc_objects_collected", "counter", "Objects collected during gc.", collected("collected"), GENERATION),
    Row(
        "python_gc_objects_uncollectable",
        "counter",
        "Uncollectable objects found during gc.",
        collected("uncollectable"),
        GENERATION,
    ),
    Row(
        "python_gc_collections",
        "counter",
        "Times this generation was collected.",
        collected("collections"),
        GENERATION,
    ),
)
"""The metrics of each process that answers requests. With several workers, their sum is shown."""

COUNTED = frozenset(row.name for row in SERVED if row.kind == "counter")
"""The rows of SERVED whose numbers outlive a worker, because they are counters. The others are present values."""


def readings(sources: Sources) -> Readings:
    """Return the numbers of the rows of SERVED in this process."""
    found = measure(SERVED, sources)
    return {(row.name, *labels): value for row in found for labels, value in row.values.items()}
