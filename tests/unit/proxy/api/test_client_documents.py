"""Documents for server-side SDKs, made of the served one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api import client_documents
from flagsvc.proxy.api.client_documents import MAX_KEPT, ClientDocuments, DocumentFilter, find_feature, make_body
from flagsvc.proxy.configuration.holder import ConfigurationDocument

EU = {"contextName": "region", "operator": "IN", "values": ["eu"]}
DOCUMENT = {"features": [{"name": "a", "project": "web"}, {"name": "b", "strategies": [{"name": "default"}]}]}


def served(document: object = DOCUMENT, tag: str = '"t"') -> ConfigurationDocument:
    return ConfigurationDocument(json.dumps(document).encode(), tag)


ODD: tuple[Any, ...] = (None, 0, 5, "", "text", True, {}, {"odd": 1}, [], [EU], [None], [1], ["1"], [1.0], [True], [9])
"""Values in the place of segments, and of constraints."""


@pytest.mark.parametrize("segments", ODD)
@pytest.mark.parametrize("constraints", ODD)
def test_a_document_with_inlined_segments_means_the_same(segments: object, constraints: object) -> None:
    """An SDK that knows no segments gives the flag to no user whom odd segments or constraints leave out."""
    strategy = {"name": "default", "segments": segments, "constraints": constraints}
    listed = {"name": "default", "segments": [1], "constraints": []}
    document = {
        "features": [{"name": str(at), "enabled": True, "strategies": [each]} for at, each in enumerate((strategy, listed))],
        "segments": [{"id": 1, "constraints": constraints}],
    }
    inlined = json.loads(make_body(json.dumps(document).encode(), DocumentFilter(inline=True)))
    assert "segments" not in json.dumps(inlined["features"])
    plain, made = (compile_document(each, CompileOptions()).snapshot for each in (document, inlined))
    for region in ("eu", "us"):
        context = Context(properties={"region": region})
        assert [made.decide(context, name) for name in "01"] == [plain.decide(context, name) for name in "01"]


def test_a_number_as_a_name() -> None:
    """It is found by its text, and a prefix leaves it out."""
    body = json.dumps({"features": [{"name": 12}, {"name": "a"}]}).encode()
    assert find_feature(body, "12") == b'{"name": 12}'
    assert json.loads(make_body(body, DocumentFilter((), "a")))["features"] == [{"name": "a"}]


@pytest.mark.parametrize(
    "document",
    [
        {"features": [{"name": "a\ud800", "strategies": [7, {"segments": [[1], None]}]}], "segments": 7, "query": 7},
        {"features": 7},
        {"features": [7, {"name": "a", "strategies": {"segments": 1}}], "segments": [7, {}]},
        {},
    ],
)
def test_what_is_malformed_is_passed_on(document: dict[str, Any]) -> None:
    """Nothing is lost of what no filter leaves out, and nothing raises."""
    for wanted in (DocumentFilter(inline=True), DocumentFilter((), "zz"), DocumentFilter(("p",))):
        content = json.loads(make_body(served(document).body, wanted))
        assert isinstance(content["features"], list)
    assert find_feature(served(document).body, "nobody") is None
    with_mark = b"\xef\xbb\xbf" + served(document).body
    assert json.loads(make_body(with_mark, DocumentFilter(inline=True)))["query"]["inlineSegmentConstraints"]


def test_documents_are_kept_until_another_is_served() -> None:
    """The same filter gives the same document; its tag is weak, and different for each filter and each served document."""
    documents, one, two = ClientDocuments(), served(), served(tag='W/"u"')
    whole, web = documents.find(one, DocumentFilter()), documents.find(one, DocumentFilter(("web",)))
    assert documents.find(one, DocumentFilter(("web",))) is web
    assert (whole.tag, whole.body) == (b'W/"t"', one.body)
    assert web.tag.startswith(b'W/"t-') and web.tag != documents.find(one, DocumentFilter(("app",))).tag
    assert documents.find(two, DocumentFilter(("web",))).tag.startswith(b'W/"u-')
    for number in range(3 * MAX_KEPT):
        documents.find(two, DocumentFilter((), str(number)))
        assert len(documents.kept) <= MAX_KEPT


def test_kept_documents_have_a_bound_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above it, all are dropped before a further document is made: prefixes of callers could keep the document many times."""
    monkeypatch.setattr(client_documents, "MAX_BYTES", 2 * len(served().body))
    documents, now = ClientDocuments(), served()
    for number in range(6):
        documents.find(now, DocumentFilter((f"p{number}",)))
        assert sum(len(each.body) for each in documents.kept.values()) <= 4 * len(now.body)
    assert len(documents.kept) < 6


def test_inlined_segments_have_a_bound_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short list of references to a long segment makes no huge document."""
    monkeypatch.setattr(client_documents, "MAX_INLINED", 1_000_000)
    segment = {"id": 1, "constraints": [EU] * 1_000}
    few, many = ({"name": "a", "strategies": [{"name": "default", "segments": [1] * count}]} for count in (10, 10_000))
    found = json.loads(make_body(served({"features": [few], "segments": [segment]}).body, DocumentFilter(inline=True)))
    assert len(found["features"][0]["strategies"][0]["constraints"]) == 10_000
    body = served({"features": [many], "segments": [segment]}).body
    with pytest.raises(HttpError, match="too large"):
        make_body(body, DocumentFilter(inline=True))
    with pytest.raises(HttpError, match="too large"):
        find_feature(body, "a")
