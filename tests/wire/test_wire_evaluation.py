"""What the evaluation endpoints answer (specification: GET /proxy; POST /proxy; behaviour: Evaluation endpoints).

Every operator that the proxy evaluates can be set at our flag server, is exported and imported, and decides what callers get.
The order of checks, each pair of neighbours (behaviour: Order of checks; Statuses and bodies).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest

from flagsvc.engine.operators import OPERATORS
from support.flagservers import BACKEND_SECRET, OurFlagServer, our_flag_server
from support.processes import Proxy, our_proxy
from support.scene import document, toggle
from support.wirekit import PEER, Opener, Wire, asking

DISABLED = {"name": "disabled", "enabled": False}
ON = {"name": "on", "enabled": True, "impressionData": True, "variant": DISABLED}
OFF = {"name": "off", "enabled": False, "impressionData": False, "variant": DISABLED}
BLUE = {"name": "blue", "enabled": True, "payload": {"type": "string", "value": "sea"}}
VARIED = {"name": "varied", "enabled": True, "impressionData": False, "variant": BLUE}


def sees(wire: Wire, target: str, **more: Any) -> bool:
    """Return whether the toggle `asked` is on for a GET."""
    answer = wire.get(target, **more)
    assert answer.status == 200, answer.body
    return "asked" in answer.names


def test_get_lists_what_is_on(opened: Opener) -> None:
    """The answer has the toggles that are on, in the document's order."""
    assert opened().get("/proxy").json() == {"toggles": [ON, VARIED]}


def test_all_lists_everything(opened: Opener) -> None:
    """The answer has every toggle, on or off, for GET and POST."""
    wire = opened(enable_all_endpoint=True)
    for answer in (wire.get("/proxy/all"), wire.post("/proxy/all", {}), wire.post("/proxy/all", {"toggles": []})):
        assert answer.json() == {"toggles": [ON, OFF, VARIED]}


def test_post_lists_what_is_on(opened: Opener) -> None:
    """Without toggles, or with none, a POST is a list; so is a POST without a body."""
    wire = opened()
    for body in ({}, {"toggles": []}, {"context": {}}, {"userId": "7"}, b""):  # type: ignore[var-annotated]
        assert wire.post("/proxy", body).json() == {"toggles": [ON, VARIED]}
    assert wire.ask("POST", "/proxy").json() == {"toggles": [ON, VARIED]}


def test_post_answers_every_name(opened: Opener) -> None:
    """One answer per name in the order asked, repeats and unknown names included."""
    wire = opened(enable_all_endpoint=True)
    unknown = {**OFF, "name": "näme"}
    for target in ("/proxy", "/proxy/all"):
        answer = wire.post(target, {"toggles": ["varied", "off", "näme", "varied"]})
        assert answer.json() == {"toggles": [VARIED, OFF, unknown, VARIED]}


def test_a_look_up_whose_answer_would_be_huge_is_refused(opened: Opener) -> None:
    """A short body that repeats a toggle with a long payload is a 413 and counts nothing; fewer names are answered."""
    payload = {"type": "string", "value": "x" * 10_000}
    wire = opened(document=document(toggle("on", variants=[{"name": "v", "weight": 1, "payload": payload}])))
    answer = wire.post("/proxy", {"toggles": ["on"] * 5_000})
    assert (answer.status, answer.json()) == (413, {"error": "the answer would be too large: name fewer toggles"})
    assert wire.counted() == {}
    assert b'flagsvc_limits_reached_total{limit="answer"} 1.0' in wire.get("/proxy/internal-backstage/prometheus").body
    assert len(wire.post("/proxy", {"toggles": ["on"] * 100}).names) == 100


def test_named_lookups_are_counted(opened: Opener) -> None:
    """A named look-up counts yes or no for each known name; a list counts nothing."""
    wire = opened()
    wire.get("/proxy")
    wire.post("/proxy", {})
    assert wire.counted() == {}
    wire.post("/proxy", {"toggles": ["on", "off", "on", "unknown"]})
    assert wire.counted() == {"on": (2, 0, {}), "off": (0, 1, {})}


def test_headers_of_an_answer(opened: Opener) -> None:
    """The answer has the headers of the specification, and a Vary that makes shared caches correct."""
    wire = opened()
    for answer in (wire.get("/proxy"), wire.post("/proxy", {}), wire.post("/proxy", {"toggles": ["on"]})):
        assert answer.header("cache-control") == "public, max-age=2"
        assert answer.header("content-type") == "application/json; charset=utf-8"
        assert answer.header("access-control-expose-headers") == "ETag"
        assert answer.header("vary") == "Accept-Encoding, authorization"
        assert (answer.header("etag") or "").startswith('W/"')


def test_default_context(opened: Opener) -> None:
    """Without appName the proxy's own is used, without environment `default`."""
    wire = opened(document=document(asking("appName", "IN", "flagsvc-proxy")))
    assert sees(wire, "/proxy")
    assert not sees(wire, "/proxy?appName=web")
    wire = opened(document=document(asking("appName", "IN", "mine")), app_name="mine")
    assert sees(wire, "/proxy?appName=")
    wire = opened(document=document(asking("environment", "IN", "default")))
    assert sees(wire, "/proxy")
    assert sees(wire, "/proxy?environment=")
    assert not sees(wire, "/proxy?environment=dev")


def sessions(wire: Wire, times: int = 40) -> set[tuple[str, ...]]:
    """Return the different answers a caller without a session gets."""
    return {tuple(wire.get("/proxy?userId=1").names) for _ in range(times)}


HALF = {"rollout": "50", "stickiness": "sessionId", "groupId": "g"}
STICKY = {"name": "asked", "enabled": True, "strategies": [{"name": "flexibleRollout", "parameters": HALF}]}


def test_a_list_draws_a_session(opened: Opener) -> None:
    """A caller without a session gets a random one for each list request."""
    wire = opened(document=document(STICKY))
    assert sessions(wire) == {(), ("asked",)}
    posted = {tuple(wire.post("/proxy", {"context": {"userId": "1"}}).names) for _ in range(40)}
    assert posted == {(), ("asked",)}


def test_a_named_lookup_draws_none(opened: Opener) -> None:
    """In a named look-up without a session, stickiness to the session gives off."""
    wire = opened(document=document(STICKY))
    asked = [wire.post("/proxy", {"toggles": ["asked"], "context": {"userId": "1"}}).json() for _ in range(40)]
    assert {toggle["enabled"] for answer in asked for toggle in answer["toggles"]} == {False}


def test_the_clock_is_used_where_the_caller_tells_no_time(opened: Opener) -> None:
    """A date constraint reads currentTime, else the clock."""
    wire = opened(document=document(asking("currentTime", "DATE_AFTER", "2025-01-01T00:00:00.000Z")))
    assert sees(wire, "/proxy")  # the fake clock stands in June 2025
    assert not sees(wire, "/proxy?currentTime=2024")
    assert sees(wire, "/proxy?currentTime=nonsense")
    assert not sees(wire, "/proxy?currentTime=2024-12-31%2023:59")


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("/proxy", PEER),
        ("/proxy?remoteAddress=", PEER),
        ("/proxy?remoteAddress=198.51.100.1", "198.51.100.1"),
        ("/proxy?remoteAddress=no-address", "no-address"),
    ],
)
def test_remote_address(opened: Opener, given: str, seen: str) -> None:
    """The caller's own value is used if there is one, else the peer's address."""
    assert sees(opened(document=document(asking("remoteAddress", "IN", seen))), given)


def test_the_peers_address_mapped_in_ipv6(opened: Opener) -> None:
    """IPv4 mapped in IPv6 counts as IPv4; IPv6 does not change; a Unix socket has no address."""
    wire = opened(document=document(asking("remoteAddress", "IN", "192.0.2.1", "2001:db8::1")))
    assert sees(wire, "/proxy", peer="::ffff:192.0.2.1")
    assert sees(wire, "/proxy", peer="2001:db8::1")
    assert not sees(wire, "/proxy", peer=None)


FEATURES = "/projects/default/features"
FIELD = "answer"
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "NOT_IN": ({"values": ["no"]}, "yes", "no"),
    "IN": ({"values": ["yes"]}, "yes", "no"),
    "STR_ENDS_WITH": ({"values": ["es"]}, "yes", "no"),
    "STR_STARTS_WITH": ({"values": ["ye"]}, "yes", "no"),
    "STR_CONTAINS": ({"values": ["e"]}, "yes", "no"),
    "NUM_EQ": ({"value": "5"}, "5.0", "6"),
    "NUM_GT": ({"value": "5"}, "6", "5"),
    "NUM_GTE": ({"value": "5"}, "5", "4"),
    "NUM_LT": ({"value": "5"}, "4", "5"),
    "NUM_LTE": ({"value": "5"}, "5", "6"),
    "DATE_AFTER": ({"value": "2026-01-01T00:00:00Z"}, "2026-01-02T00:00:00Z", "2025-12-31T00:00:00Z"),
    "DATE_BEFORE": ({"value": "2026-01-01T00:00:00Z"}, "2025-12-31T00:00:00Z", "2026-01-02T00:00:00Z"),
    "SEMVER_EQ": ({"value": "1.2.3"}, "1.2.3", "1.2.4"),
    "SEMVER_GT": ({"value": "1.2.3"}, "1.10.0", "1.2.3"),
    "SEMVER_LT": ({"value": "1.2.3"}, "1.2.3-beta", "1.2.3"),
    "SEMVER_GTE": ({"value": "1.2.3"}, "1.2.3", "1.2.2"),
    "SEMVER_LTE": ({"value": "1.2.3"}, "1.2.3", "1.2.4"),
    "REGEX": ({"value": "^y"}, "yes", "no"),
    "IN_CIDR": ({"values": ["10.0.0.0/8", "2001:db8::1"]}, "10.9.8.7", "11.0.0.1"),
}
"""Operator → its operand, a field value for which it holds, and one for which it does not."""


@dataclass(frozen=True)
class Both:
    """Our flag server and a proxy on it."""

    server: OurFlagServer
    proxy: Proxy

    def on(self, name: str, value: str) -> bool:
        """Return whether a feature is on for a caller with this value of the field, at this time."""
        field = "currentTime" if name.startswith("DATE_") else f"properties[{FIELD}]"
        return name in self.proxy.toggles(f"?{urlencode({field: value})}")


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    """Make a feature for each operator, named after it, and serve them."""
    with our_flag_server() as server:
        for name, (compared, _, _) in CASES.items():
            constraint = {"contextName": FIELD, "operator": name, **compared}
            server.admin(FEATURES, {"name": name})
            strategies = f"{FEATURES}/{name}/environments/development/strategies"
            server.admin(strategies, {"name": "default", "constraints": [constraint]})
            server.admin(f"{FEATURES}/{name}/environments/development/on", method="POST")
        with our_proxy(server.url, FLAGSVC_API_TOKEN=BACKEND_SECRET) as proxy:
            yield Both(server, proxy)


def test_every_operator_has_a_case() -> None:
    """Both products read one table of operators, and each of them has a case."""
    assert set(CASES) == set(OPERATORS)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_that_is_set_at_the_flag_server_decides_at_the_proxy(both: Both, name: str) -> None:
    """The feature is on for the one value of the field, and off for the other."""
    _, held, not_held = CASES[name]
    assert (both.on(name, held), both.on(name, not_held)) == (True, False)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_exported_and_imported(both: Both, name: str) -> None:
    """The export of one environment can be imported into another, whose export is then the same."""
    batch = "/features-batch"
    data = both.server.admin(f"{batch}/export", {"environment": "development", "features": [name]})
    [strategy] = data["featureStrategies"]
    assert [each["operator"] for each in strategy["constraints"]] == [name]
    body = {"project": "default", "environment": "production", "data": data}
    assert both.server.admin(f"{batch}/validate", body)["errors"] == []
    both.server.admin(f"{batch}/import", body)
    again = both.server.admin(f"{batch}/export", {"environment": "production", "features": [name]})
    assert again["featureStrategies"][0]["constraints"] == strategy["constraints"]


CLOSED: dict[str, Any] = {"document": None}
LARGE = b"[" + b" " * 200_000 + b"]"


@pytest.mark.parametrize(
    ("opening", "method", "target", "headers", "key", "body", "status"),
    [
        # OPTIONS before readiness, the path and the key
        (CLOSED, "OPTIONS", "/proxy", {}, None, b"", 204),
        ({}, "OPTIONS", "/nowhere", {}, None, b"", 204),
        ({}, "OPTIONS", "/proxy", {"content-type": "text/plain"}, None, LARGE, 204),
        # 503 before 404, 405, 401, 501, 415, 413
        (CLOSED, "GET", "/nowhere", {}, None, b"", 503),
        (CLOSED, "GET", "/proxy/health", {}, None, b"", 503),
        (CLOSED, "POST", "/proxy/all", {"content-type": "text/plain"}, "client-key", LARGE, 503),
        # and readiness, which says why not itself
        (CLOSED, "PUT", "/readyz", {}, None, b"", 405),
        (CLOSED, "GET", "/readyz", {}, None, b"", 503),
        # 404 and 405 before 401
        ({}, "GET", "/nowhere", {}, None, b"", 404),
        ({}, "DELETE", "/proxy", {}, None, b"", 405),
        # 401 before 501, 415, 413, 400
        ({}, "GET", "/proxy/all", {}, None, b"", 401),
        ({}, "POST", "/proxy", {"content-type": "text/plain"}, None, b"x", 401),
        ({}, "POST", "/proxy", {}, "wrong", LARGE, 401),
        ({}, "POST", "/proxy", {}, "wrong", b"{", 401),
        ({}, "GET", "/proxy?properties=x", {}, "wrong", b"", 401),
        # 501 before 415, 413, 400
        ({}, "POST", "/proxy/all", {"content-type": "text/plain"}, "client-key", b"x", 501),
        ({}, "POST", "/proxy/all", {}, "client-key", LARGE, 501),
        ({}, "POST", "/proxy/all", {}, "client-key", b"{", 501),
        # 415 before 413 and 400
        ({}, "POST", "/proxy", {"content-type": "text/plain"}, "client-key", LARGE, 415),
        ({}, "POST", "/proxy", {"content-type": "text/plain"}, "client-key", b"{", 415),
        # 413 before 400
        ({}, "POST", "/proxy", {}, "client-key", b"{" + LARGE, 413),
    ],
)
def test_the_first_check_that_fails_decides(
    opened: Opener,
    opening: dict[str, Any],
    method: str,
    target: str,
    headers: dict[str, str],
    key: str | None,
    body: bytes,
    status: int,
) -> None:
    """If two things are wrong, the first check gives the answer."""
    assert opened(**opening).ask(method, target, headers, key=key, body=body).status == status


def test_a_key_is_asked_for_before_a_304(opened: Opener) -> None:
    """A caller with an entity tag but without a key gets no 304."""
    wire = opened()
    tag = wire.get("/proxy").header("etag") or ""
    assert wire.get("/proxy", {"if-none-match": tag}).status == 304
    assert wire.get("/proxy", {"if-none-match": tag}, key=None).status == 401
    assert wire.get("/proxy", {"if-none-match": "*"}, key="wrong").status == 401
