"""The part of an environment that a token for some projects opens: it follows the environment."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.proxy.api.cache import AnswerCache, CachedAnswer
from flagsvc.proxy.api.scopes import ScopedHolder
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from support.evaluating import feature, toggles

FEATURES = [feature("a", project="p"), feature("b", project="q"), feature("c"), feature("d", project=7)]


def serve(holder: Holder, *features: Any, **more: Any) -> None:
    content = {"version": 2, "features": list(features), **more}
    body = json.dumps(content).encode()
    holder.replace(compile_document(content, CompileOptions()).snapshot, ConfigurationDocument(body, f'"{hash(body)}"'), 3)


@pytest.fixture(name="whole")
def _whole() -> Holder:
    """Return the holder of an environment with a configuration."""
    holder = Holder()
    serve(holder, *FEATURES, query={"environment": "production", "project": ["x"]}, segments=[])
    return holder


def names(holder: ScopedHolder) -> list[str]:
    assert holder.document is not None
    return [each["name"] for each in json.loads(holder.document.body)["features"]]


def test_before_the_first_configuration() -> None:
    """There is neither a snapshot nor a document, and then there are both."""
    holder = Holder()
    part = ScopedHolder(holder, frozenset("p"))
    assert part.current is None and part.document is None
    serve(holder, *FEATURES)
    assert part.current is not None and names(part) == ["a", "c", "d"]  # type: ignore[unreachable]


def test_toggles_and_document_of_a_project(whole: Holder) -> None:
    """Both have the features of the project, and those without one; everything else in the document stays."""
    part = ScopedHolder(whole, frozenset("p"))
    assert part.current is not None and part.document is not None
    assert list(part.current.names) == names(part) == ["a", "c", "d"]
    assert list(toggles(part.current.enabled(Context()))) == ["a", "c", "d"]
    content = json.loads(part.document.body)
    assert content | {"features": []} == {
        "version": 2,
        "features": [],
        "segments": [],
        "query": {"environment": "production", "project": ["p"]},
    }


def test_nothing_is_made_twice(whole: Holder) -> None:
    """Until the configuration changes, each request gets the same snapshot and the same document."""
    part = ScopedHolder(whole, frozenset("p"))
    assert part.current is part.current and part.document is part.document
    before = part.current, part.document
    serve(whole, *FEATURES[:2])
    assert part.current is not before[0] and part.document is not before[1]


def test_nothing_of_a_former_configuration_is_kept(whole: Holder) -> None:
    """A part that is not asked for any more keeps no memory of what is served no longer, and no answers from it."""
    part = ScopedHolder(whole, frozenset("p"))
    part.cache = AnswerCache(100_000)
    for _ in range(2):
        part.cache.add_repeated(b"key", CachedAnswer(b"tag", b"body", []))
    former = whole.current, part.current, whole.document, part.document
    assert part.cache.size > 0
    serve(whole, *FEATURES[:2])
    assert part.cache.size == 0
    assert not [each for each in gc.get_referents(part.__dict__) if any(each is one for one in former)]
    assert part.current is not None and list(part.current.names) == names(part) == ["a"]


def test_a_part_that_is_forgotten(whole: Holder) -> None:
    """The environment does not keep it."""
    ScopedHolder(whole, frozenset("p"))
    gc.collect()
    assert len(whole.parts) == 0


def test_tags_of_documents(whole: Holder) -> None:
    """The document of a part has a tag of its own, which changes with what is in the part."""
    parts = [ScopedHolder(whole, frozenset(each)) for each in ("p", "q", "r", "pr")]
    tags = {part.document.etag for part in parts if part.document is not None and whole.document is not None}
    assert whole.document is not None and len({*tags, whole.document.etag}) == 5
    first = parts[0].document
    serve(whole, feature("a", project="p"), feature("b", project="q", stale=True), feature("c"))
    other = parts[0].document
    assert first is not None and other is not None and first.etag != other.etag
    serve(whole, feature("a", project="p"), feature("b", project="q"), feature("c"))
    assert parts[0].document is not None and parts[0].document.etag == other.etag, "what is hidden has not changed it"


def test_a_document_with_only_the_projects(whole: Holder) -> None:
    """It is passed on byte for byte."""
    serve(whole, feature("a", project="p"), feature("c"), query={"environment": "production"})
    part = ScopedHolder(whole, frozenset("p"))
    assert whole.document is not None and part.document is not None and part.document.body == whole.document.body


@pytest.mark.parametrize("query", [None, 7, [], "x"])
def test_a_query_of_another_form(whole: Holder, query: object) -> None:
    """A value that is no object stays."""
    serve(whole, *FEATURES, query=query)
    part = ScopedHolder(whole, frozenset("p"))
    assert part.document is not None and json.loads(part.document.body)["query"] == query
