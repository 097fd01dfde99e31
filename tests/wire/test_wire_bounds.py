"""Limits on the content of a context, a look-up and a body (decision 0032)."""

from __future__ import annotations

from typing import Any

import pytest

from support.wirekit import TOKEN, Answer, Opener, Wire

SMALL: dict[str, Any] = {
    "context_properties_limit": 3,
    "context_value_limit": 5,
    "toggle_limit": 2,
    "json_depth_limit": 8,
}
BODY_BYTES = 100_000
"""The largest number of names in a body."""


def reached(wire: Wire) -> dict[str, int]:
    """Return the limits that were reached, by their labels in the metrics."""
    page = wire.get("/proxy/internal-backstage/prometheus", key=None).body.decode().splitlines()
    lines = [line.partition("{")[2] for line in page if line.startswith("flagsvc_limits_reached_total{")]
    counts = {line.split('"')[1]: int(float(line.split()[1])) for line in lines}
    assert len(counts) > 10
    return {limit: count for limit, count in counts.items() if count}


def problem(answer: Answer) -> tuple[str, str]:
    """Return the pointer and the rule of a 400."""
    assert (answer.status, answer.header("cache-control")) == (400, "no-store")
    [only] = answer.json()["validation"]
    return only["instancePath"], only["message"]


@pytest.mark.parametrize(
    ("query", "pointer", "rule"),
    [
        ("a=1&b=2&c=3", None, None),
        ("a=1&properties[b]=2&c[]=3&a=4", None, None),
        ("a=1&b=2&c=3&properties[d]=4", "/query", "must NOT have more than 3 properties"),
        ("userId=%F0%9F%98%80bcde", None, None),
        ("userId=abcdef", "/query/userId", "must NOT have more than 5 characters"),
        ("remoteAddress=abcdef", "/query/remoteAddress", "must NOT have more than 5 characters"),
        ("sessionId=abcdef&environment=x", "/query/sessionId", "must NOT have more than 5 characters"),
        ("area=abcdef", "/query/area", "must NOT have more than 5 characters"),
        ("properties[a]=abcdef", "/query/a", "must NOT have more than 5 characters"),
        ("a=123&a=456", "/query/a", "must NOT have more than 5 characters"),
        ("abcdef=1", "/query", "must NOT have names of more than 5 characters"),
        (f"currentTime=2022{'+' * 96}", None, None),
        (f"currentTime=2022{'+' * 97}", "/query/currentTime", "must NOT have more than 100 characters"),
    ],
)
def test_a_context_in_a_query(opened: Opener, query: str, pointer: str | None, rule: str | None) -> None:
    """A context at the limit is answered; one more of anything is a 400 that names the limit."""
    for method in ("GET", "HEAD"):
        answer = opened(**SMALL).ask(method, f"/proxy?{query}")
        assert answer.status == (200 if rule is None else 400)
    if rule is not None:
        assert problem(opened(**SMALL).get(f"/proxy?{query}")) == (pointer, rule)


@pytest.mark.parametrize(
    ("context", "pointer", "rule"),
    [
        ({"a": 1, "properties": {"b": None, "c": True}}, None, None),
        (
            {"a": 1, "b": 2, "properties": {"c": 1, "d": 1}},
            "/body/context/properties",
            "must NOT have more than 3 properties",
        ),
        ({"userId": "abcde"}, None, None),
        ({"userId": "abcdef"}, "/body/context/userId", "must NOT have more than 5 characters"),
        ({"environment": 123456}, "/body/context/environment", "must NOT have more than 5 characters"),
        ({"properties": {"a": 1e20}}, "/body/context/properties/a", "must NOT have more than 5 characters"),
        ({"a": [1, 2, 3, 4]}, "/body/context/properties/a", "must NOT have more than 5 characters"),
        ({"a": {}}, "/body/context/properties/a", "must NOT have more than 5 characters"),
        ({"abcdef": 1}, "/body/context/properties", "must NOT have names of more than 5 characters"),
        ({"currentTime": "2022" + " " * 96}, None, None),
        ({"currentTime": "2022" + " " * 97}, "/body/context/currentTime", "must NOT have more than 100 characters"),
    ],
)
def test_a_context_in_a_body(opened: Opener, context: dict[str, Any], pointer: str | None, rule: str | None) -> None:
    """The same limits hold in a body, for each value as text."""
    answer = opened(**SMALL).post("/proxy", {"context": context})
    if rule is None:
        assert answer.status == 200
    else:
        assert problem(answer) == (pointer, rule)


def test_toggles_of_a_look_up(opened: Opener) -> None:
    """Two toggles are answered. Three are refused, and none of them is counted as used."""
    wire = opened(**SMALL)
    assert wire.post("/proxy", {"toggles": ["on", "on"]}).status == 200
    wire.counted()
    answer = wire.post("/proxy", {"toggles": ["on"] * 3})
    assert problem(answer) == ("/body/toggles", "must NOT have more than 2 items")
    assert wire.counted() == {}


@pytest.mark.parametrize("path", ["/proxy", "/proxy/client/metrics", "/proxy/client/register"])
@pytest.mark.parametrize("charset", ["utf-8", "utf-16"])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_of_a_body(opened: Opener, path: str, charset: str, opening: str, closing: str) -> None:
    """Eight levels are read; nine or more are a 400, in every charset, on every route with a body."""
    wire = opened(**SMALL)
    media = {"content-type": f"application/json; charset={charset}"}
    fit = (BODY_BYTES - 50) // (len(opening + closing) * (2 if charset == "utf-16" else 1))
    for levels in (8, 9, fit):
        inner = opening * (levels - 1) + "1" + closing * (levels - 1)
        body = f'{{"b": {inner}}}'.encode(charset)
        assert len(body) <= BODY_BYTES, "a body that is cut off is no JSON, however deep"
        answer = wire.ask("POST", path, media, body=body, key="client-key" if path == "/proxy" else TOKEN)
        if levels > 8:
            assert answer.json()["error"] == "the body is nested too deeply"
            assert problem(answer) == ("/body", "must NOT be nested in more than 8 levels")
        elif path == "/proxy":
            assert answer.status == 200
        else:
            assert problem(answer) == ("/body", "must have required property 'appName'"), "read, and no report"


def test_many_shallow_lists_are_not_deep(opened: Opener) -> None:
    """Only the nesting counts, not the number of lists and objects."""
    body = {"x": [[{}]] * 500, "context": {"a": [1]}}
    assert opened(**SMALL).post("/proxy", body).status == 200


def test_limits_are_counted(opened: Opener) -> None:
    """Each limit is counted under its own label, whatever the caller sent."""
    wire = opened(**SMALL, body_limit=1000, query_limit=100, header_limit=3000)
    wire.get("/proxy?a=1&b=2&c=3&d=4")
    wire.get("/proxy?userId=abcdef")
    wire.get("/proxy?" + "a" * 101)
    wire.get("/proxy", {"x": "y" * 3000})
    wire.post("/proxy", {"toggles": ["on"] * 3})
    wire.post("/proxy", {"x": [[[[[[[[[]]]]]]]]]})
    wire.post("/proxy", b" " * 1001)
    wire.post("/proxy", b"", chunks=[b" " * 1001])
    assert reached(wire) == {
        "context_properties": 1,
        "context_value": 1,
        "query": 1,
        "headers": 1,
        "toggles": 1,
        "json_depth": 1,
        "body": 2,
    }


def test_a_huge_answer_is_counted(opened: Opener) -> None:
    """The refusal of a look-up with a huge answer is counted as a limit too."""
    name = "x" * 40_000
    wire = opened(document={"version": 2, "features": [{"name": name, "enabled": True}]}, body_limit=10**8)
    assert wire.post("/proxy", {"toggles": [name] * 500}).status == 413
    assert reached(wire) == {"answer": 1}
