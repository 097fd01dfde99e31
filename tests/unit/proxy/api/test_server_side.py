"""What server-side SDKs and other proxies send to `/api/client`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flagsvc.http.messages import Response
from flagsvc.proxy.configuration.holder import ConfigurationDocument
from flagsvc.proxy.usage import UsageSource
from support.serving import Serving, counts_of

DOCUMENT = {"features": [{"name": "a", "project": "web"}, {"name": "b", "project": "app"}]}
BUCKET = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z", "toggles": {"a": {"yes": 2, "no": 1}}}
LISTED = ("my.app:production.secret", "[]:production.secret")
REGISTRATION = {
    "appName": "shop",
    "interval": 10,
    "started": 5,
    "strategies": ["default"],
    "sdkVersion": "sdk:1",
    "x": 1,
}


@pytest.fixture(name="serving")
def _serving() -> Serving:
    """Return a service with a document, for callers with a server-side token."""
    serving = Serving(key=b"t", tags=(("team", "web"),), client_keys=("k", "web:production.secret", *LISTED))
    serving.holder.document = ConfigurationDocument(json.dumps(DOCUMENT).encode(), '"t"')
    return serving


def post(serving: Serving, path: bytes, body: object) -> Response:
    """Post JSON."""
    content = json.dumps(body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
    return serving.ask(b"POST", path, headers=headers, body=content)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (b"", ["a", "b"]),
        (b"project=web", ["a"]),
        (b"namePrefix=b", ["b"]),
        (b"tag=team:web", ["a", "b"]),
        (b"tag=team:app", None),
        (b"project=", None),
    ],
)
def test_documents(serving: Serving, query: bytes, names: list[str] | None) -> None:
    """Filters select; one that cannot be answered is a 400."""
    answer = serving.ask(b"GET", b"/api/client/features", query, [(b"unleash-client-spec", b"5.0.0")])
    assert answer.status == (400 if names is None else 200)
    if names is not None:
        assert [feature["name"] for feature in json.loads(answer.body)["features"]] == names
        [tag] = [value for name, value in answer.own if name == b"etag"]
        again = [(b"unleash-client-spec", b"5.0.0"), (b"if-none-match", tag)]
        assert serving.ask(b"GET", b"/api/client/features", query, again).status == 304


def test_the_specification_of_an_sdk(serving: Serving) -> None:
    """Without a version segments are inlined; a malformed one is a 400; a document that was never read is a 503."""
    answer = serving.ask(b"GET", b"/api/client/features")
    assert json.loads(answer.body)["query"] == {"inlineSegmentConstraints": True}
    assert serving.ask(b"GET", b"/api/client/features", b"", [(b"unleash-client-spec", b"x")]).status == 400
    serving.holder.document = None
    for path in (b"/api/client/features", b"/api/client/features/a"):
        assert serving.ask(b"GET", path).status == 503


def test_one_feature(serving: Serving) -> None:
    """It is bare; an unknown one is a 404."""
    assert json.loads(serving.ask(b"GET", b"/api/client/features/a").body) == DOCUMENT["features"][0]
    assert serving.ask(b"GET", b"/api/client/features/nobody").status == 404


def test_reports_belong_to_the_application(serving: Serving) -> None:
    """Counts and registrations have its name and instance, cut to the length of a name."""
    reports: list[bool] = []
    serving.usage.on_report = lambda: reports.append(True)
    report = {"appName": "s" * 300, "bucket": BUCKET}
    assert post(serving, b"/api/client/metrics", report).status == 202
    [bucket] = serving.usage.peek_sources()
    assert (bucket.source, counts_of(bucket)) == (UsageSource("s" * 255, "default"), {"a": (2, 1, {})})
    assert post(serving, b"/api/client/register", REGISTRATION).status == 202
    known = {name: value for name, value in REGISTRATION.items() if name != "x"}
    assert serving.usage.registrations == {UsageSource("shop", "default"): known | {"instanceId": "default"}}
    assert len(reports) == 2


def test_bulk_reports(serving: Serving) -> None:
    """The counts of an application have the instance that the report names for it. A wrong entry costs only itself.

    An application without its start and interval is not registered: the upstream would refuse it.
    """
    started = {"appName": "shop", "started": 5, "interval": 5}
    body: dict[str, Any] = {
        "applications": [
            {**started, "instanceId": "one"},
            {**started, "instanceId": "two"},
            {"appName": "shop", "instanceId": "three"},
            {"instanceId": "four"},
        ],
        "metrics": [
            {"featureName": "a", "appName": "shop", "yes": 1},
            {"featureName": "b", "appName": "other", "no": 1},
        ],
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


def test_validation(serving: Serving) -> None:
    """Keys are described by what they say themselves; unknown ones are left out; the number is limited."""
    answer = post(serving, b"/edge/validate", {"tokens": ["k", "t", "x", "web:production.secret", *LISTED]})
    found = [tuple(token.values()) for token in json.loads(answer.body)["tokens"]]
    assert found == [
        ("k", "frontend", ["*"], "default"),
        ("t", "client", ["*"], "default"),
        ("web:production.secret", "frontend", ["web"], "production"),
        (LISTED[0], "frontend", ["my.app"], "production"),
        (LISTED[1], "frontend", ["*"], "production"),
    ]
    assert post(serving, b"/edge/validate", {"tokens": [str(number) for number in range(101)]}).status == 400
    limited = Serving(key=b"", rate_limit_address=1, rate_limit_burst=1)
    assert [post(limited, b"/edge/validate", {"tokens": []}).status for _ in range(2)] == [200, 429]
