"""OFREP at the proxy, row by row (dialects: OpenFeature Remote Evaluation Protocol)."""

from __future__ import annotations

from typing import Any

import pytest

from support.wirekit import KEY, TOKEN, Opener, asking

URL = "/ofrep/v1/evaluate/flags"
EU = {"context": {"targetingKey": "7", "region": "eu"}}


def flag(name: str, *payloads: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Return a feature that is on, with a variant for each payload; the first alone has a weight."""
    variants = [
        {"name": f"v{at}", "weight": 0 if at else 1000, "payload": {"type": kind, "value": value}}
        for at, (kind, value) in enumerate(payloads)
    ]
    return {"name": name, "enabled": True, "strategies": [{"name": "default"}], "variants": variants} | more


SHARE = [{"name": "flexibleRollout", "parameters": {"rollout": "100", "stickiness": "userId", "groupId": "g"}}]
NOBODY = [{"name": "userWithId", "parameters": {"userIds": "8"}}]
TWO = [{"name": "a", "weight": 500}, {"name": "b", "weight": 500, "overrides": [{"contextName": "userId", "values": ["7"]}]}]
ROWS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        flag("on", impressionData=True),
        {"value": True, "reason": "STATIC", "variant": "enabled", "metadata": {"impressionData": True}},
    ),
    (flag("off", enabled=False), {"value": False, "reason": "DISABLED", "variant": "disabled"}),
    (flag("nobody", strategies=NOBODY), {"value": False, "reason": "TARGETING_MATCH", "variant": "disabled"}),
    (flag("sticky", strategies=SHARE), {"value": True, "reason": "TARGETING_MATCH", "variant": "enabled"}),
    (
        flag("half", strategies=[SHARE[0] | {"parameters": {"rollout": "1"}}]),
        {"value": False, "reason": "SPLIT", "variant": "disabled"},
    ),
    (flag("drawn", variants=TWO), {"value": True, "reason": "SPLIT", "variant": "b"}),
    (flag("child", dependencies=[{"feature": "half", "enabled": False}]), {"value": True, "reason": "SPLIT", "variant": "enabled"}),
    (flag("text", ("string", " a\u2028")), {"value": " a\u2028", "reason": "STATIC", "variant": "v0"}),
    (flag("csv", ("csv", "a,b")), {"value": "a,b", "reason": "STATIC", "variant": "v0"}),
    (flag("whole", ("number", "42")), {"value": 42, "reason": "STATIC", "variant": "v0"}),
    (flag("list", ("json", "[1, 2.50]")), {"value": [1, 2.5], "reason": "STATIC", "variant": "v0"}),
    (flag("null", ("json", " null ")), {"reason": "STATIC", "variant": "v0"}),
    (flag("mixed", ("string", "x"), enabled=False), {"reason": "DISABLED", "variant": "disabled"}),
]
"""A feature, and what the key of its name says in the EU."""
BROKEN = [("number", "042"), ("number", "NaN"), ("number", ""), ("json", "{'a': 1}"), ("json", "")]
"""Payloads that are not of their type."""


def test_values(opened: Opener) -> None:
    """Each flag has its value alone and among all, in the order of the document; with payloads, a second key tells its state."""
    wire = opened(document={"version": 2, "features": [each for each, _ in ROWS]}, ofrep=True)
    everything = wire.post(URL, EU).json()["flags"]
    assert [each for each in everything if ":" not in each["key"]] == [{"key": made["name"], **said} for made, said in ROWS]
    for made, said in ROWS:
        name = made["name"]
        one = wire.post(f"{URL}/{name}", EU)
        assert (one.status, one.json()) == (200, {"key": name, **said})
        state = wire.post(f"{URL}/{name}:enabled", EU)
        assert (state.status, state.json()["value"]) == (200, said["variant"] != "disabled")
        assert (state.json() in everything) == any("payload" in each for each in made["variants"])


def test_a_number_is_sent_as_its_author_wrote_it(opened: Opener) -> None:
    """A provider of a typed language takes 42.0 for another type than 42."""
    wire = opened(document={"features": [flag("n", ("number", " 42.0 "))]}, ofrep=True)
    assert b'"value":42.0,' in wire.post(f"{URL}/n", EU).body


@pytest.mark.parametrize("payload", BROKEN)
def test_a_payload_that_is_not_of_its_type(opened: Opener, payload: tuple[str, str]) -> None:
    """It is a failure of its flag alone; its state is known."""
    wire = opened(document={"features": [flag("broken", payload), flag("on")]}, ofrep=True)
    details = f"the payload of the variant `v0` is not of the type {payload[0]}"
    failure = {"key": "broken", "errorCode": "PARSE_ERROR", "errorDetails": details}
    one = wire.post(f"{URL}/broken", EU)
    assert (one.status, one.json()) == (400, failure)
    everything = wire.post(URL, EU).json()["flags"]
    assert everything[0] == failure and [each.get("value") for each in everything[1:]] == [True, True]


@pytest.mark.parametrize(
    ("context", "matches"),
    [
        ({"targetingKey": "7"}, True),
        ({"targetingKey": 7}, True),
        ({"targetingKey": "7", "userId": "8"}, False),
        ({"targetingKey": "8", "userId": "7"}, True),
        ({"userId": "7", "nested": {"a": 1}, "list": [1], "empty": None}, True),
        ({"properties": {"userId": "7"}}, True),
        ({}, False),
    ],
)
def test_contexts(opened: Opener, context: dict[str, Any], matches: bool) -> None:
    """The targeting key is the user, unless there is a user; what is no scalar is ignored; no key is no error."""
    wire = opened(document={"features": [asking("userId", "IN", "7")]}, ofrep=True)
    assert wire.post(f"{URL}/asked", {"context": context}).json()["value"] is matches


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("", b"{", 400, "PARSE_ERROR"),
        ("", {}, 400, "INVALID_CONTEXT"),
        ("", {"context": 1}, 400, "INVALID_CONTEXT"),
        ("", [], 400, "INVALID_CONTEXT"),
        ("/on", b"{", 400, "PARSE_ERROR"),
        ("/on", {"context": None}, 400, "INVALID_CONTEXT"),
        ("/missing", EU, 404, "FLAG_NOT_FOUND"),
        ("/missing:enabled", EU, 404, "FLAG_NOT_FOUND"),
        ("/../configuration", EU, 404, "FLAG_NOT_FOUND"),
        ("", {"context": {"a": "x" * 5000}}, 400, "INVALID_CONTEXT"),
        ("", b" " * 200_000, 413, "GENERAL"),
    ],
)
def test_errors(opened: Opener, path: str, body: Any, status: int, code: str) -> None:
    """An error has the protocol's code and words; that of one flag has its key, too."""
    wire = opened(document={"features": [flag("on")]}, ofrep=True)
    answer = wire.post(URL + path, body)
    assert (answer.status, answer.json()["errorCode"]) == (status, code)
    assert answer.json()["errorDetails"]
    assert answer.json().get("key") == (path[1:] or None)


@pytest.mark.parametrize(
    ("headers", "one", "every"),
    [
        ({"authorization": KEY}, 200, 200),
        ({"authorization": f"Bearer {KEY}"}, 200, 200),
        ({"x-api-key": KEY}, 200, 200),
        ({"authorization": KEY, "x-api-key": "of-a-gateway"}, 200, 200),
        ({"authorization": "wrong", "x-api-key": KEY}, 401, 401),
        ({"x-api-key": "wrong"}, 401, 401),
        ({}, 401, 401),
        ({"authorization": TOKEN}, 200, 403),
    ],
)
def test_keys(opened: Opener, headers: dict[str, str], one: int, every: int) -> None:
    """A client key opens both routes, in either header; a server-side token opens single flags."""
    wire = opened(document={"features": [flag("on")]}, ofrep=True)
    assert wire.ask("POST", f"{URL}/on", headers, key=None, body=EU).status == one
    assert wire.ask("POST", URL, headers, key=None, body=EU).status == every


def test_the_second_header_counts_only_here(opened: Opener) -> None:
    """Elsewhere a gateway in front may have set it for itself."""
    wire = opened(ofrep=True)
    assert wire.ask("GET", "/proxy", {"x-api-key": KEY}, key=None).status == 401
    assert wire.ask("GET", "/", {"x-api-key": KEY}, key=None).status == 200


def test_it_is_off_by_default(opened: Opener) -> None:
    """It tells the names of flags that are off. The answer says how to switch it on."""
    answer = opened().post(URL, EU)
    assert answer.status == 404 and "option `ofrep` (variable `FLAGSVC_OFREP`)" in answer.json()["errorDetails"]


def test_an_answer_that_the_caller_has(opened: Opener) -> None:
    """The same context has the same tag, which is a 304; another context and another form have another tag."""
    wire = opened(document={"features": [asking("userId", "IN", "7")]}, ofrep=True)
    answer = wire.post(URL, EU)
    tag = answer.header("etag") or ""
    unchanged = wire.post(URL, EU, {"if-none-match": tag})
    assert (unchanged.status, unchanged.body, unchanged.header("etag")) == (304, b"", tag)
    assert wire.post(URL, {"context": {"targetingKey": "8"}}, {"if-none-match": tag}).status == 200
    assert wire.get("/proxy?userId=7", {"if-none-match": tag}).status == 200


def test_usage(opened: Opener) -> None:
    """One flag that is asked for is counted, under its name, also by way of its state; all flags together are not."""
    wire = opened(document={"features": [flag("on"), flag("text", ("string", "x"))]}, ofrep=True)
    wire.post(URL, EU)
    for path in ("/on", "/text", "/text:enabled", "/missing"):
        wire.post(URL + path, EU)
    assert {name: counts[:2] for name, counts in wire.counted().items()} == {"on": (1, 0), "text": (2, 0)}
