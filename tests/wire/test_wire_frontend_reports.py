"""Metrics and registrations at the frontend API (dialects: Reports of the frontend API)."""

from __future__ import annotations

from typing import Any

import pytest

from support.wirekit import Opener

URL = "/api/frontend"
REPORT = {"appName": "a", "bucket": {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z", "toggles": {}}}
REGISTRATION = {"appName": "a", "interval": 10, "started": "2026-01-01T00:00:00Z", "strategies": []}
DOCUMENT = {
    "features": [
        {"name": "z", "enabled": True, "strategies": [{"name": "default"}]},
        {
            "name": "with/slash ü",
            "enabled": True,
            "strategies": [{"name": "default"}],
            "variants": [{"name": "v", "weight": 1000}],
        },
    ]
}


@pytest.mark.parametrize("path", ["", "/all"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (REPORT, 200),
        ({"appName": "a"}, 200),
        (REPORT | {"instanceId": "browser", "impactMetrics": []}, 200),
        ({}, 400),
        (REPORT | {"appName": 7}, 200),
        ({"appName": "a", "bucket": {"start": "yesterday", "stop": "x", "toggles": {}}}, 400),
        ({"appName": "a", "bucket": {"toggles": {}}}, 400),
    ],
)
def test_metrics(opened: Opener, path: str, body: Any, status: int) -> None:
    """Only the name of the application is needed; a good report is 200 `OK`, a bad one 400 as JSON."""
    answer = opened(document=DOCUMENT, enable_all_endpoint=True).post(f"{URL}{path}/client/metrics", body)
    assert answer.status == status
    if status == 200:
        assert answer.body == b"OK"
    else:
        assert (answer.json()["name"], len(answer.json()["details"])) == ("BadDataError", 1)


@pytest.mark.parametrize(
    ("counts", "counted"),
    [
        ({"yes": 2, "no": 1, "variants": {"v": 2}}, (2, 1, {"v": 2})),
        ({"yes": 1.5}, (1, 0, {})),
        ({"yes": "3", "no": None}, (3, 0, {})),
        ({"yes": -1}, None),
        ({"yes": 1e300}, None),
        ({"yes": []}, None),
    ],
)
def test_counts(opened: Opener, counts: Any, counted: Any) -> None:
    """The whole part of a number counts; a negative or endless one costs the counts of its flag."""
    wire = opened(document=DOCUMENT)
    bucket = REPORT["bucket"] | {"toggles": {"z": {"yes": 1}, "with/slash ü": counts}}  # type: ignore[operator]
    answer = wire.post(f"{URL}/client/metrics", {"appName": "a", "bucket": bucket})
    assert answer.status == 200
    known = wire.counted()
    assert known.get("with/slash ü") == counted
    assert known["z"] == (1, 0, {})
    assert wire.usage.malformed == (1 if counted is None else 0)


@pytest.mark.parametrize("path", [URL, f"{URL}/all", "/api/proxy", "/api/proxy/all"])
def test_registration(opened: Opener, path: str) -> None:
    """It is checked and answered with 200 `OK`; `started` may be a number, `interval` a text."""
    wire = opened(document=DOCUMENT)
    for body in (REGISTRATION, REGISTRATION | {"started": 1767225600000, "interval": "10"}):
        assert (wire.post(f"{path}/client/register", body).status) == 200
    for name in REGISTRATION:
        assert wire.post(f"{path}/client/register", {**REGISTRATION, name: None}).status in (200, 400)
        missing = {key: value for key, value in REGISTRATION.items() if key != name}
        assert wire.post(f"{path}/client/register", missing).status == 400
