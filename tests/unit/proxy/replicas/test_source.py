"""The source of a replica's documents: who polls the upstream, what a follower gets, and when there is news."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.replicas import FleetSource, ReplicaRole
from flagsvc.proxy.replicas.configurations import Configurations
from flagsvc.proxy.upstream import Fetched
from flagsvc.testing import FakeClock, FakeSource, turns
from support.aio import asynchronous

ONE, TWO = StoredDocument(b"one", '"1"'), StoredDocument(b"two", '"2"')


class FakeFleet:
    """A fleet without changes. The test sets `follows` and its knowledge; `checks` records its calls."""

    def __init__(self, role: ReplicaRole) -> None:
        self.role = role
        self.configurations = Configurations()
        self.news = asyncio.Event()
        self.decided = asyncio.Event()
        self.failing = ""
        self.as_of: float | None = 2.5
        self.checks: list[tuple[str, bool]] = []
        self.turn = asyncio.Event()
        self.turn.set()

    @property
    def follows(self) -> bool:
        """Whether it is a follower's."""
        return self.role is ReplicaRole.FOLLOWER

    def age(self) -> float | None:
        """Return how old the knowledge is."""
        return self.as_of

    async def wait_to_ask(self) -> None:
        """Wait for the turn."""
        await self.turn.wait()

    def note_check(self, failing: str, *, known: bool = False) -> None:
        """Note a check."""
        self.checks.append((failing, known))


class Scene:
    """A source with a fleet, a clock and an upstream."""

    def __init__(self, role: ReplicaRole, *script: object) -> None:
        self.fleet = FakeFleet(role)
        self.fleet.decided.set()
        self.clock = FakeClock()
        self.upstream = FakeSource(*(script or (b"fetched",)))  # type: ignore[arg-type]
        self.source = FleetSource(self.upstream, self.fleet, self.clock, 2.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("role", [ReplicaRole.ALONE, ReplicaRole.LEADER])
@asynchronous
async def test_who_asks_the_upstream(role: ReplicaRole) -> None:
    """A replica that leads or is alone polls the upstream.

    It tells the fleet, with whether the poll returned the served document.
    """
    scene = Scene(role)
    fetched = await scene.source.fetch('"tag"')
    assert fetched.body == b"fetched" and scene.upstream.etags == ['"tag"']
    await scene.source.fetch(fetched.etag)
    scene.fleet.configurations.accept(StoredDocument(b"fetched", None))
    await scene.source.fetch(None)
    assert scene.fleet.checks == [("", False), ("", True), ("", True)]
    assert scene.source.pace is None


@asynchronous
async def test_an_upstream_that_fails() -> None:
    """The fleet gets the kind of the error, and the poller gets the error."""
    scene = Scene(ReplicaRole.LEADER, UpstreamError("throttled", "slowly", status=429, retry_after=5.0))
    with pytest.raises(UpstreamError, match="slowly"):
        await scene.source.fetch(None)
    assert scene.fleet.checks == [("throttled", False)]


@asynchronous
async def test_a_follower_is_given_what_the_fleet_has() -> None:
    """The newest there is, with the age of the leader's knowledge; the upstream is not asked."""
    scene = Scene(ReplicaRole.FOLLOWER)
    scene.fleet.configurations.accept(ONE)
    assert await scene.source.fetch(None) == Fetched(b"one", '"1"', 2.5)
    scene.fleet.configurations.offer(TWO, "digest")
    scene.fleet.news.set()
    assert await scene.source.fetch('"1"') == Fetched(b"two", '"2"', 2.5)
    assert scene.upstream.etags == [] and scene.fleet.checks == []


@asynchronous
async def test_a_follower_that_asks_before_there_is_news() -> None:
    """It waits briefly for the leader's next poll, which is due too. Its configuration does not become older by that."""
    scene = Scene(ReplicaRole.FOLLOWER)
    scene.fleet.configurations.accept(ONE)
    await scene.source.fetch(None)
    fetching = asyncio.create_task(scene.source.fetch('"1"'))
    await turns()
    assert not fetching.done()
    scene.fleet.news.set()
    assert (await fetching).body == b"one" and not scene.fleet.news.is_set()
    fetching = asyncio.create_task(scene.source.fetch('"1"'))
    await turns()
    await scene.clock.advance(2.0)
    assert (await fetching).body == b"one"


@asynchronous
async def test_a_follower_of_one_that_fails() -> None:
    """It meets the error that its leader met."""
    scene = Scene(ReplicaRole.FOLLOWER)
    scene.fleet.configurations.accept(ONE)
    scene.fleet.failing = "unauthorized"
    with pytest.raises(UpstreamError, match="the replica that polls for the fleet") as caught:
        await scene.source.fetch(None)
    assert caught.value.kind == "unauthorized"


@asynchronous
async def test_a_follower_that_has_nothing_yet() -> None:
    """It waits for the leader's first document, and not for ever."""
    scene = Scene(ReplicaRole.FOLLOWER)
    fetching = asyncio.create_task(scene.source.fetch(None))
    await turns()
    scene.fleet.configurations.offer(ONE, "digest")
    scene.fleet.news.set()
    assert (await fetching).body == b"one"
    scene.fleet.as_of = None
    fetching = asyncio.create_task(scene.source.fetch(None))
    await turns()
    await scene.clock.advance(2.0)
    with pytest.raises(UpstreamError, match="no configuration yet"):
        await fetching


@asynchronous
async def test_a_follower_that_becomes_the_leader_while_it_waits() -> None:
    """It asks the upstream."""
    scene = Scene(ReplicaRole.FOLLOWER)
    fetching = asyncio.create_task(scene.source.fetch(None))
    await turns()
    scene.fleet.role = ReplicaRole.LEADER
    scene.fleet.news.set()
    assert (await fetching).body == b"fetched"


@asynchronous
async def test_one_that_is_taken_back_before_its_turn() -> None:
    """A replica that waits alone for its moment to ask, and finds the fleet again, does not ask."""
    scene = Scene(ReplicaRole.ALONE)
    scene.fleet.configurations.accept(ONE)
    scene.fleet.turn.clear()
    fetching = asyncio.create_task(scene.source.fetch(None))
    await turns()
    scene.fleet.role = ReplicaRole.FOLLOWER
    scene.fleet.turn.set()
    assert (await fetching).body == b"one" and scene.upstream.etags == []


@asynchronous
async def test_the_start_waits_for_the_fleet() -> None:
    """It is known in a moment who asks; a server that hangs holds the start up for as long as one question may take."""
    scene = Scene(ReplicaRole.ALONE)
    scene.fleet.decided.clear()
    fetching = asyncio.create_task(scene.source.fetch(None))
    await turns()
    assert scene.upstream.etags == []
    await scene.clock.advance(2.0)
    assert (await fetching).body == b"fetched"


class Announcing(FakeSource):
    """A source that announces news when the test says so."""

    def __init__(self) -> None:
        super().__init__(b"fetched")
        self.told = asyncio.Event()

    async def news(self) -> None:
        """Return when there is news."""
        await self.told.wait()


@pytest.mark.parametrize(
    ("role", "heard"), [(ReplicaRole.LEADER, True), (ReplicaRole.ALONE, True), (ReplicaRole.FOLLOWER, False)]
)
@asynchronous
async def test_news_of_the_upstream(role: ReplicaRole, heard: bool) -> None:
    """They count for the replica that asks it; the fleet's count for all."""
    scene, inner = Scene(role), Announcing()
    inner.told.set()
    source = FleetSource(inner, scene.fleet, scene.clock, 2.0)  # type: ignore[arg-type]
    waiting = asyncio.create_task(source.news())
    await turns()
    assert waiting.done() is heard
    scene.fleet.news.set()
    await waiting
    await source.fetch(None) if heard else None
    assert not scene.fleet.news.is_set() or not heard
