"""POST /api/client/register, /metrics and /metrics/bulk on the wire, and what the admin API then shows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from support.flagservers import BACKEND_SECRET, AppClient
from support.stored_flags import Flags

pytestmark = pytest.mark.one_database

NOW = datetime(2026, 3, 4, 12, 34, 56, 789_000, tzinfo=UTC)
MOMENT = "2026-03-04T12:34:56.789Z"
HOUR = "2026-03-04T12:00:00.000Z"
PRODUCTION = "default:production.of-production"
BOTH = "[]:production.of-both"
GIVEN = {
    "projects": [{"id": "other"}],
    "tokens": [
        {"type": "backend", "secret": PRODUCTION, "projects": ["default"], "environment": "production"},
        {"type": "backend", "secret": BOTH, "projects": ["default", "other"], "environment": "production"},
    ],
}
APP = {"appName": "shop", "interval": 10, "started": MOMENT, "strategies": ["default", ""]}
TOO_LONG = "x" * 256


def prepare(client: AppClient) -> None:
    """Make two flags."""
    flags = Flags()
    flags.feature("one")
    flags.feature("two")
    with client.server.store.writing(None) as tx:
        flags.put(tx)


def register(client: AppClient, token: str = BACKEND_SECRET, **changes: Any) -> Any:
    """Register an application; a value None leaves out."""
    body = {name: value for name, value in (APP | changes).items() if value is not None}
    return client.post("/api/client/register", body, token=token)


def report(client: AppClient, toggles: Any, token: str = BACKEND_SECRET, **changes: Any) -> Any:
    """Report usage."""
    bucket = {"start": MOMENT, "stop": changes.pop("stop", MOMENT), "toggles": toggles}
    return client.post("/api/client/metrics", {"appName": "shop", "bucket": bucket} | changes, token=token)


def bulk(client: AppClient, applications: Any = (), metrics: Any = (), token: str = BACKEND_SECRET) -> Any:
    """Report the usage of several applications."""
    body = {"applications": list(applications), "metrics": list(metrics)}
    return client.post("/api/client/metrics/bulk", body, token=token)


def last_hour(client: AppClient, name: str = "one") -> dict[str, tuple[int, int]]:
    """Return a flag's counts of the last hour by environment."""
    found = client.get(f"/api/admin/client-metrics/features/{name}").json()
    assert {name: found[name] for name in ("version", "maturity")} == {"version": 1, "maturity": "stable"}
    return {row["environment"]: (row["yes"], row["no"]) for row in found["lastHourUsage"]}


def applications(client: AppClient, query: str = "") -> list[str]:
    """Return the names of the applications."""
    return [row["appName"] for row in client.get(f"/api/admin/metrics/applications{query}").json()["applications"]]


def taken(answer: Any) -> bool:
    """Return whether an answer is a 202 without a body; fail if it is neither that nor a 400 without a body."""
    assert (answer.status, answer.body) in ((202, b""), (400, b"")), (answer.status, answer.body)
    return bool(answer.status == 202)


def test_registering(client: AppClient) -> None:
    """The application is then known, with its instance, in the environment of its token."""
    assert taken(register(client, PRODUCTION, instanceId="i-1", sdkVersion="sdk:1.0", environment="ignored"))
    assert taken(register(client, instanceId="", started=1_700_000_000, interval="5"))
    shown = client.get("/api/admin/metrics/applications/shop").json()
    seen = {(each["instanceId"], each["environment"], each["sdkVersion"], each["clientIp"]) for each in shown["instances"]}
    peer = "203.0.113.7"
    assert seen == {("i-1", "production", "sdk:1.0", peer), ("default", "development", None, peer)}
    assert [each["name"] for each in shown["strategies"]] == ["default"]
    [listed] = client.get("/api/admin/metrics/applications").json()["applications"]
    assert listed["usage"] == [
        {"project": "*", "environments": ["development"]},
        {"project": "default", "environments": ["production"]},
    ]
    path = "/api/admin/metrics/instances/shop/environment/production"
    instance = {"instanceId": "i-1", "clientIp": peer, "sdkVersion": "sdk:1.0", "lastSeen": MOMENT}
    assert client.get(path).json() == {"instances": [instance]}


def test_reports_show_up(client: AppClient) -> None:
    """Counts are added up in the token's environment, with their variants and the application that sent them."""
    counts = {"yes": 3, "no": "1", "variants": {"green": 2, "": 9, TOO_LONG: 9}}
    assert taken(report(client, {"one": counts, "nosuch": {"yes": 1}}, environment="production"))
    assert taken(report(client, {"one": {"yes": 2, "variants": None}}, PRODUCTION, instanceId="i"))
    assert taken(report(client, {"one": {"yes": 4, "variants": {"green": 1}}, "two": {}}))
    assert last_hour(client) == {"development": (7, 1), "production": (2, 0)}
    data = client.get("/api/admin/client-metrics/features/one/raw?hoursBack=1").json()["data"]
    row = {"featureName": "one", "appName": "shop", "environment": "development", "timestamp": HOUR, "yes": 7, "no": 1}
    assert row | {"variants": {"green": 3}} in data
    assert client.get("/api/admin/client-metrics/features/one").json()["seenApplications"] == ["shop"]
    shop = client.get("/api/admin/metrics/applications/shop").json()
    assert [each["name"] for each in shop["seenToggles"]] == ["one"]
    assert last_hour(client, "nosuch") == last_hour(client, "two") == {}


@pytest.mark.parametrize("metrics", [[{"name": "sales", "type": "counter", "samples": [{"value": 2}]}], 7])
def test_impact_metrics_are_ignored(client: AppClient, metrics: Any) -> None:
    """A report with impact metrics is taken, and its counts are stored."""
    assert taken(report(client, {"one": {"yes": 3}}, impactMetrics=metrics))
    assert last_hour(client) == {"development": (3, 0)}


def test_names_are_cut(client: AppClient) -> None:
    """Names that are too long for the database are cut, as a proxy does."""
    assert taken(register(client, instanceId=TOO_LONG, sdkVersion=TOO_LONG, appName=TOO_LONG))
    assert taken(report(client, {"one": {"yes": 1}}, appName=TOO_LONG))
    told = {"appName": TOO_LONG, "instanceId": TOO_LONG, "environment": TOO_LONG, "projects": [TOO_LONG]}
    assert taken(bulk(client, [told], [{"featureName": "one", "appName": TOO_LONG, "yes": 1}]))
    assert applications(client) == ["x" * 255]
    assert last_hour(client) == {"development": (2, 0)}


@pytest.mark.parametrize("counts", [None, [], {"yes": -1}, {"no": "x"}, {"yes": 1e30}, {"yes": "Infinity"}, {"yes": 2**53}])
def test_counts_that_cannot_be_read(client: AppClient, counts: Any) -> None:
    """They cost only themselves: other counts of the report are stored, and a metric counts what is left out."""
    assert taken(report(client, {"two": {"yes": 1}, "one": counts}))
    entry = counts if isinstance(counts, dict) else {"yes": []}
    listed = [{"featureName": name, "appName": "shop"} | each for name, each in (("one", entry), ("two", {"yes": 1}))]
    assert taken(bulk(client, [], [*listed, None, {"featureName": "two", "appName": "", "yes": 1}]))
    assert (last_hour(client), last_hour(client, "two")) == ({}, {"development": (2, 0)})
    metrics = client.get("/internal-backstage/prometheus", token=None).text
    assert "flagsvc_usage_malformed_total 4.0" in metrics


def test_variants_that_cannot_be_read(client: AppClient) -> None:
    """They cost only themselves: the counts of their flag are stored with its other variants."""
    assert taken(report(client, {"one": {"yes": 1.9, "no": "1e1", "variants": {"a": -1, "b": "2"}}}))
    assert taken(report(client, {"one": {"yes": 1, "variants": ["a"]}}))
    rows = client.get("/api/admin/client-metrics/features/one/raw?hoursBack=1").json()["data"]
    assert [(row["yes"], row["no"], row["variants"]) for row in rows if row["yes"]] == [(2, 10, {"b": 2})]


def test_reports_that_are_none(client: AppClient) -> None:
    """A report without the name of an application, or with a bucket of another shape, is a 400 that says so."""
    for changes, place in (
        ({"appName": ""}, "/body/appName"),
        ({"bucket": []}, "/body/bucket"),
        ({"bucket": {"start": 1, "stop": 1.5, "toggles": {}}}, "/body/bucket/stop"),
    ):
        answer = report(client, {"two": {"yes": 1}}, **changes)
        assert (answer.status, answer.json()["details"][0]["path"]) == (400, place)
    assert (last_hour(client, "two"), applications(client)) == ({}, [])


@pytest.mark.parametrize("bucket", [None, False, ""])
def test_a_report_may_have_no_bucket(client: AppClient, bucket: object) -> None:
    """It says that the application runs: SDKs send null if they have only impact metrics."""
    assert taken(report(client, {}, bucket=bucket))
    assert taken(client.post("/api/client/metrics", {"appName": "shop"}, token=BACKEND_SECRET))
    assert applications(client) == ["shop"]


@pytest.mark.parametrize(
    ("stop", "shown"),
    [
        ("2026-03-04T12:00:00Z", HOUR),
        ("2026-03-04T13:59:59+02:00", "2026-03-04T11:00:00.000Z"),
        (1772625600, HOUR),
        (1772625600000, HOUR),
        ("2026-03-09T12:00:00Z", HOUR),
        ("2026-03-01T12:00:00Z", None),
    ],
)
def test_which_hour(client: AppClient, stop: Any, shown: str | None) -> None:
    """A report counts in the hour of its end: text or number, any time zone, not later than now, and at most two days old."""
    assert taken(report(client, {"one": {"yes": 1}}, stop=stop))
    data = client.get("/api/admin/client-metrics/features/one/raw?hoursBack=48").json()["data"]
    assert [row["timestamp"] for row in data if row["yes"]] == ([shown] if shown else [])


def test_bulk(client: AppClient) -> None:
    """An intermediate server reports for many applications: counts are the token's environment's, applications as reported."""
    told = {"appName": "a", "instanceId": "i", "environment": "far", "started": MOMENT, "interval": 1}
    page = {"appName": "b", "instanceId": "", "environment": "development", "sdkType": "frontend", "sdkVersion": "js:1"}
    counts = {"featureName": "one", "appName": "a", "yes": 1, "no": 2, "variants": {"green": 1}}
    metrics = [
        counts | {"environment": "development", "timestamp": MOMENT},
        counts | {"environment": "development"},
        counts | {"environment": "production"},
    ]
    assert taken(bulk(client, [told | {"projects": ["p"], "strategies": ["s"]}, page], metrics))
    assert last_hour(client) == {"development": (2, 4)}
    rows = client.get("/api/admin/metrics/applications").json()["applications"]
    assert [(row["appName"], row["usage"], row["strategies"]) for row in rows] == [
        ("a", [{"project": "p", "environments": ["far"]}], ["s"]),
        ("b", [{"project": "*", "environments": ["development"]}], []),
    ]
    [instance] = client.get("/api/admin/metrics/applications/b").json()["instances"]
    assert (instance["instanceId"], instance["sdkType"], instance["sdkVersion"]) == ("default", "frontend", "js:1")


def test_applications_that_cannot_be_read(client: AppClient) -> None:
    """They cost only themselves, and what cannot be read of an application is left out."""
    odd = {
        "appName": "a",
        "instanceId": [],
        "started": "soon",
        "projects": [None, "p"],
        "sdkVersion": {},
        "sdkType": "x",
        "variants": [1],
    }
    assert taken(bulk(client, [None, {"appName": None}, odd], [{"featureName": "one", "appName": "a", "yes": 1}]))
    [row] = client.get("/api/admin/metrics/applications").json()["applications"]
    assert (row["appName"], row["usage"]) == ("a", [{"project": "p", "environments": ["development"]}])
    assert last_hour(client) == {"development": (1, 0)}


def test_a_token_counts_for_its_projects_alone(client: AppClient) -> None:
    """Counts of flags of other projects are dropped, in both forms; other counts in the report are stored."""
    flags = Flags()
    flags.feature("theirs", project="other")
    with client.server.store.writing(None) as tx:
        flags.put(tx)
    counted = {"one": {"yes": 1}, "theirs": {"yes": 2}}
    lines = [{"featureName": name, "appName": "shop", "environment": "production", "yes": 4, "no": 0} for name in ("one", "theirs")]
    assert taken(report(client, counted, PRODUCTION)) and taken(bulk(client, metrics=lines, token=PRODUCTION))
    assert (last_hour(client), last_hour(client, "theirs")) == ({"production": (5, 0)}, {})
    assert taken(report(client, counted, BOTH)) and taken(bulk(client, metrics=lines, token=BOTH))
    assert (last_hour(client), last_hour(client, "theirs")) == ({"production": (10, 0)}, {"production": (6, 0)})
    assert taken(report(client, counted))
    assert last_hour(client, "theirs") == {"development": (2, 0), "production": (6, 0)}
    shown = client.get("/api/admin/projects/other/features/theirs").json()
    assert shown["lastSeenAt"] is not None
