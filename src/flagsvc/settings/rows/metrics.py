"""The options of usage metrics."""

from __future__ import annotations

from flagsvc.settings import kinds as of
from flagsvc.settings.base import Options, Size, Texts
from flagsvc.settings.option import Scope, Section, option


class MetricsOptions(Options):
    """When and how usage is sent to the upstream server."""

    section = Section.METRICS

    metrics_interval: int = option(
        "metricsInterval",
        reads=("FLAGSVC_METRICS_INTERVAL",),
        kind=of.MILLISECONDS,
        default=30_000,
        help="milliseconds between two metrics posts upstream; 0 sends no metrics and does not register",
        scope=Scope.INHERITED,
    )
    metrics_jitter: int = option(
        "metricsJitter",
        reads=("FLAGSVC_METRICS_JITTER",),
        kind=of.MILLISECONDS,
        default=0,
        help="the largest random change of the interval, in milliseconds, so that instances do not send together",
        scope=Scope.INHERITED,
        advanced=True,
    )
    metrics_buffer: int = option(
        "metricsBuffer",
        reads=("FLAGSVC_METRICS_BUFFER",),
        kind=of.integer(1),
        default=100_000,
        help="counters of toggles and variants kept while they cannot be sent; further ones are dropped, and the drops are counted",
        stops="inventing usage until the memory is full",
        scope=Scope.INHERITED,
        advanced=True,
    )
    metrics_buffer_bytes: Size = option(
        "metricsBufferBytes",
        reads=("FLAGSVC_METRICS_BUFFER_BYTES",),
        kind=of.SIZE,
        default=8 * 1024 * 1024,
        help="bytes of such counters kept, as they would be sent; further ones are dropped, and the drops are counted",
        stops="the same, in bytes",
        scope=Scope.INHERITED,
        advanced=True,
    )
    metrics_batch: int = option(
        "metricsBatch",
        reads=("FLAGSVC_METRICS_BATCH",),
        kind=of.integer(1),
        default=10_000,
        help="most counters of toggles and variants in one post; fewer are sent where the upstream finds a post too large",
        scope=Scope.INHERITED,
        advanced=True,
    )
    impact_metrics: Texts = option(
        "impactMetrics",
        reads=("FLAGSVC_IMPACT_METRICS",),
        kind=of.TEXTS,
        default=(),
        help="names of the impact metrics that browsers may report; anybody with a client key can then change their values",
        scope=Scope.INHERITED,
    )
