"""Usage counts survive outages, restarts, kill -9 and other processes on the same storage."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.fake_upstream import METRICS, REGISTER, FakeUpstream, Reply, fake_upstream
from support.processes import Proxy, free_port, our_proxy
from support.redises import RedisServer, redis_server
from support.worker_pools import counted, document

DOWN = Reply(503)
OFTEN = {
    "FLAGSVC_METRICS_INTERVAL": "100",
    "FLAGSVC_UPSTREAM_TIMEOUT": "2000",
    "FLAGSVC_FETCH_INTERVAL": "60000",
    "LOG_LEVEL": "info",
}


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    """A flag server with two toggles."""
    with fake_upstream(document("first", "second")) as server:
        yield server


@contextmanager
def reporting(upstream: FakeUpstream, storage: str, workers: int = 1, **env: str) -> Iterator[Proxy]:
    """Run a proxy that sends usage often, from when it is registered."""
    registered = len(upstream.received(REGISTER))
    given = {**OFTEN, "FLAGSVC_STORAGE": storage, "FLAGSVC_WORKERS": str(workers), **env}
    with our_proxy(upstream.url, **given) as proxy:
        upstream.wait(lambda: len(upstream.received(REGISTER)) > registered)
        yield proxy


def ask(proxy: Proxy, times: int) -> None:
    """Look up a toggle so often."""
    for _ in range(times):
        assert proxy.post("", {"toggles": ["first"]}).status == 200


def spooled(folder: Path) -> list[str]:
    """Return the names of the records in a folder."""
    return sorted(path.name for path in folder.glob("*.usage"))


def kill(proxy: Proxy) -> None:
    """End all processes of a proxy at once."""
    os.killpg(proxy.program.process.pid, signal.SIGKILL)
    proxy.program.process.wait(20)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_an_outage_over_a_restart(upstream: FakeUpstream, tmp_path: Path, workers: int) -> None:
    """Counts that could not be sent before the end are sent after the next start, once, with those of the new process."""
    upstream.replies[METRICS] = DOWN
    with reporting(upstream, tmp_path.as_uri(), workers) as proxy:
        ask(proxy, 20)
        assert proxy.program.stop() == 0
        assert "are lost" not in proxy.program.output()
    assert len(spooled(tmp_path)) == 1 and counted(upstream) == 0
    upstream.replies.clear()
    with reporting(upstream, tmp_path.as_uri(), workers) as proxy:
        ask(proxy, 5)
        upstream.wait(lambda: counted(upstream) == 25)
        assert proxy.program.stop() == 0
    assert (counted(upstream), spooled(tmp_path)) == (25, [])


def holds(folder: Path, yes: int) -> bool:
    """Return whether one of the records in a folder has a toggle counted so often."""
    return any(has(yes, (folder / name).read_bytes()) for name in spooled(folder))


def has(yes: int, record: bytes) -> bool:
    """Return whether a record has a toggle counted so often."""
    return f'{{"first":[{yes},0,{{}}]}}'.encode() in record


def test_several_processes_start_together(upstream: FakeUpstream, tmp_path: Path) -> None:
    """Of three processes on one storage, exactly one sends the counts left there."""
    upstream.replies[METRICS] = DOWN
    with reporting(upstream, tmp_path.as_uri()) as proxy:
        ask(proxy, 20)
        assert proxy.program.stop() == 0
    upstream.replies.clear()
    storage = tmp_path.as_uri()
    with reporting(upstream, storage) as one, reporting(upstream, storage) as two, reporting(upstream, storage) as three:
        upstream.wait(lambda: counted(upstream) == 20)
        for number, proxy in enumerate((one, two, three)):
            ask(proxy, 1)
            upstream.wait(lambda: counted(upstream) == 21 + number)  # noqa: B023
    assert (counted(upstream), spooled(tmp_path)) == (23, [])


@pytest.mark.parametrize(("workers", "kills"), [(1, 3), pytest.param(2, 2, marks=pytest.mark.long)])
def test_kill_after_kill(upstream: FakeUpstream, tmp_path: Path, workers: int, kills: int) -> None:
    """However often processes are killed while the upstream comes and goes, every count in storage arrives, none twice."""
    asked = 0
    for number in range(kills):
        upstream.replies[METRICS] = DOWN
        with reporting(upstream, tmp_path.as_uri(), workers) as proxy:
            ask(proxy, number + 1)
            asked += number + 1
            proxy.program.wait(lambda: holds(tmp_path, number + 1), "storing")  # noqa: B023
            kill(proxy)
    assert counted(upstream) == 0 and 1 <= len(spooled(tmp_path)) <= kills
    upstream.replies.clear()
    with reporting(upstream, tmp_path.as_uri(), workers) as proxy:
        upstream.wait(lambda: counted(upstream) == asked)
        proxy.program.wait(lambda: not spooled(tmp_path), "tidying")
        assert proxy.program.stop() == 0
    assert counted(upstream) == asked


def test_an_upstream_that_comes_later(tmp_path: Path) -> None:
    """Counts made with a stored configuration, before the upstream was available, arrive too, and none twice."""
    port = free_port()
    with fake_upstream(document("first"), port) as before, reporting(before, tmp_path.as_uri()) as proxy:
        proxy.program.wait(lambda: list(tmp_path.glob("*.flags")), "storing the configuration")
    given = {**OFTEN, "FLAGSVC_FETCH_INTERVAL": "100", "FLAGSVC_STORAGE": tmp_path.as_uri()}
    with our_proxy(f"http://127.0.0.1:{port}/api", **given) as proxy:
        ask(proxy, 7)
        proxy.program.wait(lambda: holds(tmp_path, 7), "storing what it counted")
        with fake_upstream(document("first"), port) as later:
            later.wait(lambda: counted(later) == 7)
            proxy.program.wait(lambda: not spooled(tmp_path), "tidying")
            assert proxy.program.stop() == 0
            assert counted(later) == 7


def test_usage_on_a_server(upstream: FakeUpstream) -> None:
    """With Redis storage, a process on any machine sends the counts that another process left, also after a kill."""
    with redis_server(port=free_port()) as server:
        for end in (lambda proxy: proxy.program.stop(), kill):
            upstream.replies[METRICS] = DOWN
            upstream.forget()
            with reporting(upstream, server.url) as proxy:
                ask(proxy, 20)
                proxy.program.wait(lambda: any(has(20, each) for each in records(server)), "storing what it counted")
                end(proxy)
            upstream.replies.clear()
            with reporting(upstream, server.url) as proxy:
                upstream.wait(lambda: counted(upstream) > 0)
                proxy.program.wait(lambda: not records(server), "tidying")
                assert proxy.program.stop() == 0
            assert counted(upstream) == 20


def records(server: RedisServer) -> list[bytes]:
    """Return the records of usage on a server."""
    return [data for name in server.names() if ":usage:" in name for data in server.ask("HVALS", name)]
