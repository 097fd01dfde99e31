"""The metrics endpoint (specification: GET /proxy/internal-backstage/prometheus; behaviour: Metrics endpoint).

Samples are rows. Labels are route templates, methods and statuses: never a path, header, key or name that a caller sent.

A row of KEPT is read where the configuration is kept, a row of SERVED where requests are answered. In one process both are
read here. With several each worker's readings of SERVED are summed by the process that keeps the configuration, which then writes
the text for all of them; a new row needs nothing but its line in one of the tables.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from flagsvc.api.answers import ASK_AGAIN, Answers, Shape
from flagsvc.api.cache import AnswerCache
from flagsvc.api.call import Answer, Call, Handler, Tally
from flagsvc.api.http import Response
from flagsvc.api.ports import Holder, Usage
from flagsvc.clock import Clock
from flagsvc.version import VERSION

if TYPE_CHECKING:
    from prometheus_client import Metric

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
STATES = ("cold", "restored", "bootstrapped", "fresh", "stale")

Labels: TypeAlias = tuple[str, ...]
Key: TypeAlias = tuple[str, ...]
"""The name of a row, and the values of its labels."""
Readings: TypeAlias = dict[Key, float]
"""One number for each sample."""
Elsewhere: TypeAlias = Callable[[], Awaitable[bytes]]
"""Gives the text of all processes; raises Refused."""


class Crew(Protocol):
    """The processes that answer requests."""

    @property
    def workers(self) -> int:
        """How many there are."""

    @property
    def restarts(self) -> int:
        """How often one was replaced."""


class Alone(NamedTuple):
    """The one process that there is."""

    workers: int = 1
    restarts: int = 0


class Sources(NamedTuple):
    """Where the samples come from."""

    holder: Holder
    usage: Usage
    tallies: Sequence[Tally]
    clock: Clock
    cache: AnswerCache
    crew: Crew = Alone()


class Sample(NamedTuple):
    """One metric of the specification: its name as it stands, without the suffixes a client library would add."""

    name: str
    kind: str
    help: str
    read: Callable[[Sources], float]


SPECIFIED = (
    Sample(
        "last_metrics_update_epoch_timestamp_ms",
        "gauge",
        "Epoch milliseconds of the last feature update that was received.",
        lambda sources: sources.holder.last_update_ms,
    ),
    Sample(
        "last_metrics_fetch_epoch_timestamp_ms",
        "gauge",
        "Epoch milliseconds of the last check for updates.",
        lambda sources: sources.holder.last_fetch_ms,
    ),
    Sample("flagsvc_proxy_up", "counter", "1 while the proxy runs.", lambda _: 1),
    Sample("unleash_proxy_up", "counter", "1 while the proxy runs, under the reference's name.", lambda _: 1),
)


class Row(NamedTuple):
    """One metric beyond the specification's: `read` gives a number for each tuple of values of the labels.

    A counter's name has no `_total`: it is written with it. The numbers of counters only grow while a process lives.
    """

    name: str
    kind: str
    help: str
    read: Callable[[Sources], Mapping[Labels, float]]
    labels: Labels = ()


def age(sources: Sources) -> float:
    """Return the seconds since the last check for updates; NaN before the first."""
    fetched = sources.holder.last_fetch_ms
    return max(0.0, sources.clock.now() - fetched / 1000) if fetched else float("nan")


def states(sources: Sources) -> dict[Labels, float]:
    """Return where the configuration came from, one number for each state."""
    return {(state,): float(sources.holder.state == state) for state in STATES}


def requests(sources: Sources) -> dict[Labels, float]:
    """Return the number of requests by route template, method and status."""
    return {labels: count for tally in sources.tallies for labels, count in statuses(tally).items()}


def statuses(tally: Tally) -> dict[Labels, float]:
    """Return how often one method of one route was answered with each status."""
    return {(tally.route, tally.method, str(status)): count for status, count in tally.statuses.items()}


def collected(what: str) -> Callable[[Sources], Mapping[Labels, float]]:
    """Return what reads one figure of the garbage collector, generation by generation."""
    return lambda _: {(str(generation),): stats[what] for generation, stats in enumerate(gc.get_stats())}


KEPT = (
    Row("flagsvc_build_info", "gauge", "The running version.", lambda _: {(VERSION,): 1}, ("version",)),
    Row("flagsvc_config_problems", "gauge", "Malformed toggles left out.", lambda of: {(): of.holder.problems}),
    Row("flagsvc_config_age_seconds", "gauge", "Time since the last check for updates.", lambda of: {(): age(of)}),
    Row("flagsvc_config_state", "gauge", "1 for the state of the configuration.", states, ("state",)),
    Row("flagsvc_workers", "gauge", "Processes that answer requests.", lambda of: {(): of.crew.workers}),
    Row("flagsvc_worker_restarts", "counter", "Workers that were replaced.", lambda of: {(): of.crew.restarts}),
)
"""What only the process that keeps the configuration knows."""

REQUESTS = "flagsvc_http_requests"
GENERATION = ("generation",)
SERVED = (
    Row(
        "flagsvc_usage_dropped",
        "counter",
        "Usage counts left out: unknown, or too many.",
        lambda of: {(): of.usage.dropped},
    ),
    Row(REQUESTS, "counter", "Requests answered.", requests, ("route", "method", "status")),
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
"""What every process that answers requests knows of itself: with workers the sum is what is shown."""

COUNTED = frozenset(row.name for row in SERVED if row.kind == "counter")
"""The rows of SERVED whose numbers must outlive the worker they come from; the others say how it is now."""


def readings(sources: Sources) -> Readings:
    """Return the numbers of the rows of SERVED in this process."""
    return {(row.name, *labels): value for row in SERVED for labels, value in row.read(sources).items()}


def exposition(sources: Sources, served: Mapping[Key, float], processes: Iterable[Metric] | None = None) -> bytes:
    """Return the text: the specification's samples first, then the others. `served` has the numbers of the rows of SERVED.

    `processes` is what the operating system says of the processes; of this one where it is None.
    """
    from flagsvc.api.families import text  # with the first scrape: prometheus_client is two megabytes

    lines = [line for sample in SPECIFIED for line in written(sample, sample.read(sources))]
    return "".join(f"{line}\n" for line in lines).encode() + text(sources, served, processes)


class Prometheus(Handler):
    """GET /proxy/internal-backstage/prometheus: of this process, or of all where that is known `elsewhere`."""

    def __init__(self, sources: Sources, answers: Answers, elsewhere: Elsewhere | None = None) -> None:
        self.sources = sources
        self.answers = answers
        self.elsewhere = elsewhere
        self.shape: Shape = answers.shape(CONTENT_TYPE, ASK_AGAIN)

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return every metric in Prometheus text format."""
        if self.elsewhere is not None:
            return self.later(call, self.elsewhere)
        text = exposition(self.sources, readings(self.sources))
        return self.answers.seal(self.shape, call, text)

    async def later(self, call: Call, elsewhere: Elsewhere) -> Response:
        """Return the same of all processes; raises Refused (503) where that cannot be had."""
        return self.answers.seal(self.shape, call, await elsewhere())


def written(sample: Sample, value: float) -> list[str]:
    """Return the lines of one metric of the specification: all of them are whole numbers."""
    return [
        f"# HELP {sample.name} {sample.help}",
        f"# TYPE {sample.name} {sample.kind}",
        f"{sample.name} {int(value)}",
    ]
