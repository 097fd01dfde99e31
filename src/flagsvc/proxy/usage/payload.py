"""The bodies that are sent upstream: a registration and usage metrics. They contain no data about end users.

The bodies are those of the contract (behaviour: Registration; Usage metrics; Privacy).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from flagsvc.engine.strategies import STRATEGIES
from flagsvc.http.reports import HISTOGRAM, MAX_COUNT
from flagsvc.proxy.upstream import SDK, Identity
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket
from flagsvc.proxy.usage.impact import ImpactKey, ImpactSeries


def registration_body(
    identity: Identity, *, custom_strategies: Sequence[str], started: float, interval_ms: int
) -> dict[str, object]:
    """Return the body of a registration; `started` is in seconds since the epoch, `interval_ms` is metricsInterval."""
    names = dict.fromkeys((*STRATEGIES, *custom_strategies))
    fields = {"sdkVersion": SDK, "strategies": list(names), "started": format_time(started), "interval": interval_ms}
    return identity.fields() | fields


def metrics_body(identity: Identity, bucket: UsageBucket) -> dict[str, object]:
    """Return the body of a metrics post, under the name of the application that counted. Impact metrics are there if it has any."""
    toggles = {name: toggle_body(counts) for name, counts in bucket.toggles.items()}
    source = bucket.source
    names = identity.fields() if source is None else {"appName": source.app_name, "instanceId": source.instance_id}
    counted = {"start": format_time(bucket.start), "stop": format_time(bucket.stop), "toggles": toggles}
    impact = [impact_body(key, series) for key, series in bucket.impact.items()]
    return {**names, "bucket": counted, **({"impactMetrics": impact} if impact else {})}


def toggle_body(counts: ToggleCounts) -> dict[str, object]:
    """Return the counts of one toggle."""
    variants = {name: min(times, MAX_COUNT) for name, times in counts.variants.items()}
    return {"yes": min(counts.yes, MAX_COUNT), "no": min(counts.no, MAX_COUNT), "variants": variants}


def impact_body(key: ImpactKey, series: ImpactSeries) -> dict[str, object]:
    """Return an impact metric (dialects: Impact metrics)."""
    samples = [{"labels": dict(labels), **sample_body(key, values)} for labels, values in series.samples.items()]
    return {"name": key.name, "help": series.help, "type": key.kind, "samples": samples}


def sample_body(key: ImpactKey, values: list[float]) -> dict[str, object]:
    """Return the numbers of a sample."""
    numbers = [plain(value) for value in values]
    if key.kind != HISTOGRAM:
        return {"value": numbers[0]}
    total, count, *counts = numbers
    buckets = [{"le": plain(bound), "count": each} for bound, each in zip(key.bounds, counts, strict=True)]
    return {"count": count, "sum": total, "buckets": [*buckets, {"le": "+Inf", "count": count}]}


def plain(value: float) -> int | float:
    """Return a number as JavaScript writes it: a whole one without a point."""
    return int(value) if value.is_integer() else value


def format_time(seconds: float) -> str:
    """Return seconds since the epoch as an ISO 8601 date-time in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
