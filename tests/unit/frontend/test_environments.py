"""The snapshots behind the frontend API: compiled once for each change, for all who ask, and few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from flagsvc.core.errors import DatabaseError
from flagsvc.engine.snapshot import Snapshot
from flagsvc.frontend import contract
from flagsvc.frontend.contract import FrontendEnvironments
from flagsvc.proxy.api.scopes import ScopedHolder
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.configuration.prepare import PreparedDocument, Preparer
from flagsvc.proxy.usage import UsageCounters
from flagsvc.server.store.actors import ClientToken
from flagsvc.server.store.documents import ClientDocument, DocumentQuery
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import until
from unit.http.test_streams import open_stream

EVERYTHING = ("*",)


class FakeDocuments:
    """Documents with one flag, whose name is `flag`. `stale` tells that none is cached, and `failures` how many reads fail."""

    def __init__(self) -> None:
        self.flag = "first"
        self.stale = False
        self.asked: list[str] = []
        self.failures = 0

    def get_cached(self, query: DocumentQuery) -> ClientDocument | None:
        """Return the document, unless it is stale."""
        return None if self.stale else self._make()

    def get(self, query: DocumentQuery) -> ClientDocument:
        self.asked.append(query.environment)
        if self.failures:
            self.failures -= 1
            raise DatabaseError("the database is away")
        return self._make()

    def _make(self) -> ClientDocument:
        body = f'{{"version":2,"features":[{{"name":"{self.flag}","enabled":true,"strategies":[]}}]}}'.encode()
        return ClientDocument(body, None, self.flag, self.flag.encode(), 1)


class CountingPreparer(Preparer):
    """Counts what it compiles."""

    made = 0

    async def __call__(self, body: bytes, previous: Snapshot | None) -> PreparedDocument:
        """Count, let others run, and compile."""
        CountingPreparer.made += 1
        await asyncio.sleep(0)
        return await super().__call__(body, previous)


class Scene:
    """Environments over documents of the test. `holders` are the holders of the services that were made."""

    def __init__(self, readers: ThreadPoolExecutor) -> None:
        self.documents = FakeDocuments()
        self.holders: list[Any] = []
        self.environments = FrontendEnvironments(self.documents, readers, self._make)  # type: ignore[arg-type]

    def _make(self, environment: str, holder: Holder | ScopedHolder) -> Service:
        self.holders.append(holder)
        clock = FakeClock()
        counters = UsageCounters(dict, clock.now)
        return Service(ServiceSettings(client_keys=()), holder=holder, usage=counters, log=RecordingLog(), clock=clock)

    def names(self, service: Service) -> list[str]:
        """Return the names of the flags that a service evaluates."""
        return [] if service.holder.current is None else list(service.holder.current.names)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """Give environments, with a preparer that counts."""
    monkeypatch.setattr(contract, "Preparer", CountingPreparer)
    CountingPreparer.made = 0
    with ThreadPoolExecutor(2) as readers:
        yield Scene(readers)


def token(environment: str = "development", projects: tuple[str, ...] = EVERYTHING) -> ClientToken:
    return ClientToken("frontend", environment, projects)


async def test_a_change_is_compiled_once_for_all(scene: Scene) -> None:
    """All tokens of an environment share its snapshot. Tokens of equal projects share a service, too."""
    assert scene.environments.find_current(token()) is None, "nothing is compiled yet"
    asking = (scene.environments.find(token(projects=each)) for each in (EVERYTHING, ("a",), ("b", "a"), EVERYTHING))
    found = await asyncio.gather(*asking)
    assert CountingPreparer.made == 1
    assert await scene.environments.find(token(projects=("a", "b"))) is found[2]
    assert found[0] is found[3] is scene.environments.find_current(token())
    assert [scene.names(each) for each in found] == [["first"]] * 4
    scene.documents.stale = True
    assert scene.environments.find_current(token()) is None, "a change was committed"
    assert await scene.environments.find(token()) is found[0]
    assert CountingPreparer.made == 1, "the change does not concern this document"
    scene.documents.stale, scene.documents.flag = False, "second"
    assert scene.environments.find_current(token()) is None
    assert scene.names(await scene.environments.find(token())) == ["second"]
    assert scene.names(found[1]) == ["second"], "a part follows"
    assert CountingPreparer.made == 2


async def test_few_environments_are_kept(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound, the environment ends that was asked for least recently, with the services of its projects."""
    monkeypatch.setattr(contract, "MAX_ENVIRONMENTS", 2)
    first = await scene.environments.find(token("one", ("a",)))
    kept = await scene.environments.find(token("two"))
    await scene.environments.find(token("one"))
    await scene.environments.find(token("two"))
    await scene.environments.find(token("three"))
    assert scene.environments.find_current(token("two")) is kept
    again = await scene.environments.find(token("one", ("a",)))
    assert again is not first and scene.names(again) == ["first"]


async def test_an_environment_that_ends_while_it_is_compiled(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for it gets the environment that takes its place, so no service answers that hears of no change."""
    monkeypatch.setattr(contract, "MAX_ENVIRONMENTS", 1)
    waiting, other = (asyncio.ensure_future(scene.environments.find(token(each))) for each in ("one", "two"))
    await asyncio.sleep(0)
    assert scene.environments.find_current(token("one")) is None, "the other has ended it"
    other.cancel()
    found = await waiting
    assert scene.environments.find_current(token("one")) is found and scene.names(found) == ["first"]
    assert len(scene.holders) == 3


async def test_callers_with_streams_hear_of_a_commit(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is compiled without being asked, and tried again while the database is away. Without streams nothing is."""
    monkeypatch.setattr(contract, "RETRY_S", 0.01)
    streamed = await scene.environments.find(token("one"))
    await scene.environments.find(token("two"))
    caller = open_stream(streamed.stream.hints)
    scene.documents.flag, scene.documents.failures = "second", 3
    asked = len(scene.documents.asked)
    scene.environments.note_commit()
    scene.environments.note_commit()
    await until(lambda: len(caller.sent) == 2)
    assert scene.names(streamed) == ["second"] and set(scene.documents.asked[asked:]) == {"one"}
    assert len(scene.documents.asked) == asked + 4, "one read after the other"


async def test_a_request_waits_for_a_commit_that_its_caller_has_heard_of(scene: Scene) -> None:
    """A version that another server has told is awaited: the commit is compiled when this server hears of it."""
    service = await scene.environments.find(token())
    hints = service.stream.hints
    waiting = asyncio.ensure_future(hints.catch_up("0123456789abcdef"))
    await until(lambda: hints.waiting == 1)
    scene.documents.flag = "second"
    scene.environments.note_commit()
    await until(lambda: scene.names(service) == ["second"])
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert hints.waiting == 0


async def test_an_environment_with_streams_is_kept(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound, an environment ends that no caller follows; where callers follow all, their streams end."""
    monkeypatch.setattr(contract, "MAX_ENVIRONMENTS", 2)
    callers = [open_stream((await scene.environments.find(token("one"))).stream.hints)]
    await scene.environments.find(token("two"))
    callers.append(open_stream((await scene.environments.find(token("three"))).stream.hints))
    assert not any(each.ended for each in callers) and scene.environments.find_current(token("one")) is not None
    await scene.environments.find(token("four"))
    assert [each.ended for each in callers] == [False, True], "three was asked for before one"
