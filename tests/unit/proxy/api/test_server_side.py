"""What server-side SDKs and other proxies send to `/api/client`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flagsvc.http.messages import Response
from flagsvc.proxy.usage import UsageSource
from support.serving import Serving, counts_of

BUCKET = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z", "toggles": {"a": {"yes": 2, "no": 1}}}
REGISTRATION = {"appName": "shop", "interval": 10, "started": 5, "strategies": ["default"], "sdkVersion": "sdk:1", "x": 1}


@pytest.fixture(name="serving")
def _serving() -> Serving:
    """Return a service for callers with a server-side token."""
    return Serving(key=b"t")


def post(serving: Serving, path: bytes, body: object) -> Response:
    content = json.dumps(body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
    return serving.ask(b"POST", path, headers=headers, body=content)


@pytest.mark.parametrize("unnamed", [{}, {"instanceId": None}, {"instanceId": ""}])
def test_reports_belong_to_the_application(serving: Serving, unnamed: dict[str, Any]) -> None:
    """Counts and registrations have its name and instance, cut to the length of a name."""
    reports: list[bool] = []
    serving.usage.on_report = lambda: reports.append(True)
    report = {"appName": "s" * 300, "bucket": BUCKET} | unnamed
    assert post(serving, b"/api/client/metrics", report).status == 202
    [bucket] = serving.usage.peek_sources()
    assert (bucket.source, counts_of(bucket)) == (UsageSource("s" * 255, "default"), {"a": (2, 1, {})})
    assert post(serving, b"/api/client/register", REGISTRATION).status == 202
    known = {name: value for name, value in REGISTRATION.items() if name != "x"}
    assert serving.usage.registrations == {UsageSource("shop", "default"): known | {"instanceId": "default"}}
    assert len(reports) == 2


def test_bulk_reports(serving: Serving) -> None:
    """The counts of an application have the instance that the report names for it. A wrong entry costs only itself."""
    started = {"appName": "shop", "started": 5, "interval": 5}
    body: dict[str, Any] = {
        "applications": [
            {**started, "instanceId": "one"},
            {**started, "instanceId": "two"},
            {"appName": "shop", "instanceId": "three"},
            {"instanceId": "four"},
        ],
        "metrics": [{"featureName": "a", "appName": "shop", "yes": 1}, {"featureName": "b", "appName": "other", "no": 1}],
    }
    assert post(serving, b"/api/client/metrics/bulk", body).status == 202
    shop, other = UsageSource("shop", "one"), UsageSource("other", "default")
    counted = {bucket.source: counts_of(bucket) for bucket in serving.usage.peek_sources()}
    assert counted == {shop: {"a": (1, 0, {})}, other: {"b": (0, 1, {})}}
    assert [source.instance_id for source in serving.usage.registrations] == ["one", "two"]
    assert serving.usage.malformed == 1
    body["metrics"] += [{"featureName": "a"}, None]
    body["metrics"].append({"featureName": "a", "appName": "shop", "yes": 3, "variants": {"v": -1}})
    assert post(serving, b"/api/client/metrics/bulk", body).status == 202
    counted = {bucket.source: counts_of(bucket) for bucket in serving.usage.peek_sources()}
    assert counted == {shop: {"a": (5, 0, {})}, other: {"b": (0, 2, {})}}
    assert serving.usage.malformed == 5


@pytest.mark.parametrize("variants", [5, "text", [1], {"blue": None}, None])
def test_only_counts_have_variants(serving: Serving, variants: object) -> None:
    """An application of a bulk report may have any member that is not its own."""
    body = {"applications": [{"appName": "shop", "variants": variants}], "metrics": []}
    assert post(serving, b"/api/client/metrics/bulk", body).status == 202
    assert serving.usage.malformed == 0


def test_a_description_goes_upstream_as_text(serving: Serving) -> None:
    """A number in its place becomes a text: an infinity is no JSON. What is no text at all is left out."""
    content = json.dumps(REGISTRATION | {"specVersion": 5.2, "platformName": [1], "platformVersion": 0}).encode()
    body = content.replace(b'"platformVersion": 0', b'"platformVersion": 1e400')
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    assert serving.ask(b"POST", b"/api/client/register", headers=headers, body=body).status == 202
    [registered] = serving.usage.registrations.values()
    assert (registered["specVersion"], registered["platformVersion"]) == ("5.2", "Infinity")
    assert "platformName" not in registered


@pytest.mark.parametrize(
    ("key", "environment", "is_counted"),
    [
        (b"*:development.secret", "development", True),
        (b"Bearer *:development.secret", "development", True),
        (b"*:development.secret", None, True),
        (b"*:development.secret", "production", False),
        (b"Bearer *:development.secret", "production", False),
        (b"*:*.secret", "production", True),
        (b"t", "production", True),
    ],
)
def test_bulk_reports_of_environments(key: bytes, environment: str | None, is_counted: bool) -> None:
    """Counts of another environment than the one that the key names are left out, and noted as unknown."""
    serving = Serving(key=key, server_tokens=("t", "*:development.secret", "*:*.secret"))
    counts = {"featureName": "a", "appName": "shop", "yes": 1}
    body = {"applications": [], "metrics": [counts | ({"environment": environment} if environment else {})]}
    assert post(serving, b"/api/client/metrics/bulk", body).status == 202
    assert (len(serving.usage.peek_sources()), serving.usage.unknown) == ((1, 0) if is_counted else (0, 1))
