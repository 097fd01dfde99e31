"""The metrics endpoint (specification: GET /proxy/internal-backstage/prometheus; behaviour: Metrics endpoint).

Samples are rows. Labels are route templates, methods and statuses: never a path, header, key or name that a caller sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from flagsvc.api.answers import ASK_AGAIN, Answers
from flagsvc.api.call import Answer, Call, Handler, Tally
from flagsvc.api.ports import Holder, Usage
from flagsvc.clock import Clock
from flagsvc.version import VERSION

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
STATES = ("cold", "restored", "bootstrapped", "fresh", "stale")


class Sources(NamedTuple):
    """Where the samples come from."""

    holder: Holder
    usage: Usage
    tallies: Sequence[Tally]
    clock: Clock


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


class Own(Collector):
    """The metrics beyond the specification's."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def collect(self) -> Iterable[Metric]:
        """Return the metrics as they stand now."""
        holder, usage = self._sources.holder, self._sources.usage
        yield InfoMetricFamily("flagsvc_build", "The running version.", {"version": VERSION})
        yield GaugeMetricFamily("flagsvc_config_problems", "Malformed toggles left out.", holder.problems)
        yield GaugeMetricFamily("flagsvc_config_age_seconds", "Time since the last check for updates.", self._age())
        yield self._states()
        yield CounterMetricFamily(
            "flagsvc_usage_dropped", "Usage counts left out: unknown, or too many.", usage.dropped
        )
        yield self._requests()

    def _age(self) -> float:
        """Return the seconds since the last check for updates; NaN before the first."""
        fetched = self._sources.holder.last_fetch_ms
        return max(0.0, self._sources.clock.now() - fetched / 1000) if fetched else float("nan")

    def _states(self) -> Metric:
        """Return where the configuration came from, one sample for each state."""
        family = GaugeMetricFamily("flagsvc_config_state", "1 for the state of the configuration.", labels=["state"])
        for state in STATES:
            family.add_metric([state], float(self._sources.holder.state == state))
        return family

    def _requests(self) -> Metric:
        """Return the number of requests by route template, method and status."""
        labels = ["route", "method", "status"]
        family = CounterMetricFamily("flagsvc_http_requests", "Requests answered.", labels=labels)
        for tally in self._sources.tallies:
            for status, count in tally.statuses.items():
                family.add_metric([tally.route, tally.method, str(status)], count)
        return family


class Prometheus(Handler):
    """GET /proxy/internal-backstage/prometheus."""

    def __init__(self, sources: Sources, answers: Answers) -> None:
        self.sources = sources
        self.answers = answers
        self.shape = answers.shape(CONTENT_TYPE, ASK_AGAIN)
        self.registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.registry.register(Own(sources))

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return every metric in Prometheus text format."""
        return self.answers.seal(self.shape, call, self.exposition())

    def exposition(self) -> bytes:
        """Return the text: the specification's samples first, then the others."""
        lines = [line for sample in SPECIFIED for line in written(sample, sample.read(self.sources))]
        return "".join(f"{line}\n" for line in lines).encode() + generate_latest(self.registry)


def written(sample: Sample, value: float) -> list[str]:
    """Return the lines of one metric of the specification: all of them are whole numbers."""
    return [
        f"# HELP {sample.name} {sample.help}",
        f"# TYPE {sample.name} {sample.kind}",
        f"{sample.name} {int(value)}",
    ]
