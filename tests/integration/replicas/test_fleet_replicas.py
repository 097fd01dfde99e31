"""The roles of a fleet's replicas, and what all replicas serve, on a real server."""

from __future__ import annotations

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.configuration import State
from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.replicas import ReplicaRole
from support.aio import asynchronous, until
from support.fleets import KEY, PREFIX, CountedUpstream, leaders, replicas, served, settled
from support.processes import ROOT, free_port
from support.redises import RedisServer, frozen, redis_server
from support.tiny_engine import document

STORED, LEASE = f"{PREFIX}:store:{KEY}", f"{PREFIX}:lease:{KEY}"


@asynchronous
async def test_one_asks_for_all(server: RedisServer, upstream: CountedUpstream) -> None:
    """All replicas serve what the leader fetches, first and later; no other replica polls the upstream."""
    async with replicas(4, server.port, upstream, refresh_ms=100, lease_ms=10_000) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        [leader] = leaders(fleet)
        upstream.body = document("one", "two")
        await until(lambda: served(fleet, "one", "two"))
        assert set(upstream.polls) == {leader.name}
        assert leader.fleet.published > 0 and all(each.fleet.applied > 0 for each in fleet if each is not leader)
        assert {each.holder.state for each in fleet} == {State.FRESH}


@asynchronous
async def test_a_follower_knows_how_fresh_it_is(server: RedisServer, upstream: CountedUpstream) -> None:
    """A follower takes its freshness from the leader's checks: its age restarts with each check, and grows when checks fail."""
    async with replicas(2, server.port, upstream, refresh_ms=100) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        [follower] = [each for each in fleet if each.role is ReplicaRole.FOLLOWER]
        first = follower.holder.checked_at
        await until(lambda: (follower.holder.checked_at or 0.0) > (first or 0.0) + 0.3)
        upstream.down = UpstreamError("server", "broken", status=500)
        await until(lambda: follower.holder.state is State.STALE and (follower.age() or 0.0) > 0.3)
        upstream.down = None
        await until(lambda: follower.holder.state is State.FRESH and (follower.age() or 1.0) < 0.3)


@asynchronous
async def test_a_leader_that_ends_is_followed_at_once(server: RedisServer, upstream: CountedUpstream) -> None:
    """A leader that ends releases the lease: no replica waits until the lease expires."""
    async with replicas(3, server.port, upstream, lease_ms=60_000) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        [leader] = leaders(fleet)
        rest = [each for each in fleet if each is not leader]
        await leader.stop()
        await until(lambda: settled(rest), 2.0)
        assert leader.fleet.changes == 2 and sum(each.fleet.changes for each in rest) == 1


@asynchronous
async def test_a_leader_that_dies_is_followed_when_its_lease_is_over(
    server: RedisServer, upstream: CountedUpstream
) -> None:
    """The next leader polls the upstream at once, and continues from the configuration that all replicas have."""
    async with replicas(3, server.port, upstream) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        [leader] = leaders(fleet)
        rest = [each for each in fleet if each is not leader]
        await leader.die()
        upstream.body = document("two")
        await until(lambda: settled(rest) and served(rest, "two"), 5.0)


@asynchronous
async def test_without_a_server_every_replica_polls(server: RedisServer, upstream: CountedUpstream) -> None:
    """Without the server each replica polls for itself. A new, empty server is filled, and one replica polls for all."""
    port = free_port()
    with redis_server(port=port) as first:
        async with replicas(3, port, upstream, refresh_ms=300) as fleet:
            await until(lambda: settled(fleet) and served(fleet, "one"))
            first.kill()
            await until(lambda: all(each.role is ReplicaRole.ALONE for each in fleet))
            upstream.body = document("two")
            await until(lambda: served(fleet, "two"), 5.0)
            assert {each.name for each in fleet} <= set(upstream.polls)
            with redis_server(port=port) as second:
                await until(lambda: settled(fleet), 10.0)
                await until(lambda: STORED in second.names(), 5.0)
                upstream.body = document("three")
                await until(lambda: served(fleet, "three"), 5.0)
            assert any("the fleet is back" in line for line in fleet[0].log.at("info"))


@asynchronous
async def test_nobody_asks_at_the_same_moment(server: RedisServer, upstream: CountedUpstream) -> None:
    """Replicas that lose the server together poll the upstream within the refresh interval, each at its own moment."""
    async with replicas(10, server.port, upstream, refresh_ms=2000) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        upstream.polls.clear()
        upstream.moments.clear()
        server.kill()
        await until(lambda: len(set(upstream.polls)) == len(fleet), 10.0)
        firsts = [upstream.moments[upstream.polls.index(each.name)] for each in fleet]
        assert 0.4 < max(firsts) - min(firsts) < 5.0


@asynchronous
async def test_a_start_without_a_server(upstream: CountedUpstream) -> None:
    """The start does not wait for the server: the replica polls the upstream at once."""
    async with replicas(1, free_port(), upstream) as [alone]:
        await until(lambda: alone.serves == ["one"], 5.0)
        assert alone.role is ReplicaRole.ALONE and alone.holder.state is State.FRESH and alone.fleet.errors > 0


@asynchronous
async def test_an_emptied_server_is_filled_again(server: RedisServer, upstream: CountedUpstream) -> None:
    """The current leader stores what it serves, although the upstream has nothing new."""
    async with replicas(2, server.port, upstream) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one") and STORED in server.names())
        server.ask("FLUSHALL")
        await until(lambda: STORED in server.names() and settled(fleet))


@pytest.mark.parametrize("foreign", [b"somebody's", b"flagsvc-store 1 5 abc\ncut"])
@asynchronous
async def test_what_is_foreign_is_replaced(foreign: bytes, server: RedisServer, upstream: CountedUpstream) -> None:
    """A stored value that is damaged or not flagsvc's is not served, and is replaced."""
    server.ask("SET", STORED, foreign)
    async with replicas(2, server.port, upstream) as fleet:
        await until(lambda: served(fleet, "one"))
        await until(lambda: server.ask("GET", STORED) != foreign)
        server.ask("SET", STORED, foreign)
        await until(lambda: server.ask("GET", STORED) != foreign)
        assert served(fleet, "one")


@asynchronous
async def test_a_replica_starts_from_what_is_stored(server: RedisServer, upstream: CountedUpstream) -> None:
    """While the upstream is away, a replica starts from the server as it does from a folder."""
    async with replicas(1, server.port, upstream) as [first]:
        await until(lambda: first.serves == ["one"] and STORED in server.names())
    upstream.down = UpstreamError("network", "gone")
    async with replicas(2, server.port, upstream) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        assert {each.holder.state for each in fleet} == {State.RESTORED}


@asynchronous
async def test_a_leader_that_was_asleep_overwrites_nothing(server: RedisServer, upstream: CountedUpstream) -> None:
    """Another replica has the lease by then: the old leader follows, and its document is not stored."""
    async with replicas(1, server.port, upstream) as [sleeper]:
        await until(lambda: sleeper.serves == ["one"] and STORED in server.names())
        server.ask("SET", LEASE, b'another {"leader":"another","age_s":0.1}', "PX", 60_000)
        before = server.ask("GET", STORED)
        sleeper.fleet.accept(old := StoredDocument(document("old")))
        await sleeper.fleet.publish(old.pack())
        assert server.ask("GET", STORED) == before and sleeper.role is ReplicaRole.FOLLOWER


@asynchronous
async def test_a_leader_without_a_way_to_the_upstream_lets_another_lead(
    server: RedisServer, upstream: CountedUpstream
) -> None:
    """A replica that can reach the upstream leads instead."""
    async with replicas(2, server.port, upstream, refresh_ms=50) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        [leader] = leaders(fleet)
        upstream.cut_off = {leader.name}
        upstream.body = document("two")
        await until(lambda: served(fleet, "two") and leaders(fleet) != [leader], 10.0)


@asynchronous
async def test_a_lone_leader_keeps_the_lease(server: RedisServer, upstream: CountedUpstream) -> None:
    """Without another replica, the leader keeps the lease."""
    async with replicas(1, server.port, upstream, refresh_ms=20) as [alone]:
        await until(lambda: alone.serves == ["one"])
        upstream.down = UpstreamError("network", "gone")
        await until(lambda: alone.holder.failures > 4)
        await until(lambda: alone.holder.failures > 12)  # a leader among others hands over after the third
        assert alone.role is ReplicaRole.LEADER and alone.fleet.changes == 1


@asynchronous
async def test_what_could_not_be_stored_does_not_come_back(upstream: CountedUpstream) -> None:
    """A configuration that the leader could not store, and that is no longer the newest, reaches no replica."""
    port = free_port()
    with redis_server(port=port) as first:
        async with replicas(2, port, upstream, refresh_ms=100) as fleet:
            await until(lambda: settled(fleet) and served(fleet, "one"))
            [leader] = leaders(fleet)
            first.kill()
            upstream.body = document("two")
            leader.poller._storage._unsaved = StoredDocument(document("two"))  # as where the write is the first to fail
            await until(lambda: served(fleet, "two"), 5.0)
            upstream.body = document("three")
            await until(lambda: served(fleet, "three"), 5.0)
            asked = len(upstream.polls)
            await until(lambda: leader.name in upstream.polls[asked:])
            with redis_server(port=port) as second:
                await until(lambda: settled(fleet) and STORED in second.names(), 10.0)
                asked = len(upstream.polls)
                await until(lambda: len(upstream.polls) > asked + 5)
                assert b"three" in second.ask("GET", STORED) and served(fleet, "three")


@asynchronous
async def test_what_was_overtaken_is_not_told(server: RedisServer, upstream: CountedUpstream) -> None:
    """A write that waited until a newer configuration was accepted does not send the fleet back to the older one."""
    async with replicas(1, server.port, upstream) as [leader]:
        await until(lambda: leader.serves == ["one"] and leader.fleet.published)
        before = leader.fleet.published
        await leader.fleet.publish(StoredDocument(document("old")).pack())
        assert leader.fleet.published == before and leader.role is ReplicaRole.LEADER
        assert leader.log.at("info").count("configuration given to the fleet") == 1


@asynchronous
async def test_a_document_that_cannot_be_used(server: RedisServer, upstream: CountedUpstream) -> None:
    """Followers know that the leader met a document that cannot be used. They serve on, and know when it is over."""
    async with replicas(2, server.port, upstream, refresh_ms=100, lease_ms=10_000) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        good, upstream.body = upstream.body, b"no document"
        await until(lambda: all(each.holder.state is State.REFUSED for each in fleet))
        assert served(fleet, "one") and len(set(upstream.polls)) == 1
        upstream.body = good
        await until(lambda: all(each.holder.state is State.FRESH for each in fleet))


@asynchronous
async def test_an_old_error_is_not_passed_on(server: RedisServer, upstream: CountedUpstream) -> None:
    """An error that a replica met while it was alone says nothing about the upstream by the time it leads."""
    port = free_port()
    with redis_server(port=port) as first:
        async with replicas(2, port, upstream, refresh_ms=100) as fleet:
            await until(lambda: settled(fleet) and served(fleet, "one"))
            upstream.cut_off = {each.name for each in fleet}
            first.kill()
            await until(lambda: all(each.fleet._checks.failing == "network" for each in fleet))
            with redis_server(port=port):
                await until(lambda: settled(fleet), 10.0)
                [follower] = [each for each in fleet if each.role is ReplicaRole.FOLLOWER]
                upstream.cut_off = set()
                await until(lambda: all(each.holder.state is State.FRESH for each in fleet))
                assert follower.fleet._checks.failing == ""


@asynchronous
async def test_an_emptied_configuration_needs_a_second_look(server: RedisServer, upstream: CountedUpstream) -> None:
    """Followers also accept an empty configuration only when it comes twice, and it does."""
    async with replicas(2, server.port, upstream, refresh_ms=50) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        upstream.body = document()
        await until(lambda: served(fleet), 5.0)


@asynchronous
async def test_a_server_that_hangs(server: RedisServer, upstream: CountedUpstream) -> None:
    """The server answers nothing and breaks no connection: every replica polls for itself, and rejoins later."""
    async with replicas(2, server.port, upstream, refresh_ms=200, timeout_s=1.0) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        with frozen(server):
            await until(lambda: all(each.role is ReplicaRole.ALONE for each in fleet), 5.0)
            upstream.body = document("two")
            await until(lambda: served(fleet, "two"), 5.0)
        await until(lambda: settled(fleet), 10.0)


@asynchronous
async def test_a_subscription_that_brings_nothing(server: RedisServer, upstream: CountedUpstream) -> None:
    """A subscription that receives nothing while the lease is renewed is opened again: messages arrive then."""
    async with replicas(2, server.port, upstream, refresh_ms=100, lease_ms=3_000) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        [follower] = [each for each in fleet if each.role is ReplicaRole.FOLLOWER]
        coordinator = follower.fleet._coordinator
        coordinator._channel, right = "test:elsewhere", coordinator._channel
        server.ask("CLIENT", "KILL", "TYPE", "pubsub")
        await until(lambda: "the fleet is back" in follower.log.at("info"), 20.0)
        follower.clock.ahead += 3.0  # and hears nothing for one lease time
        await until(
            lambda: any("does not pass on" in str(line.fields.get("error")) for line in follower.log.lines), 20.0
        )
        coordinator._channel = right
        upstream.body = document("two")
        await until(lambda: served(fleet, "two") and settled(fleet), 20.0)


@asynchronous
async def test_a_connection_that_breaks(server: RedisServer, upstream: CountedUpstream) -> None:
    """A replica without its connection is alone for a moment and then rejoins. If that is soon enough, it does not poll itself."""
    async with replicas(3, server.port, upstream, refresh_ms=2000) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        server.ask("CLIENT", "KILL", "TYPE", "pubsub")
        await until(lambda: all("the fleet is back" in each.log.at("info") for each in fleet) and settled(fleet), 10.0)
        assert served(fleet, "one")


class Away:
    """A coordinator that always raises an unexpected error."""

    token = "token"

    def __init__(self, client: object) -> None:
        self.client = client

    def listening(self) -> object:
        """Raise."""
        raise KeyError("a mistake")


@asynchronous
async def test_a_fault_in_the_loop_leaves_no_replica_without_a_poller(
    server: RedisServer, upstream: CountedUpstream
) -> None:
    """The follower then polls for itself. The fault is counted, and the loop continues."""
    async with replicas(2, server.port, upstream, refresh_ms=100) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        [follower] = [each for each in fleet if each.role is ReplicaRole.FOLLOWER]
        good = follower.fleet._coordinator
        follower.fleet._publisher.coordinator = Away(good.client)  # type: ignore[assignment]
        server.ask("CLIENT", "KILL", "TYPE", "pubsub")
        await until(lambda: follower.fleet.restarts == 1)
        await until(lambda: follower.name in upstream.polls)
        assert follower.role is ReplicaRole.ALONE
        follower.fleet._publisher.coordinator = good
        await until(lambda: settled(fleet), 10.0)


@asynchronous
async def test_the_permissions_that_the_page_names(server: RedisServer, upstream: CountedUpstream) -> None:
    """A user with exactly these permissions can do everything that a fleet needs, and store waiting usage metrics."""
    page = (ROOT / "docs" / "how-to" / "run-a-fleet.md").read_text()
    [rule] = [line for line in page.splitlines() if line.startswith("ACL SETUSER flags ")]
    server.ask(*rule.replace("flagsvc:", f"{PREFIX}:").split())
    async with replicas(2, server.port, upstream, user="flags", password="word", refresh_ms=100) as fleet:
        await until(lambda: settled(fleet) and served(fleet, "one"))
        upstream.body = document("two")
        await until(lambda: served(fleet, "two"))
        store = fleet[0].store
        await store.set("mine", b"data")
        assert await store.get("mine") == b"data"
        await store.delete("mine")
        record_store = store.record_store(KEY)
        await record_store.put("record", b"data")
        assert (
            await record_store.names() == ["record"]
            and await record_store.get("record") == b"data"
            and await record_store.remove("record")
        )
        assert await fleet[0].fleet._coordinator.listeners() == 2
        await leaders(fleet)[0].stop()
        await until(lambda: len(leaders(fleet)) == 1)
        assert [each.fleet.errors for each in fleet] == [0, 0]
