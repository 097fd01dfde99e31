"""The options that bound callers: safe where nothing is given."""

from __future__ import annotations

from flagsvc.settings.limits import LIMITS
from flagsvc.settings.table import BY_NAME

DEFAULTS = {
    "maxConnections": 10_000,
    "requestMemory": None,
    "headerTimeout": 20,
    "bodyTimeout": 60,
    "writeTimeout": 60,
    "jsonDepthLimit": 32,
    "contextPropertiesLimit": 250,
    "contextValueLimit": 4096,
    "toggleLimit": 5000,
    "rateLimitKey": 0,
    "rateLimitAddress": 0,
    "rateLimitBurst": 0,
    "enricherTimeout": 1000,
    "enricherFailure": "error",
}


def test_defaults() -> None:
    """Everything is bounded but the rate, which only whoever runs the proxy can know."""
    assert {option.name: option.default for option in LIMITS} == DEFAULTS
    assert all(BY_NAME[option.name] is option for option in LIMITS)
