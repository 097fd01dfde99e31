"""The bodies that are sent upstream."""

from __future__ import annotations

import platform
from datetime import datetime

from flagsvc.proxy.upstream import SDK, SPEC_VERSION, Identity
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket
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
