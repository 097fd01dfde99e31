"""Six replicas on one Redis server and one upstream that records its callers; leaders and servers are killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from support.fake_upstream import FEATURES, FakeUpstream, fake_upstream
from support.processes import Proxy, answers, free_port, our_proxy
from support.redises import RedisServer, frozen, redis_server
from support.waiting import wait_until
from support.worker_pools import document, samples, workers

REPLICAS = 6
REFRESH_MS = 500
LEASE_MS = 2000
LASTING = {"FLAGSVC_LEASE_TIME": "10000", "FLAGSVC_STORAGE_TIMEOUT": "10000"}
"""For tests in which one replica must stay the leader: on a busy machine this lease does not expire and no command times out."""
REVISIONS = 20
SECONDS = 60.0


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    """A flag server with one toggle."""
    with fake_upstream(document("first")) as server:
        yield server


@contextmanager
def fleet(upstream: FakeUpstream, redis_port: int, count: Any = REPLICAS, **env: str) -> Iterator[list[Proxy]]:
    """Run so many replicas until the block ends; it begins when all are ready, and one of them leads."""
    given = {"FLAGSVC_FETCH_INTERVAL": str(REFRESH_MS), "FLAGSVC_LEASE_TIME": str(LEASE_MS), **env}
    given |= {"FLAGSVC_STORAGE": f"redis://127.0.0.1:{redis_port}/0"}
    with ExitStack() as stack:
        replicas = [
            stack.enter_context(our_proxy(upstream.url, wait_ready=False, **given, UNLEASH_INSTANCE_ID=f"replica-{n}"))
            for n in range(count)
        ]
        for each in replicas:
            each.program.wait(lambda: answers(f"{each.url}/health"), "ready", SECONDS)  # noqa: B023
        within(lambda: settled(replicas), "one leads and the others follow")
        yield replicas


def within(condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Return when a condition holds; fail when it does not in time."""
    wait_until(condition, seconds, lambda: f"waited {seconds} s in vain until {what}")


def role(replica: Proxy) -> str:
    """Return the role of a replica."""
    scraped = samples(replica)
    [found] = [name for name in ("alone", "follower", "leader") if scraped[f'flagsvc_fleet_role{{role="{name}"}}']]
    return found


def settled(replicas: Sequence[Proxy]) -> bool:
    """Return whether one replica leads and all others follow."""
    return sorted(map(role, replicas)) == ["follower"] * (len(replicas) - 1) + ["leader"]


def leader(replicas: Sequence[Proxy]) -> Proxy:
    """Return the leader."""
    [found] = [each for each in replicas if role(each) == "leader"]
    return found


def served(replicas: Sequence[Proxy], *names: str) -> bool:
    """Return whether all serve exactly these toggles."""
    return all(list(each.toggles()) == list(names) for each in replicas)


def askers(upstream: FakeUpstream) -> list[str]:
    """Return the names of the replicas that polled, one for each poll."""
    return [seen.headers["unleash-instanceid"] for seen in upstream.received(FEATURES)]


def spread_ms(replicas: Sequence[Proxy]) -> float:
    """Return how many milliseconds after the leader the last one has taken the present configuration."""
    leading = leader(replicas)
    taken = {each.url: samples(each)["last_metrics_update_epoch_timestamp_ms"] for each in replicas}
    return max(taken.values()) - taken[leading.url]


def tags(replicas: Sequence[Proxy], query: str) -> set[str]:
    """Return the entity tags of the answers to one question."""
    return {each.get(query).headers["etag"] for each in replicas}


def test_six_replicas_are_one_caller(upstream: FakeUpstream, record_property: Callable[[str, object], None]) -> None:
    """The upstream is asked as often as by one, by one; all have each revision, but for one at most (the machine may have been
    busy), within 200 ms, and the same tags.
    """
    with redis_server() as server, fleet(upstream, server.port, **LASTING) as replicas:
        began = time.monotonic()
        upstream.forget()
        delays = []
        for number in range(REVISIONS):
            names = ("first", f"revision-{number}")
            upstream.replace(document(*names))
            within(lambda: served(replicas, *names), "all serve it")  # noqa: B023
            delays.append(spread_ms(replicas))
            for query in ("", "?userId=7", "?userId=8&properties[a]=b"):
                assert len(tags(replicas, query)) == 1
        expected = (time.monotonic() - began) * 1000 / REFRESH_MS
        polls = askers(upstream)
        worst, middle = max(delays), sorted(delays)[len(delays) // 2]
        text = f"{REVISIONS} revisions reached {REPLICAS} replicas: {middle:.0f} ms median, {worst:.0f} ms worst"
        record_property(
            "summary", f"{text}; {len(polls)} polls by {len(set(polls))} replica(s), {expected:.0f} expected"
        )
        assert len(set(polls)) == 1 and len(polls) <= expected + 2
        assert sorted(delays)[len(delays) // 2] < REFRESH_MS, delays


def test_the_leader_is_killed(upstream: FakeUpstream, record_property: Callable[[str, object], None]) -> None:
    """Another replica takes over when the lease expires, and the restarted one follows."""
    with redis_server() as server, fleet(upstream, server.port, 3) as replicas:
        killed = leader(replicas)
        rest = [each for each in replicas if each is not killed]
        began = time.monotonic()
        killed.program.process.kill()
        upstream.replace(document("second"))
        within(lambda: settled(rest) and served(rest, "second"), "another leads")
        record_property("summary", f"fail-over after kill -9 of the leader: {time.monotonic() - began:.1f} s")
        for each in rest:
            assert samples(each)["flagsvc_upstream_consecutive_failures"] == 0


def test_the_leader_ends(upstream: FakeUpstream, record_property: Callable[[str, object], None]) -> None:
    """Another replica takes over at once, because the leader releases the lease."""
    with redis_server() as server, fleet(upstream, server.port, 3, FLAGSVC_LEASE_TIME="600000") as replicas:
        ended = leader(replicas)
        rest = [each for each in replicas if each is not ended]
        assert ended.program.stop() == 0
        began = time.monotonic()
        within(lambda: settled(rest), "another leads")
        record_property("summary", f"fail-over after the leader has ended: {time.monotonic() - began:.2f} s")


def test_the_server_is_killed(upstream: FakeUpstream, record_property: Callable[[str, object], None]) -> None:
    """Each replica polls for itself; a new, empty server is filled, and one replica polls for all."""
    port = free_port()
    with ExitStack() as servers:
        first = servers.enter_context(redis_server(port=port))
        with fleet(upstream, port, **LASTING) as replicas:
            first.kill()
            upstream.replace(document("alone"))
            began = time.monotonic()
            within(lambda: served(replicas, "alone"), "each has asked by itself")
            record_property(
                "summary", f"each polls by itself after the server is gone: {time.monotonic() - began:.1f} s"
            )
            within(lambda: {role(each) for each in replicas} == {"alone"}, "each knows that it is")
            assert len(set(askers(upstream))) == REPLICAS
            second = servers.enter_context(redis_server(port=port))
            back(upstream, replicas, second)


def back(upstream: FakeUpstream, replicas: Sequence[Proxy], server: RedisServer) -> None:
    """Check that all replicas are one fleet again on a server that was empty."""
    within(lambda: settled(replicas), "one leads")
    within(lambda: any(":store:" in name for name in server.names()), "the configuration is stored")
    upstream.forget()
    upstream.replace(document("together"))
    within(lambda: served(replicas, "together"), "all serve it")
    assert len(set(askers(upstream))) == 1


def test_the_server_hangs(upstream: FakeUpstream) -> None:
    """Every request is answered at once. Each replica polls for itself, and later one polls for all."""
    given = LASTING | {"FLAGSVC_STORAGE_TIMEOUT": "2000"}
    with redis_server() as server, fleet(upstream, server.port, 3, **given) as replicas:
        with frozen(server):
            upstream.replace(document("alone"))
            within(lambda: served(replicas, "alone"), "each has asked by itself")
            within(lambda: {role(each) for each in replicas} == {"alone"}, "the leader has noticed, too")
        back(upstream, replicas, server)


def test_workers_are_one_replica(upstream: FakeUpstream) -> None:
    """The parent takes part, once for the machine; its workers serve what the fleet has."""
    with (
        redis_server() as server,
        fleet(upstream, server.port, 2, FLAGSVC_WORKERS="2", **LASTING) as replicas,
    ):
        upstream.forget()
        upstream.replace(document("second"))
        within(lambda: all(served(replicas, "second") for _ in range(4)), "all workers serve it")
        assert len(set(askers(upstream))) == 1
        follower = next(each for each in replicas if role(each) == "follower")
        os.kill(workers(follower)[0], signal.SIGKILL)
        within(lambda: samples(follower)["flagsvc_worker_restarts_total"] == 1, "it is replaced")
        within(lambda: samples(follower)["flagsvc_workers"] == 2, "it is back")
        assert all(served([follower], "second") for _ in range(4))


def test_a_server_that_was_emptied(upstream: FakeUpstream) -> None:
    """The leader fills it again within a heartbeat, although nothing is new."""
    with redis_server() as server, fleet(upstream, server.port, 2) as replicas:
        server.ask("FLUSHALL")
        within(lambda: any(":store:" in name for name in server.names()), "the configuration is stored again")
        within(lambda: settled(replicas), "one leads")
        assert served(replicas, "first")
