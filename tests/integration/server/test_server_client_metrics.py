"""POST /api/client/register, /metrics and /metrics/bulk on the wire, and what the admin API then shows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from flagsvc.testing import FakeClock
from support.flagservers import BACKEND_SECRET, AppClient, app_client
from support.stored_flags import Flags

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
TOP = "Request validation failed: your request body or params contain invalid data."
TOO_LONG = "x" * 256


@pytest.fixture
def client(database_url: str) -> Iterator[AppClient]:
    """Give a server with two flags at 12:34:56, on each kind of database."""
    with app_client(database_url, given=GIVEN, clock=FakeClock(NOW.timestamp())) as client:
        flags = Flags()
        flags.feature("one")
        flags.feature("two")
        with client.server.store.writing(None) as tx:
            flags.put(tx)
        yield client


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
    seen = {
        (each["instanceId"], each["environment"], each["sdkVersion"], each["clientIp"]) for each in shown["instances"]
    }
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"appName": ""}, '"appName" is not allowed to be empty.'),
        ({"sdkVersion": ""}, '"sdkVersion" is not allowed to be empty.'),
        ({"appName": TOO_LONG}, '"appName" length must be less than or equal to 255 characters long.'),
        ({"instanceId": TOO_LONG}, '"instanceId" length must be less than or equal to 255 characters long.'),
        ({"interval": -1}, "The `/body/interval` property must be >= 0. You sent -1."),
        ({"strategies": "x"}, 'The `/body/strategies` property must be array. You sent "x".'),
        ({"started": None}, "The `/body/started` property is required. It was not present on the data you sent."),
        ({"started": "x"}, 'The `/body/started` property must match format "date-time". You sent "x".'),
    ],
)
def test_registrations_that_are_none(client: AppClient, changes: dict[str, Any], message: str) -> None:
    """An invalid registration is a 400 with the reason, and nothing is stored."""
    answer = register(client, **changes)
    assert (answer.status, answer.json()["details"][0]["message"]) == (400, message)
    assert answer.json()["message"].startswith(TOP)
    assert applications(client) == []


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


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"yes": -1}, "The `/body/bucket/toggles/one/yes` property must be >= 0. You sent -1."),
        ({"no": 0.5}, "The `/body/bucket/toggles/one/no` property must be integer. You sent 0.5."),
        ({"variants": {"a": -1}}, "The `/body/bucket/toggles/one/variants/a` property must be >= 0. You sent -1."),
        (None, "The `/body/bucket/toggles/one` property must be object. You sent null."),
    ],
)
def test_counts_that_are_none(client: AppClient, counts: Any, message: str) -> None:
    """A report with an invalid count is a 400 that names it; no count of the report is stored."""
    answer = report(client, {"two": {"yes": 1}, "one": counts})
    assert (answer.status, answer.json()["details"][0]["message"]) == (400, message)
    assert (last_hour(client, "two"), applications(client)) == ({}, [])


@pytest.mark.parametrize(
    ("toggles", "changes"),
    [
        ({"one": {"yes": 1e30}}, {}),
        ({"one": {"yes": "Infinity"}}, {}),
        ({"one": {"variants": {"a": 1e16}}}, {}),
        ({}, {"appName": ""}),
        ({}, {"appName": TOO_LONG}),
    ],
)
def test_reports_that_cannot_be_kept(client: AppClient, toggles: Any, changes: dict[str, Any]) -> None:
    """A report of the right shape that cannot be stored is a 400 without a body."""
    assert not taken(report(client, {"two": {"yes": 1}} | toggles, **changes))
    assert (last_hour(client, "two"), applications(client)) == ({}, [])


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


@pytest.mark.parametrize(
    ("applications_sent", "metrics"),
    [
        ([{"appName": "a", "instanceId": "i", "environment": "e"}], []),
        ([{"appName": "", "instanceId": "i", "environment": "e", "started": 1, "interval": 1}], []),
        ([{"appName": "a", "instanceId": TOO_LONG, "environment": "e", "started": 1, "interval": 1}], []),
        ([], [{"featureName": "one", "appName": "", "environment": "development", "yes": 1}]),
        ([], [{"featureName": "one", "appName": "a", "environment": "", "yes": 1}]),
        ([], [{"featureName": "one", "appName": "a", "environment": "development", "yes": 1e17}]),
    ],
)
def test_bulk_reports_that_cannot_be_kept(client: AppClient, applications_sent: Any, metrics: Any) -> None:
    """One invalid report is a 400 without a body for the whole request, and nothing is stored."""
    good = {"featureName": "two", "appName": "good", "environment": "development", "yes": 1}
    assert not taken(bulk(client, applications_sent, [good, *metrics]))
    assert (last_hour(client, "two"), applications(client)) == ({}, [])


@pytest.mark.parametrize("path", ["register", "metrics", "metrics/bulk"])
def test_bodies_that_are_not_json(client: AppClient, path: str) -> None:
    """Another media type is a 415; a body that is not JSON or not an object is a 400."""
    url = f"/api/client/{path}"
    plain = client.post(url, b"x", token=BACKEND_SECRET, headers={"Content-Type": "text/plain"})
    assert [plain.status, *(client.post(url, body, token=BACKEND_SECRET).status for body in (b"{", []))] == [  # type: ignore[var-annotated]
        415,
        400,
        400,
    ]


def test_a_token_counts_for_its_projects_alone(client: AppClient) -> None:
    """Counts of flags of other projects are dropped, in both forms; other counts in the report are stored."""
    flags = Flags()
    flags.feature("theirs", project="other")
    with client.server.store.writing(None) as tx:
        flags.put(tx)
    counted = {"one": {"yes": 1}, "theirs": {"yes": 2}}
    lines = [
        {"featureName": name, "appName": "shop", "environment": "production", "yes": 4, "no": 0}
        for name in ("one", "theirs")
    ]
    assert taken(report(client, counted, PRODUCTION)) and taken(bulk(client, metrics=lines, token=PRODUCTION))
    assert (last_hour(client), last_hour(client, "theirs")) == ({"production": (5, 0)}, {})
    assert taken(report(client, counted, BOTH)) and taken(bulk(client, metrics=lines, token=BOTH))
    assert (last_hour(client), last_hour(client, "theirs")) == ({"production": (10, 0)}, {"production": (6, 0)})
    assert taken(report(client, counted))
    assert last_hour(client, "theirs") == {"development": (2, 0), "production": (6, 0)}
    shown = client.get("/api/admin/projects/other/features/theirs").json()
    assert shown["lastSeenAt"] is not None
