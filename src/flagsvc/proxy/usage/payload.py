"""What is sent upstream: a registration and usage metrics. Names, versions and counts; no datum about an end user.

The bodies are those of the contract (behaviour: Registration; Usage metrics; Privacy).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from flagsvc.engine.strategies import STRATEGIES
from flagsvc.proxy.upstream import SDK, Identity
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket

MOST = 2**53 - 1
"""The largest number that every reader of JSON keeps exactly."""


def registration(
    identity: Identity, *, custom_strategies: Sequence[str], started: float, interval_ms: int
) -> dict[str, object]:
    """Return the body of a registration; `started` is in seconds since the epoch, `interval_ms` is metricsInterval."""
    names = dict.fromkeys((*STRATEGIES, *custom_strategies))
    fields = {"sdkVersion": SDK, "strategies": list(names), "started": moment(started), "interval": interval_ms}
    return identity.fields() | fields


def metrics(identity: Identity, bucket: UsageBucket) -> dict[str, object]:
    """Return the body of a metrics post."""
    toggles = {name: counts(tally) for name, tally in bucket.toggles.items()}
    return identity.fields() | {
        "bucket": {"start": moment(bucket.start), "stop": moment(bucket.stop), "toggles": toggles}
    }


def counts(tally: ToggleCounts) -> dict[str, object]:
    """Return the counts of one toggle."""
    variants = {name: min(times, MOST) for name, times in tally.variants.items()}
    return {"yes": min(tally.yes, MOST), "no": min(tally.no, MOST), "variants": variants}


def moment(seconds: float) -> str:
    """Return seconds since the epoch as an ISO 8601 date-time in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
