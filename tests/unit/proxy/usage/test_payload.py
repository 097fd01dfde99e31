"""The bodies that are sent upstream."""

from __future__ import annotations

import json
import platform
from datetime import datetime

from flagsvc.proxy.upstream import SDK, SPEC_VERSION, Identity
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket, UsageSource
from flagsvc.proxy.usage.impact import ImpactKey, ImpactSeries
from flagsvc.proxy.usage.payload import format_time, metrics_body, registration_body

IDENTITY = Identity("app", "instance", "connection")
COMMON = {
    "appName": "app",
    "instanceId": "instance",
    "connectionId": "connection",
    "platformName": "CPython",
    "platformVersion": platform.python_version(),
    "yggdrasilVersion": None,
    "specVersion": SPEC_VERSION,
}
BUILT_IN = [
    "default",
    "applicationHostname",
    "gradualRolloutRandom",
    "gradualRolloutUserId",
    "gradualRolloutSessionId",
    "userWithId",
    "remoteAddress",
    "flexibleRollout",
]


def test_a_registration() -> None:
    """A registration has exactly these fields. Custom strategies follow the built-in ones, each once."""
    body = registration_body(
        IDENTITY, custom_strategies=["mine", "default"], started=1_750_000_000.5, interval_ms=30_000
    )
    assert body == COMMON | {
        "sdkVersion": SDK,
        "strategies": [*BUILT_IN, "mine"],
        "started": "2025-06-15T15:06:40.500Z",
        "interval": 30_000,
    }


def test_usage_metrics() -> None:
    """Exactly these fields; numbers no larger than every reader of JSON keeps."""
    tally, huge = ToggleCounts(), ToggleCounts()
    tally.yes, tally.no, tally.variants = 3, 1, {"red": 2}
    huge.yes, huge.no, huge.variants = 2**60, 2**60, {"red": 2**60}
    most = 2**53 - 1
    assert metrics_body(IDENTITY, UsageBucket(1_750_000_000.0, 1_750_000_030.0, {"a": tally, "b": huge})) == COMMON | {
        "bucket": {
            "start": "2025-06-15T15:06:40.000Z",
            "stop": "2025-06-15T15:07:10.000Z",
            "toggles": {
                "a": {"yes": 3, "no": 1, "variants": {"red": 2}},
                "b": {"yes": most, "no": most, "variants": {"red": most}},
            },
        }
    }


def test_a_moment_is_a_date_time_that_everybody_reads() -> None:
    """ISO 8601 with zone."""
    assert datetime.fromisoformat(format_time(1.25)).timestamp() == 1.25


def test_impact_metrics() -> None:
    """They are as an SDK writes them: whole numbers without a point, the last bucket is that of everything."""
    counter, gauge, histogram = ImpactSeries("Sales."), ImpactSeries("Load."), ImpactSeries("Time.")
    counter.samples = {(): [3.0], (("appName", "shop"), ("on", "enabled")): [2.5]}
    gauge.samples = {(("appName", "shop"),): [-1.5, 1_750_000_000.0]}
    histogram.samples = {(): [7.5, 3.0, 1.0, 2.0]}
    bucket = UsageBucket(0.0, 1.0, {}, UsageSource("shop", "one"))
    bucket.impact[ImpactKey("sales", "counter", ())] = counter
    bucket.impact[ImpactKey("load", "gauge", ())] = gauge
    bucket.impact[ImpactKey("time", "histogram", (0.5, 5.0))] = histogram
    body = metrics_body(IDENTITY, bucket)
    assert json.dumps(body["impactMetrics"]) == json.dumps(
        [
            {
                "name": "sales",
                "help": "Sales.",
                "type": "counter",
                "samples": [
                    {"labels": {}, "value": 3},
                    {"labels": {"appName": "shop", "on": "enabled"}, "value": 2.5},
                ],
            },
            {
                "name": "load",
                "help": "Load.",
                "type": "gauge",
                "samples": [{"labels": {"appName": "shop"}, "value": -1.5}],
            },
            {
                "name": "time",
                "help": "Time.",
                "type": "histogram",
                "samples": [
                    {
                        "labels": {},
                        "count": 3,
                        "sum": 7.5,
                        "buckets": [{"le": 0.5, "count": 1}, {"le": 5, "count": 2}, {"le": "+Inf", "count": 3}],
                    }
                ],
            },
        ]
    )
    assert (body["appName"], body["instanceId"]) == ("shop", "one")
    assert body["bucket"]["toggles"] == {}  # type: ignore[index]
