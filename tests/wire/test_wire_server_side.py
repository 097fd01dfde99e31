"""The server-side API of the proxy, row by row (dialects: Server-side API of the proxy)."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from support.wirekit import KEY, TOKEN, Answer, Opener, Wire

URL = "/api/client/features"
SPEC = {"unleash-client-spec": "5.2.0"}
EU = {"contextName": "region", "operator": "IN", "values": ["eu"]}
BETA = {"contextName": "userId", "operator": "IN", "values": ["7"]}
DOCUMENT: dict[str, Any] = {
    "version": 2,
    "features": [
        {
            "name": "a.one",
            "project": "web",
            "enabled": True,
            "strategies": [{"name": "default", "constraints": [BETA], "segments": [1, 2]}],
        },
        {"name": "a.two", "project": "app", "enabled": False, "strategies": [{"name": "default", "segments": []}]},
        {"name": "b", "enabled": True, "strategies": [{"name": "default", "segments": [9]}, {"name": "default"}]},
    ],
    "segments": [{"id": 1, "name": "eu", "constraints": [EU]}, {"id": 2, "name": "all", "constraints": []}],
    "query": {"environment": "development"},
}
COUNTER = {"name": "sales", "help": "Sales.", "type": "counter", "samples": [{"labels": {"appName": "shop"}, "value": 2}]}


def get(wire: Wire, query: str = "", headers: dict[str, str] | None = None, path: str = URL) -> Answer:
    """Ask with a server-side token."""
    return wire.get(path + query, SPEC if headers is None else headers, key=TOKEN)


def names(answer: Answer) -> list[str]:
    """The names of the features of a document."""
    assert answer.status == 200, answer.body
    return [feature["name"] for feature in answer.json()["features"]]


def test_the_document(opened: Opener) -> None:
    """An SDK that knows segments gets the document as it is; its tag is weak, and no shared cache keeps it."""
    wire = opened(document=DOCUMENT)
    answer = get(wire)
    assert answer.json() == DOCUMENT
    assert str(answer.header("etag")).startswith("W/") and answer.header("cache-control") == "private, no-cache"
    for condition in (
        str(answer.header("etag")),
        str(answer.header("etag")).removeprefix("W/"),
        f'"x", {answer.header("etag")}',
        "*",
    ):
        again = get(wire, "", SPEC | {"if-none-match": condition})
        assert (again.status, again.body, again.header("etag")) == (304, b"", answer.header("etag"))


@pytest.mark.parametrize(
    ("spec", "inlined"),
    [("4.2.0", False), ("6.1.0", False), ("4.1.9", True), ("4.2.0-beta.1", True), ("3.0.0", True), ("", True), (None, True)],
)
def test_segments_as_the_sdk_knows_them(opened: Opener, spec: str | None, inlined: bool) -> None:
    """An SDK below 4.2.0 gets the constraints of segments inside the strategies, under another tag."""
    wire = opened(document=DOCUMENT)
    answer = get(wire, "", {} if spec is None else {"unleash-client-spec": spec})
    if not inlined:
        assert answer.json() == DOCUMENT
        return
    content = answer.json()
    assert "segments" not in content
    assert content["query"] == {"environment": "development", "inlineSegmentConstraints": True}
    first, second, third = (feature["strategies"] for feature in content["features"])
    assert first == [{"name": "default", "constraints": [BETA, EU]}]
    assert second == [{"name": "default"}]
    nobody = {"contextName": "userId", "operator": "IN", "values": []}
    assert third == [{"name": "default", "constraints": [nobody]}, {"name": "default"}]
    assert answer.header("etag") != get(wire).header("etag")
    assert get(wire, "", {"if-none-match": str(answer.header("etag"))}).status == 304


@pytest.mark.parametrize("spec", ["1", "v4.2.0", "4.2", "x", "4.2.0.0"])
def test_a_malformed_version(opened: Opener, spec: str) -> None:
    """It is a 400 that quotes it."""
    answer = get(opened(document=DOCUMENT), "", {"unleash-client-spec": spec})
    assert answer.status == 400 and spec in answer.json()["details"][0]["message"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?project=web", ["a.one", "b"]),
        ("?project=web&project=app", ["a.one", "a.two", "b"]),
        ("?project[]=app", ["a.two", "b"]),
        ("?project=nobody", ["b"]),
        ("?namePrefix=a.", ["a.one", "a.two"]),
        ("?namePrefix=a.&project=app", ["a.two"]),
        ("?environment=production&x=y", ["a.one", "a.two", "b"]),
    ],
)
def test_filters(opened: Opener, query: str, found: list[str]) -> None:
    """Project and prefix select; a feature without a project belongs to any; each filter has its own tag."""
    wire = opened(document=DOCUMENT)
    answer = get(wire, query)
    assert names(answer) == found
    assert (answer.header("etag") == get(wire).header("etag")) == (len(found) == 3 and "project" not in query)
    assert get(wire, query, SPEC | {"if-none-match": str(answer.header("etag"))}).status == 304
    assert get(wire, "?namePrefix=zz", SPEC | {"if-none-match": str(answer.header("etag"))}).status == 200


@pytest.mark.parametrize(
    "query", ["?project=", "?namePrefix=", "?namePrefix=a&namePrefix=b", "?tag=", "?tag=bad", "?project=a%20b"]
)
def test_malformed_filters(opened: Opener, query: str) -> None:
    """The answer is a 400 with the reason."""
    answer = get(opened(document=DOCUMENT), query)
    assert answer.status == 400
    assert (answer.json()["name"], len(answer.json()["details"]) >= 1) == ("BadDataError", True)


def test_tags(opened: Opener) -> None:
    """The proxy does not know the tags of features: only a filter that contains its own tags is answered."""
    tagged = opened(document=DOCUMENT, tags=(("team", "web"),))
    assert names(get(tagged, "?tag=team:web")) == ["a.one", "a.two", "b"]
    assert names(get(tagged, "?tag[]=team:web&tag[]=team:app")) == ["a.one", "a.two", "b"]
    for wire in (tagged, opened(document=DOCUMENT)):
        answer = get(wire, "?tag=team:app")
        assert answer.status == 400 and "FLAGSVC_TAGS" in answer.json()["details"][0]["message"]


def test_documents_follow_the_configuration(opened: Opener) -> None:
    """A filtered document is made of the served one, also after a change, with its compressed form."""
    wire = opened(document=DOCUMENT)
    first = get(wire, "?project=app")
    many = [{"name": f"c{number}", "project": "app", "enabled": True, "strategies": []} for number in range(100)]
    wire.serve({"version": 2, "features": many})
    assert len(names(get(wire, "?project=app"))) == 100
    assert wire.holder.document is not None
    packed = get(wire, "?project=app", SPEC | {"accept-encoding": "gzip"})
    assert packed.header("content-encoding") == "gzip" and len(gzip.decompress(packed.body)) > 2000
    for number in range(50):
        assert names(get(wire, f"?namePrefix=c{number}&project=app"))[0] == f"c{number}"
    assert names(first) == ["a.two", "b"]


@pytest.mark.parametrize("name", ["a.one", "a%2Eone", "a.one/"])
def test_one_feature(opened: Opener, name: str) -> None:
    """It is the bare feature with the constraints of its segments."""
    wire = opened(document=DOCUMENT)
    answer = get(wire, path=f"{URL}/{name}")
    assert answer.json() == {**DOCUMENT["features"][0], "strategies": [{"name": "default", "constraints": [BETA, EU]}]}
    assert get(wire, "", {"if-none-match": str(answer.header("etag"))}, f"{URL}/{name}").status == 304
    unknown = get(wire, path=f"{URL}/nobody")
    assert (unknown.status, unknown.json()) == (404, {"message": "Could not find feature flag nobody"})


def test_validation_of_keys(opened: Opener) -> None:
    """Known keys are described, unknown ones are left out; no key is needed to ask."""
    own, dotted, several = "web:production.secret", "my.app:production.secret", "[]:production.secret"
    wire = opened(document=DOCUMENT, client_keys=(KEY, own, dotted, several), upstream_environment="development")
    tokens = [KEY, "nobody", own, dotted, several, TOKEN, KEY, ""]
    answer = wire.post("/edge/validate", {"tokens": tokens}, key=None)
    assert answer.status == 200 and answer.header("cache-control") == "no-store"
    assert answer.json() == {
        "tokens": [
            {"token": KEY, "type": "frontend", "projects": ["*"], "environment": "development"},
            {"token": own, "type": "frontend", "projects": ["web"], "environment": "production"},
            {"token": dotted, "type": "frontend", "projects": ["my.app"], "environment": "production"},
            {"token": several, "type": "frontend", "projects": ["*"], "environment": "production"},
            {"token": TOKEN, "type": "client", "projects": ["*"], "environment": "development"},
        ]
    }
    refused: list[Any] = [{}, {"tokens": "x"}, [], {"tokens": [str(number) for number in range(101)]}]
    for wrong in refused:
        assert wire.post("/edge/validate", wrong, key=None).status == 400


def test_guessing_counts_for_the_rate_of_an_address(opened: Opener) -> None:
    """Whoever asks for keys without one is limited like whoever tries them."""
    wire = opened(document=DOCUMENT, rate_limit_address=1, rate_limit_burst=2)
    assert [wire.post("/edge/validate", {"tokens": []}, key=None).status for _ in range(3)] == [200, 200, 429]


def test_impact_metrics_in_bulk(opened: Opener) -> None:
    """They name no application, so they are the proxy's own."""
    wire = opened(document=DOCUMENT)
    body: dict[str, Any] = {"applications": [], "metrics": [], "impactMetrics": [COUNTER]}
    assert wire.post("/api/client/metrics/bulk", body, key=TOKEN).status == 202
    own = wire.usage.drain()
    assert own is not None and wire.usage.drain_sources() == []
    assert {key.name: series.samples for key, series in own.impact.items()} == {"sales": {(("appName", "shop"),): [2.0]}}
