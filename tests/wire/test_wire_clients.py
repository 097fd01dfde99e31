"""Endpoints that real clients call besides evaluation (behaviour: Other endpoints)."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.http.reports import MAX_TIME_MS
from support.wirekit import DOCUMENT, KEY, TOKEN, Opener

METRICS = ("/proxy/client/metrics", "/proxy/all/client/metrics", "/api/frontend/client/metrics")
TIMES = {"start": "2026-01-01T00:00:00.000Z", "stop": "2026-01-01T00:01:00.000Z"}
NO_TIME = 'must match format "date-time"'
REGISTRATION = {"appName": "a", "interval": 5, "started": "2026-01-01T00:00:00Z", "strategies": []}


def report(toggles: object, **more: object) -> dict[str, object]:
    """Return the body of a metrics post."""
    return {"appName": "a", "instanceId": "i", "bucket": {**TIMES, "toggles": toggles}, **more}


@pytest.mark.parametrize("target", METRICS)
@pytest.mark.parametrize("key", [KEY, TOKEN])
def test_metrics_are_counted(opened: Opener, target: str, key: str) -> None:
    """200 `OK`, with a client key or a server-side token; counts add up."""
    wire = opened()
    body = report({"on": {"yes": 2, "no": 1, "variants": {"disabled": 3}}, "varied": {"yes": 1, "variants": {"blue": 1}}})
    for _ in range(2):
        answer = wire.post(target, body, key=key)
        assert (answer.status, answer.body) == (200, b"OK")
        assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert wire.counted() == {"on": (4, 2, {"disabled": 6}), "varied": (2, 0, {"blue": 2})}


def test_unknown_names_are_dropped_and_counted(opened: Opener) -> None:
    """Unknown names are dropped: a caller could send a user's address to the upstream as the name of a toggle or variant."""
    wire = opened()
    wire.post(METRICS[0], report({"jane@example.com": {"yes": 1}, "on": {"yes": 1, "variants": {"10.0.0.1": 5}}}))
    assert wire.counted() == {"on": (1, 0, {})}
    assert wire.usage.unknown == 2
    page = wire.get("/proxy/internal-backstage/prometheus").body
    assert b"flagsvc_usage_unknown" not in page and b"flagsvc_usage_waiting" not in page, "who may ask learns no names"


def test_which_names_there_are_is_not_told(opened: Opener) -> None:
    """The public page of metrics is the same, whether a caller asked for an existing toggle or an unknown one."""

    def page_after(name: str) -> list[bytes]:
        wire = opened()
        wire.post("/proxy", {"toggles": [name] * 50})
        wire.post(METRICS[0], report({name: {"yes": 7, "variants": {"someone": 1}}}))
        lines = wire.get("/proxy/internal-backstage/prometheus").body.splitlines()
        return [line for line in lines if b"usage" in line]

    assert page_after("off") == page_after("nothing-of-that-name")


@pytest.mark.parametrize(
    ("counts", "counted"),
    [
        ({}, (0, 0, {})),
        ({"yes": 1}, (1, 0, {})),
        ({"yes": None, "no": 2}, (0, 2, {})),
        ({"yes": 1.0, "no": "2"}, (1, 2, {})),
        ({"yes": 2**53 - 1, "no": 1.9}, (2**53 - 1, 1, {})),
        ({"yes": 1, "no": 2, "further": [1]}, (1, 2, {})),
    ],
)
def test_counts_that_are_taken(opened: Opener, counts: object, counted: tuple[int, int, dict[str, int]]) -> None:
    """Numbers in bounds are accepted, and their whole part counts; a missing count is 0. So it is at the frontend API."""
    wire = opened()
    for target in METRICS:
        assert wire.post(target, report({"on": counts})).status == 200
        assert wire.counted() == {"on": counted}


@pytest.mark.parametrize(
    ("counts", "counted"),
    [
        ({"yes": -1}, None),
        ({"yes": 2**53}, None),
        ({"yes": "x"}, None),
        ({"yes": "9" * 5000}, None),
        ({"no": {}}, None),
        (None, None),
        ({"yes": 1, "variants": {"a": -1, "disabled": 2}}, (1, 0, {"disabled": 2})),
        ({"yes": 1, "variants": {"v": "x"}}, (1, 0, {})),
    ],
)
def test_counts_that_cannot_be_read(opened: Opener, counts: object, counted: object) -> None:
    """They cost only themselves: the rest of the report is counted, and what is left out is counted as malformed."""
    for target in METRICS:
        wire = opened()
        assert wire.post(target, report({"varied": {"yes": 1}, "on": counts})).status == 200
        assert wire.counted() == {"varied": (1, 0, {})} | ({} if counted is None else {"on": counted})
        assert wire.usage.malformed == 1


@pytest.mark.parametrize("variants", [None, False, "", []])
def test_a_toggle_may_have_no_variants(opened: Opener, variants: object) -> None:
    """Null stands for none: the SDK for Go sends it. Anything else than an object counts as null."""
    wire = opened()
    assert wire.post(METRICS[0], report({"on": {"yes": 2, "variants": variants}})).status == 200
    assert wire.counted() == {"on": (2, 0, {})}


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        ({}, "/body", "must have required property 'appName'"),
        (b"", "/body", "must have required property 'appName'"),
        (b"[]", "/body", "must be object"),
        ({"appName": "a", "bucket": []}, "/body/bucket", "must be object"),
        ({"appName": [], "instanceId": "i", "bucket": {}}, "/body/appName", "must be string"),
        ({"appName": "a", "instanceId": "i", "bucket": {}}, "/body/bucket", "must have required property 'start'"),
        (report([]), "/body/bucket/toggles", "must be object"),
        (report(None), "/body/bucket/toggles", "must be object"),
        ({"appName": "a", "instanceId": "i", "bucket": TIMES}, "/body/bucket", "must have required property 'toggles'"),
        ({"appName": "a", "bucket": {**TIMES, "stop": "soon"}}, "/body/bucket", "must have required property 'toggles'"),
        *(
            ({"appName": "a", "bucket": {**TIMES, "stop": stop, "toggles": {}}}, "/body/bucket/stop", NO_TIME)
            for stop in ("soon", MAX_TIME_MS + 1)
        ),
    ],
)
def test_reports_that_lack_something(opened: Opener, body: object, pointer: str, message: str) -> None:
    """The answer is a 400 with the place and the rule."""
    answer = opened().post(METRICS[0], body)
    assert answer.status == 400
    assert answer.json()["validation"] == [{"instancePath": pointer, "message": message}]


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        ("2026-01-01T00:00:00Z", 200),
        ("2026-01-01 00:00:00+01:00", 200),
        ("2026-13-01T00:00:00Z", 400),
        ("", 400),
        (1640000000000, 200),
        ("1640000000", 200),
        (" ", 200),
        (1.5, 400),
        (None, 400),
        (True, 400),
    ],
)
def test_times_of_a_bucket(opened: Opener, moment: object, status: int) -> None:
    """The times are texts with date and time, or whole numbers since the epoch."""
    body = report({})
    for name in ("start", "stop"):
        bucket: dict[str, Any] = {**TIMES, "toggles": {}, name: moment}
        answer = opened().post(METRICS[0], {**body, "bucket": bucket})
        assert answer.status == status
        if status == 400:
            assert answer.json()["validation"][0]["instancePath"] == f"/body/bucket/{name}"


@pytest.mark.parametrize("key", [KEY, TOKEN])
def test_register(opened: Opener, key: str) -> None:
    """200 `OK`, with a client key or a server-side token."""
    answer = opened().post("/proxy/client/register", {**REGISTRATION, "instanceId": "i", "sdkVersion": "x:1"}, key=key)
    assert (answer.status, answer.body) == (200, b"OK")
    assert answer.header("content-type") == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("change", "pointer", "message"),
    [
        ({"interval": "x"}, "/body/interval", "must be number"),
        ({"interval": []}, "/body/interval", "must be number"),
        ({"started": "x"}, "/body/started", NO_TIME),
        ({"started": None}, "/body/started", NO_TIME),
        ({"started": True}, "/body/started", NO_TIME),
        ({"strategies": "x"}, "/body/strategies", "must be array"),
        ({"appName": {}}, "/body/appName", "must be string"),
    ],
)
def test_registrations_that_are_wrong(opened: Opener, change: dict[str, object], pointer: str, message: str) -> None:
    """The answer is a 400 with the place and the rule."""
    answer = opened().post("/proxy/client/register", {**REGISTRATION, **change})
    assert answer.status == 400
    assert answer.json()["validation"] == [{"instancePath": pointer, "message": message}]


LOOSE: tuple[dict[str, object], ...] = (
    {"interval": "5"},
    {"interval": None},
    {"interval": 5.5},
    {"interval": True},
    {"started": 1640000000},
    {"started": "1640000000"},
    {"strategies": [{}]},
    {"instanceId": {}},
    {"sdkVersion": []},
)


@pytest.mark.parametrize("change", LOOSE)
def test_registrations_that_are_loose(opened: Opener, change: dict[str, object]) -> None:
    """The proxy accepts what the reference proxy accepts, and what only describes an application may be anything."""
    assert opened().post("/proxy/client/register", {**REGISTRATION, **change}).status == 200


@pytest.mark.parametrize("missing", list(REGISTRATION))
def test_registrations_that_lack_something(opened: Opener, missing: str) -> None:
    """appName, interval, started and strategies are required."""
    body = {name: value for name, value in REGISTRATION.items() if name != missing}
    answer = opened().post("/proxy/client/register", body)
    assert answer.json()["validation"][0]["message"] == f"must have required property '{missing}'"


def test_features(opened: Opener) -> None:
    """A server-side token gets the document, with a tag and 304; other keys do not."""
    wire = opened()
    answer = wire.get("/proxy/client/features", key=TOKEN)
    assert answer.json() == DOCUMENT
    assert answer.header("content-type") == "application/json; charset=utf-8"
    assert answer.header("vary") == "Accept-Encoding, authorization"
    assert answer.header("cache-control") == "private, no-cache", "a shared cache gives it to nobody else"
    tag = answer.header("etag")
    assert tag == 'W/"v1"'
    assert wire.get("/proxy/client/features", {"if-none-match": tag}, key=TOKEN).status == 304
    assert wire.get("/proxy/client/features", {"if-none-match": '"v1"'}, key=TOKEN).status == 304
    assert wire.get("/proxy/client/features", {"if-none-match": '"v0"'}, key=TOKEN).status == 200
