"""The bodies that are sent upstream: a registration and usage metrics. They contain no data about end users.

The bodies are those of the contract (behaviour: Registration; Usage metrics; Privacy).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from flagsvc.engine.strategies import STRATEGIES
from flagsvc.proxy.upstream import SDK, Identity
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly."""


def registration_body(
    identity: Identity, *, custom_strategies: Sequence[str], started: float, interval_ms: int
) -> dict[str, object]:
    """Return the body of a registration; `started` is in seconds since the epoch, `interval_ms` is metricsInterval."""
    names = dict.fromkeys((*STRATEGIES, *custom_strategies))
    fields = {"sdkVersion": SDK, "strategies": list(names), "started": format_time(started), "interval": interval_ms}
    return identity.fields() | fields


def metrics_body(identity: Identity, bucket: UsageBucket) -> dict[str, object]:
    """Return the body of a metrics post, under the name of the application that counted."""
    toggles = {name: toggle_body(counts) for name, counts in bucket.toggles.items()}
    source = bucket.source
    names = identity.fields() if source is None else {"appName": source.app_name, "instanceId": source.instance_id}
    return names | {
        "bucket": {"start": format_time(bucket.start), "stop": format_time(bucket.stop), "toggles": toggles}
    }


def toggle_body(counts: ToggleCounts) -> dict[str, object]:
    """Return the counts of one toggle."""
    variants = {name: min(times, MAX_SAFE_INTEGER) for name, times in counts.variants.items()}
    return {"yes": min(counts.yes, MAX_SAFE_INTEGER), "no": min(counts.no, MAX_SAFE_INTEGER), "variants": variants}


def format_time(seconds: float) -> str:
    """Return seconds since the epoch as an ISO 8601 date-time in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
