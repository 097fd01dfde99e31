"""A replica that gets false information: a leader that is gone, a configuration that cannot be read, an old configuration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from flagsvc.core.errors import StoreError, UpstreamError
from flagsvc.proxy.configuration import State
from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.replicas import Access, Client, Coordinator, Fleet, LocalState, ReplicaRole
from flagsvc.proxy.replicas.checks import FAILURES
from flagsvc.proxy.replicas.heartbeat import Heartbeat, digest_in
from flagsvc.proxy.replicas.schedule import HEARTBEATS, POLL_ALONE_AFTER_LEASES, Schedule
from flagsvc.settings.storage import RedisAddress
from flagsvc.testing import FakeClock, RecordingLog, turns
from support.aio import asynchronous, until
from support.fleets import KEY, LEASE_MS, PREFIX, CountedUpstream, Replica, leaders, replicas, served, settled
from support.processes import free_port
from support.redises import RedisServer, redis_server
from support.tiny_engine import document

STORED, LEASE = f"{PREFIX}:store:{KEY}", f"{PREFIX}:lease:{KEY}"
BEHIND_THE_HEAD = 130
HOUR_MS = 3_600_000
LEFT_MS = 3_000
"""The lease of a leader that is killed: it still exists when the test changes it, also on a slow machine."""
LONG_MS = 10_000
KEPT_MS = LONG_MS * 65 // 100
"""What remains of a lease of LONG_MS while a program keeps it: a machine that stalls for seconds does not end the lease.
With more than 68 % left, a replica would think that it missed a heartbeat, and that its subscription is broken.
"""


@asynccontextmanager
async def follower_of_killed_leader(server: RedisServer, upstream: CountedUpstream) -> AsyncIterator[Replica]:
    """Give a follower whose leader was just killed; the upstream has a newer configuration."""
    async with replicas(2, server.port, upstream, refresh_ms=200, lease_ms=LEFT_MS) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        [leader] = leaders(fleet)
        [follower] = [each for each in fleet if each is not leader]
        await leader.die()
        upstream.body = document("two")
        yield follower


def looks(replica: Replica) -> asyncio.Event:
    """Return an event that is set once a replica has looked up the lease's owner and acted on the result."""
    looked, seek = asyncio.Event(), replica.fleet._seek

    async def noted() -> None:
        await seek()
        looked.set()

    replica.fleet._seek = noted  # type: ignore[method-assign]
    return looked


@asynchronous
async def test_a_lease_without_an_end(server: RedisServer, upstream: CountedUpstream) -> None:
    """A dead leader's lease that lost its expiry, as keys do that a tool has copied, gets one again: another replica leads soon."""
    async with follower_of_killed_leader(server, upstream) as follower:
        assert server.ask("PERSIST", LEASE) == 1
        await until(lambda: 0 <= server.ask("PTTL", LEASE) <= LEFT_MS, 20.0)
        assert server.ask("PEXPIRE", LEASE, 1) == 1, "the end that it was given comes at once"
        await until(lambda: follower.role is ReplicaRole.LEADER and follower.serves == ["two"], 20.0)


@asynchronous
async def test_a_lease_that_lasts_too_long(server: RedisServer, upstream: CountedUpstream) -> None:
    """A dead leader's lease lasts too long because the server's clock was set back.

    Its last message gets no fresher: the follower polls.
    """
    async with follower_of_killed_leader(server, upstream) as follower:
        assert server.ask("PEXPIRE", LEASE, HOUR_MS) == 1
        follower.holder.checked_at = None
        await looks(follower).wait()
        assert follower.fleet.follows and (follower.fleet.age() or 0.0) > LEFT_MS / 1000 / HEARTBEATS
        follower.clock.ahead += (POLL_ALONE_AFTER_LEASES - 0.25) * LEFT_MS / 1000
        await until(lambda: follower.serves == ["two"] and follower.holder.state is State.FRESH, 20.0)
        assert follower.role is not ReplicaRole.LEADER
        told = follower.fleet.age()
        assert told is not None and told > 2 * LEFT_MS / 1000, "what a dead leader knew is as old as it is"


@asynchronous
async def test_a_follower_without_heartbeats_polls(server: RedisServer, upstream: CountedUpstream) -> None:
    """A program keeps the lease and sends nothing that makes sense: after some lease times the follower polls the upstream."""

    async def somebody() -> None:
        while True:
            await asyncio.to_thread(server.ask, "SET", LEASE, "somebody's", "PX", KEPT_MS)
            await asyncio.sleep(0.05)  # the pace at which the lease is renewed

    server.ask("SET", LEASE, "somebody's", "PX", KEPT_MS)
    keeping = asyncio.ensure_future(somebody())
    try:
        async with replicas(1, server.port, upstream, refresh_ms=100, lease_ms=LONG_MS) as [alone]:
            await until(lambda: alone.role is ReplicaRole.FOLLOWER)
            alone.clock.ahead += (POLL_ALONE_AFTER_LEASES - 1) * LONG_MS / 1000
            await until(lambda: alone.holder.failures)
            assert alone.serves is None and alone.fleet.follows and upstream.polls == []
            alone.clock.ahead += LONG_MS / 1000
            await until(lambda: alone.serves == ["one"], 20.0)
            assert alone.role is ReplicaRole.FOLLOWER and not alone.fleet.follows
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


@asynchronous
async def test_a_newcomer_that_cannot_read_what_is_stored(server: RedisServer, upstream: CountedUpstream) -> None:
    """The leader does not notice that the stored document is damaged behind its head; a new replica polls the upstream first."""
    async with replicas(1, server.port, upstream, lease_ms=LEFT_MS) as [leader]:
        await until(lambda: leader.serves == ["one"] and leader.fleet.published)
        server.ask("SETRANGE", STORED, BEHIND_THE_HEAD, "damaged")
        place = RedisAddress("127.0.0.1", server.port)
        newcomer = Replica("newcomer", place, upstream, refresh_ms=60_000, lease_ms=LEFT_MS)
        newcomer.start()
        try:
            await until(lambda: newcomer.serves == ["one"] and settled([leader, newcomer]), 15.0)
            assert newcomer.holder.state is State.FRESH and upstream.polls == [leader.name, newcomer.name]
        finally:
            await newcomer.stop()


@asynchronous
async def test_a_newcomer_while_server_and_upstream_are_away(upstream: CountedUpstream) -> None:
    """It has nothing to serve.

    It starts with what another replica stores once the server is back, while the upstream is still away.
    """
    port = free_port()
    with redis_server(port=port) as first:
        async with replicas(1, port, upstream, refresh_ms=200) as [old]:
            await until(lambda: old.serves == ["one"] and old.fleet.published)
            upstream.down = UpstreamError("server", "broken", status=503)
            first.kill()
            await until(lambda: old.role is ReplicaRole.ALONE and old.holder.failures)
            newcomer = Replica("newcomer", RedisAddress("127.0.0.1", port), upstream, refresh_ms=200)
            newcomer.start()
            try:
                await until(lambda: newcomer.holder.failures)
                assert newcomer.serves is None
                with redis_server(port=port):
                    await until(lambda: newcomer.serves == ["one"], 10.0)
                    assert newcomer.holder.state is State.RESTORED
            finally:
                await newcomer.stop()


@asynchronous
async def test_a_leader_that_has_nothing(server: RedisServer, upstream: CountedUpstream) -> None:
    """It lets a replica lead that has a configuration to store, even if the upstream would refuse that replica too."""
    upstream.down = UpstreamError("server", "broken", status=503)
    async with replicas(1, server.port, upstream, refresh_ms=100) as [leader]:
        await until(lambda: leader.role is ReplicaRole.LEADER)
        other = Replica("other", RedisAddress("127.0.0.1", server.port), upstream, refresh_ms=100)
        other.fleet.accept(StoredDocument(document("one")))
        other.fleet.start()
        try:
            await until(lambda: leader.serves == ["one"], 10.0)
            assert other.role is ReplicaRole.LEADER and leader.role is ReplicaRole.FOLLOWER
        finally:
            await other.fleet.stop()


@asynchronous
async def test_no_fresher_than_what_was_read(server: RedisServer, upstream: CountedUpstream) -> None:
    """A follower that cannot read the configuration that its leader checked does not count that check for its own freshness."""
    replica = Replica("one", RedisAddress("127.0.0.1", server.port), upstream, refresh_ms=60_000)
    server.ask("SET", STORED, "flagsvc-store 1 5 digest\ncut")
    try:
        with pytest.raises(StoreError, match="not whole"):
            await replica.fleet._follow(Heartbeat("another", 1, "digest", age_s=0.0), 0.0)
        assert replica.fleet.age() is None
    finally:
        await replica.stop()


@asynchronous
async def test_an_older_configuration_is_not_taken(server: RedisServer, upstream: CountedUpstream) -> None:
    """A replica that polled the upstream long after the leader waits for the leader's next check, and takes its result."""
    replica = Replica("one", RedisAddress("127.0.0.1", server.port), upstream, refresh_ms=60_000)
    await replica.store.set(KEY, StoredDocument(document("old")).pack())
    digest = digest_in(server.ask("GET", STORED))
    replica.holder.checked_at = replica.clock.monotonic()
    try:
        await replica.fleet._follow(Heartbeat("another", 1, digest, age_s=60.0), 0.0)
        assert replica.fleet.configurations.offered is None
        await replica.fleet._follow(Heartbeat("another", 2, digest, age_s=0.0), 0.0)
        assert replica.fleet.configurations.offered == StoredDocument(document("old"))
    finally:
        await replica.stop()


@asynchronous
async def test_two_leaders(server: RedisServer, upstream: CountedUpstream) -> None:
    """A leader that hears another leader looks up at once which of them has the lease, before its own next heartbeat."""
    async with replicas(1, server.port, upstream, lease_ms=HOUR_MS) as [sleeper]:
        await until(lambda: sleeper.serves == ["one"] and sleeper.fleet.published)
        other = Heartbeat("another", 1, age_s=0.0).pack()
        server.ask("SET", LEASE, b"another " + other, "PX", HOUR_MS)
        assert server.ask("PUBLISH", f"{PREFIX}:news:{KEY}", other) == 1
        await until(lambda: sleeper.role is ReplicaRole.FOLLOWER)
        assert upstream.polls == [sleeper.name]


@asynchronous
async def test_a_late_write_confirms_nothing(server: RedisServer, upstream: CountedUpstream) -> None:
    """A leader that serves from storage only does not announce its configuration because another write was late."""
    async with replicas(1, server.port, upstream) as [first]:
        await until(lambda: first.serves == ["one"] and first.fleet.published)
    upstream.down = UpstreamError("server", "broken", status=500)
    async with replicas(1, server.port, upstream) as [leader]:
        await until(lambda: leader.role is ReplicaRole.LEADER and leader.holder.failures)
        await leader.fleet.publish(StoredDocument(document("old")).pack())
        await leader.fleet._renew()
        assert b'"digest":""' in server.ask("GET", LEASE)
        await leader.fleet.publish(StoredDocument(document("one"), upstream_tag(upstream)).pack())
        assert b'"digest":""' not in server.ask("GET", LEASE), "the same write of what it serves would have"


def upstream_tag(upstream: CountedUpstream) -> str | None:
    """Return the entity tag of the upstream's document."""
    down, upstream.down = upstream.down, None
    try:
        return upstream.ask("test", None).etag
    finally:
        upstream.down = down


def delay_messages(coordinator: Coordinator, go: asyncio.Event) -> list[str]:
    """Delay messages; return the list that records what is about to be sent, was sent, and was released, as it happens."""
    order, tell, release = list[str](), coordinator.tell, coordinator.release

    async def late(heartbeat: Heartbeat, framed: bytes | None = None) -> str | None:
        order.append("telling")
        await go.wait()
        order.append("told")
        return await tell(heartbeat, framed)

    async def left() -> None:
        order.append("left")
        await release()

    async def two() -> int:
        return 2

    coordinator.tell, coordinator.release, coordinator.listeners = late, left, two  # type: ignore[method-assign]
    return order


async def release_delayed_messages(go: asyncio.Event, leader: Replica) -> None:
    """Release the delayed messages when the ending or resting leader has finished all steps before it releases the lease."""
    await until(lambda: leader.role is ReplicaRole.ALONE or leader.fleet._schedule.paused_until)
    await turns()
    go.set()


@pytest.mark.parametrize("ends", [True, False])
@asynchronous
async def test_nothing_is_told_after_the_lease_is_given_back(
    ends: bool, server: RedisServer, upstream: CountedUpstream
) -> None:
    """A heartbeat on its way when a leader ends or hands over is sent before the lease is released.

    Later it would take the lease again.
    """
    async with replicas(1, server.port, upstream, lease_ms=HOUR_MS) as [leader]:
        await until(lambda: leader.serves == ["one"] and leader.fleet.published)
        go = asyncio.Event()
        order = delay_messages(leader.fleet._coordinator, go)
        for _ in range(FAILURES):
            leader.fleet.note_check("network")
        await until(lambda: order)
        await asyncio.gather(leader.stop() if ends else leader.fleet._hand_over(), release_delayed_messages(go, leader))
        assert order[-1] == "left" and "told" in order and LEASE not in server.names()
        await until(lambda: not leader.fleet._tasks)
        assert order[-1] == "left" and leader.role is not ReplicaRole.LEADER and LEASE not in server.names()


def test_a_rest_does_not_leave_the_fleet_without_a_leader() -> None:
    """A replica that handed over takes the lease before its rest is over if it heard no other leader for two lease times."""
    lease = LEASE_MS / 1000
    schedule = Schedule(FakeClock(), lambda: 0.5, lease, 1.0)
    schedule.paused_until = schedule.now() + 10.0
    assert [schedule.is_paused(1.9 * lease), schedule.is_paused(2.1 * lease)] == [True, False]
    schedule.paused_until = schedule.now()
    assert not schedule.is_paused(lease / 2)


@asynchronous
async def test_a_server_that_is_away_is_not_stormed() -> None:
    """Replicas look for the server with growing pauses, at most one lease time long."""
    clock, client = FakeClock(), Client(Access(RedisAddress("127.0.0.1", free_port())))
    fleet = Fleet(
        Coordinator(client, PREFIX, KEY, LEASE_MS),
        LocalState(lambda: True, lambda: None, lambda: False),
        clock=clock,
        log=RecordingLog(),
        draw=lambda: 0.5,
        lease_ms=LEASE_MS,
        spread_ms=100,
    )
    fleet.start()
    pauses = []
    for _ in range(5):
        pauses.append(await clock.next_sleep())
        await clock.advance(pauses[-1])
    await clock.next_sleep()
    assert fleet.errors == 6 and fleet.role is ReplicaRole.ALONE
    assert pauses == sorted(pauses) and LEASE_MS / 5000 <= pauses[0] < pauses[-1] <= LEASE_MS / 1000
    await fleet.stop()
