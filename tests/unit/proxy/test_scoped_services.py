"""The services for tokens of some projects: how many there are, which of them end, and what counts for the environment."""

from __future__ import annotations

from random import Random

import pytest

from flagsvc.engine.compile import compile_document
from flagsvc.http.messages import Request, Response
from flagsvc.proxy.api import scopes
from flagsvc.proxy.api.metrics import readings
from flagsvc.proxy.api.scopes import ScopedHolder, ScopedServices
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.generations.environment import make_counters
from flagsvc.proxy.generations.setup import make_setup
from support.apps_options import options
from support.evaluating import feature

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
