"""The part of an environment that a token for some projects opens: it follows the environment.

The services for such tokens: how many there are, which of them end, and what counts for the environment.
"""

from __future__ import annotations

import gc
import json
from random import Random
from typing import Any

import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.http.messages import Request, Response
from flagsvc.proxy.api import scopes
from flagsvc.proxy.api.cache import AnswerCache, CachedAnswer
from flagsvc.proxy.api.metrics import readings
from flagsvc.proxy.api.scopes import ScopedHolder, ScopedServices
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.generations.environment import make_counters
from flagsvc.proxy.generations.setup import make_setup
from support.apps_options import options
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


MOST = 3
DOCUMENT = {"features": [feature(f"of-{name}", project=name) for name in "abcdef"]}


class Whole:
    """An environment with a configuration. Its key is `key`, also for each of its parts."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.setup = make_setup(options(client_keys="key"))
        self.holder = Holder()
        snapshot = compile_document(DOCUMENT, self.setup.compile_options).snapshot
        self.holder.replace(snapshot, ConfigurationDocument(b"{}", '"v1"'), 0)
        self.service = self.make(self.holder)

    def make(self, holder: Holder | ScopedHolder) -> Service:
        """Return a service that answers from this holder."""
        setup, counters = self.setup, make_counters(self.setup, self.holder)
        given = setup.service_settings
        return Service(given, holder=holder, usage=counters, log=setup.log, clock=setup.clock, random=Random(1))


class Scene:
    """Services for parts of two environments. `ended` has those that ended."""

    def __init__(self) -> None:
        self.whole, self.other = Whole(1), Whole(2)
        self.ended: list[Service] = []
        self.scoped: ScopedServices[Whole] = ScopedServices(lambda whole, part: whole.make(part), self.ended.append)

    def find(self, project: str, whole: Whole | None = None) -> Service:
        return self.scoped.find(whole or self.whole, frozenset(project))

    def count(self, sample: str) -> float:
        return readings(self.whole.service.sources)[(sample,)]


@pytest.fixture(name="scene")
def _scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Return services of which there are at most three."""
    monkeypatch.setattr(scopes, "MAX_SCOPED", MOST)
    return Scene()


async def ask(service: Service) -> bytes:
    """Return the body of an answer with all flags that are on for someone."""
    call = service.admit(Request(b"GET", b"/proxy", b"userId=7", [(b"authorization", b"key")], peer="192.0.2.1"))
    assert not isinstance(call, Response)
    answer = service.answer(call, b"")
    return answer.body if isinstance(answer, Response) else (await answer).body


async def test_at_most_so_many(scene: Scene) -> None:
    """For one more service, the oldest service without a recent request ends. It is made again when it is needed."""
    a, b, c = (scene.find(each) for each in "abc")
    assert b"of-a" in await ask(a)
    scene.find("d")
    assert scene.ended == [b] and scene.find("a") is a
    assert b"of-a" in await ask(a)
    assert scene.find("b") is not b and scene.ended == [b, c]


async def test_all_are_used(scene: Scene) -> None:
    """The oldest one ends, and still answers the requests that it has."""
    services = [scene.find(each) for each in "abc"]
    for each in services:
        await ask(each)
    scene.find("d")
    assert scene.ended == services[:1] and len(list(scene.scoped)) == MOST
    assert b"of-a" in await ask(services[0])


def test_an_environment_that_is_gone(scene: Scene) -> None:
    """Its services are forgotten, and another environment of its name gets its own."""
    of_one, of_other = scene.find("a"), scene.find("a", scene.other)
    scene.scoped.keep([scene.other])
    assert list(scene.scoped) == [of_other]
    assert scene.find("a", Whole(3)) is not of_one


async def test_look_ups_in_their_caches_count(scene: Scene) -> None:
    """They are in the metrics of the environment, and stay there when a service ends."""
    a = scene.find("a")
    for service in (a, a, a, a, scene.find("b"), scene.whole.service):
        await ask(service)
    cached = ("flagsvc_answer_cache_hits", "flagsvc_answer_cache_misses", "flagsvc_answer_cache_bytes")
    before = [scene.count(name) for name in cached]
    assert before[:2] == [2, 4] and before[2] == a.sources.cache.size > 0
    for name in "cdef":
        scene.find(name)
    assert a in scene.ended and [scene.count(name) for name in cached] == [2, 4, 0]
