"""`flagsvc proxy --workers N`: the workers have one upstream client, one set of counts and one revision.

Several workers and one upstream client: each worker knows the configuration's freshness and answers readiness.
"""

from __future__ import annotations

import contextlib
import http.client
import re
from datetime import datetime
from itertools import groupby
from pathlib import Path

from support.fake_upstream import FEATURES, METRICS, REGISTER, FakeUpstream, Reply, fake_upstream
from support.processes import Proxy
from support.worker_pools import HEADERS, alive, answered, counted, document, load, samples, worker_pool, workers

SCRAPES = 'flagsvc_http_requests_total{method="GET",route="/proxy/internal-backstage/prometheus",status="200"}'
TRIES = 5
"""Scrapes until one has every count: a scrape does not wait for a worker that gets no processor for a quarter of a second."""
ONCE = {"FLAGSVC_FETCH_INTERVAL": "60000"}
SWITCHED = re.compile(r"^(\S+) debug configuration switched worker=(\d+) revision=(\w+)$", re.MULTILINE)


def test_one_of_each_towards_the_upstream(upstream: FakeUpstream) -> None:
    """Three workers poll once, register once and post usage once, with the sums of what all of them counted."""
    with worker_pool(upstream, 3, **ONCE) as proxy:
        assert len(workers(proxy)) == 3
        for _ in range(30):  # each on a connection of its own: they come to different workers
            assert proxy.post("", {"toggles": ["first", "second", "unknown"]}).status == 200
        upstream.wait(lambda: upstream.received(REGISTER))
        assert proxy.program.stop() == 0
    assert [len(upstream.received(path)) for path in (FEATURES, REGISTER, METRICS)] == [1, 1, 1]
    assert (counted(upstream, "first"), counted(upstream, "second"), counted(upstream, "unknown")) == (30, 30, 0)


def test_every_worker_answers(upstream: FakeUpstream) -> None:
    """Connections are distributed: of many, each worker gets some."""
    with worker_pool(upstream) as proxy, contextlib.ExitStack() as stack:
        before = [descriptors(pid) for pid in workers(proxy)]
        for _ in range(24):
            connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
            stack.enter_context(contextlib.closing(connection))
            connection.request("GET", "/proxy", headers=HEADERS)
            assert connection.getresponse().read()
        after = [descriptors(pid) for pid in workers(proxy)]
        assert all(more > fewer for more, fewer in zip(after, before, strict=True)), (before, after)


def descriptors(pid: int) -> int:
    """Return how many descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_any_worker_answers_a_scrape_for_all(upstream: FakeUpstream) -> None:
    """A scrape includes all earlier answers, at any worker. The specification's samples appear once."""
    with worker_pool(upstream) as proxy:
        for _ in range(20):
            assert proxy.post("", {"toggles": ["first", "unknown"]}).status == 200
        made = 0
        for _ in range(6):
            for _ in range(TRIES):
                scraped = samples(proxy)
                found = answered(scraped), scraped.get(SCRAPES, 0)
                assert found[0] <= 20 and found[1] <= made
                made += 1
                if found == (20, made - 1):
                    break  # type: ignore[unreachable]
            assert found == (20, made - 1)
            assert not [name for name in scraped if name.startswith("flagsvc_usage_unknown")]  # type: ignore[unreachable]
            assert (scraped["flagsvc_workers"], scraped["flagsvc_worker_restarts_total"]) == (2, 0)
            assert scraped["last_metrics_fetch_epoch_timestamp_ms"] > 0 and scraped["flagsvc_proxy_up"] == 1
        sizes = [resident(pid) for pid in (proxy.program.process.pid, *workers(proxy))]
        assert samples(proxy)["process_resident_memory_bytes"] > sum(sizes) * 0.8


def resident(pid: int) -> int:
    """Return the bytes of memory a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_all_switch_together(upstream: FakeUpstream) -> None:
    """Whenever the configuration changes, all workers are on the new revision within 100 ms of each other, however large it is.

    Two gaps of the eight may be longer: the machine that runs this may be busy with something else.
    """
    many = [f"one-of-many-{number}" for number in range(2000)]
    with worker_pool(upstream, 3, LOG_LEVEL="debug") as proxy:
        for number in range(7):
            upstream.replace(document("first", f"toggle-{number}", *many[: 2000 * (number % 2)]))
            proxy.program.wait(lambda: len(switches(proxy)) == number + 2, "switching")  # noqa: B023
        found = switches(proxy)
    assert all(sorted(moments) == ["0", "1", "2"] for moments in found.values())
    gaps = sorted(max(moments.values()) - min(moments.values()) for moments in found.values())
    assert gaps[-3] < 0.1 and gaps[-1] < 2, gaps


def switches(proxy: Proxy) -> dict[str, dict[str, float]]:
    """Return by revision when each worker switched to it, of revisions that all three have switched to."""
    found: dict[str, dict[str, float]] = {}
    for moment, worker, revision in SWITCHED.findall(proxy.program.output()):
        found.setdefault(revision, {})[worker] = datetime.fromisoformat(moment).timestamp()
    return {revision: moments for revision, moments in found.items() if len(moments) == 3}


def test_a_switch_is_seen_on_every_connection(upstream: FakeUpstream) -> None:
    """Callers who keep their connections, some at each worker, all get each new configuration, and none an older one after it."""
    order = [b"second", b"third", b"fourth", b"fifth"]
    with worker_pool(upstream) as proxy, contextlib.ExitStack() as stack:
        connections = [http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20) for _ in range(12)]
        given: list[list[bytes]] = [[] for _ in connections]
        for connection in connections:
            stack.enter_context(contextlib.closing(connection))
        for name in order:
            upstream.replace(document("first", name.decode()))
            proxy.program.wait(lambda: asked(connections, given) == {name}, "switched")  # noqa: B023
        for _ in range(10):
            assert asked(connections, given) == {order[-1]}
    assert [[name for name, _ in groupby(names)] for names in given] == [order] * len(connections)


def asked(connections: list[http.client.HTTPConnection], given: list[list[bytes]]) -> set[bytes]:
    """Send one request on each connection, add the results to the earlier ones, and return them."""
    for connection, names in zip(connections, given, strict=True):
        names.append(listed(connection))
    return {names[-1] for names in given}


def listed(connection: http.client.HTTPConnection) -> bytes:
    """Return the name of the last toggle that a connection gets."""
    connection.request("GET", "/proxy", headers=HEADERS)
    return re.findall(rb'"name":"([a-z]+)"', connection.getresponse().read())[-2]  # type: ignore[no-any-return]


def test_an_end_under_load(upstream: FakeUpstream) -> None:
    """A signal ends all in order: every answer that has begun is finished, the last metrics have all, the exit code is 0.

    When the parent has ended no worker runs any more.
    """
    with worker_pool(upstream, **ONCE) as proxy, load(proxy) as callers:
        left = workers(proxy)
        assert len(left) == 2
        assert proxy.program.stop() == 0
        assert not any(alive(pid) for pid in left), "the parent has waited for all of them"
    assert [caller.halves for caller in callers] == [0] * len(callers)
    assert [caller.strange for caller in callers] == [[] for _ in callers]
    assert counted(upstream) == sum(len(caller.times) for caller in callers)
    assert len(upstream.received(METRICS)) == 1


MANY = 8
"""Requests, each on a connection of its own: they come to different workers."""
AGE = "x-config-age"
LOOPS = ("polling", "usage", "workers")


def readiness(proxy: Proxy) -> set[tuple[int, bytes]]:
    """Return the readiness answers of the workers."""
    answers = [proxy.get("/ready") for _ in range(MANY)]
    return {(answer.status, answer.body) for answer in answers}


def test_every_worker_knows_how_fresh_it_is() -> None:
    """If the upstream fails, all workers become unready and still answer; one successful poll makes all of them ready."""
    options = {"FLAGSVC_MAX_STALENESS": "2", "FLAGSVC_AGE_HEADER": AGE}
    with fake_upstream(document("first")) as upstream, worker_pool(upstream, 2, **options) as proxy:
        proxy.program.wait(lambda: readiness(proxy) == {(200, b"ready")}, "ready")
        assert {int(proxy.get().headers[AGE]) for _ in range(MANY)} <= {0, 1, 2}
        upstream.replies[FEATURES] = Reply(401)
        proxy.program.wait(lambda: readiness(proxy) == {(503, b"stale")}, "unready")
        assert {proxy.get().status for _ in range(MANY)} == {200}
        scraped = samples(proxy)
        assert scraped['flagsvc_config_state{state="refused"}'] == 1 and scraped["flagsvc_config_age_seconds"] > 2
        assert scraped["flagsvc_upstream_consecutive_failures"] >= 1
        assert scraped['flagsvc_upstream_answers_total{event="refused"}'] >= 1
        assert [scraped[f'flagsvc_loop_restarts_total{{loop="{loop}"}}'] for loop in LOOPS] == [0, 0, 0]
        del upstream.replies[FEATURES]
        proxy.program.wait(lambda: readiness(proxy) == {(200, b"ready")}, "ready again")
