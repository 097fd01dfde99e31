"""Workers and their parent killed at any moment: replacements, kept counts, and ends.

Workers that hang: which are replaced and how soon, what probes get, and which are left alone.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fake_upstream import FakeUpstream, fake_upstream
from support.outages import Outage, outage, trapped
from support.processes import Proxy, our_proxy
from support.waiting import wait_until
from support.worker_pools import alive, answered, counted, document, load, ready, report, samples, worker_pool, workers

ONCE = {"FLAGSVC_FETCH_INTERVAL": "60000"}
LOST_S = 0.1
"""Seconds of counts that a killed worker may take with it."""


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    """A flag server with two toggles."""
    with fake_upstream(document("first", "second")) as server:
        yield server


def replaced(proxy: Proxy, killed: int, number: int = 2) -> bool:
    """Return whether another process has taken the place of a killed process."""
    scraped = samples(proxy)
    return killed not in workers(proxy) and scraped["flagsvc_workers"] == number


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_worker_ends_under_load(upstream: FakeUpstream, number: int) -> None:
    """It is replaced and counted, no counter goes down, no new connection is lost, and every count but the very last is there.

    The kill loses what the worker has taken: here connections that have had answers. Their callers come back at once, and
    who waits at its socket then is answered by another.
    """
    with worker_pool(upstream, **ONCE) as proxy:
        with load(proxy) as callers:
            before = samples(proxy)
            killed, moment = workers(proxy)[0], time.time()
            os.kill(killed, number)
            seen = [before]
            proxy.program.wait(lambda: seen.append(samples(proxy)) or replaced(proxy, killed), "replacing")  # type: ignore[func-returns-value, redundant-expr]
            asked = [len(caller.times) for caller in callers]
            proxy.program.wait(lambda: all(len(c.times) > n for c, n in zip(callers, asked, strict=True)), "answering all")
        after = samples(proxy)
        seen.append(after)
        assert after["flagsvc_worker_restarts_total"] == 1
        for name in [name for name in before if "_total" in name]:
            values = [each[name] for each in seen]
            assert values == sorted(values), name
        assert "a worker has ended and is replaced worker=" in proxy.program.output()
        assert proxy.program.stop() == 0
    times = [each for caller in callers for each in caller.times]
    lost = [each for each in times if moment - LOST_S <= each <= moment + LOST_S]
    sent = len(times) + sum(caller.broken for caller in callers)
    assert len(times) - (len(lost) if number == signal.SIGKILL else 0) <= counted(upstream) <= sent
    assert [caller.refused for caller in callers] == [False] * len(callers)
    assert [caller.fresh for caller in callers] == [0] * len(callers), "a new connection is answered"
    assert sum(caller.broken for caller in callers) <= len(callers), "each lost at most the connection it had there"


def test_a_report_that_was_answered_is_not_lost(upstream: FakeUpstream) -> None:
    """An SDK deletes a report after the answer: a worker that is killed right then loses nothing of it."""
    with worker_pool(upstream, **ONCE) as proxy:
        for number in range(1, 4):
            assert proxy.post("/client/metrics", report(number, 0)).status == 200
            killed = workers(proxy)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            proxy.program.wait(lambda: not set(killed) & set(workers(proxy)), "ending")  # noqa: B023
            proxy.program.wait(lambda: samples(proxy)["flagsvc_workers"] == 2, "replacing")
        assert proxy.program.stop() == 0
    assert counted(upstream) == sum(range(1, 4))


def test_other_workers_accept_waiting_connections(upstream: FakeUpstream, tmp_path: Path) -> None:
    """While a worker cannot be replaced, the others accept the connections that the kernel queued for it."""
    flag = tmp_path / "crash"
    (tmp_path / "code.py").write_text(
        f"import os, pathlib\nif pathlib.Path({str(flag)!r}).exists():\n    os._exit(3)\nstrategies = []\n"
    )
    with worker_pool(upstream, 3, FLAGSVC_CUSTOM_STRATEGIES_FILE=str(tmp_path / "code.py")) as proxy:
        flag.touch()
        killed = workers(proxy)[:2]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        proxy.program.wait(lambda: proxy.program.output().count("status=3") >= 4, "failing to replace them")
        assert [proxy.get().status for _ in range(30)] == [200] * 30
        flag.unlink()
        proxy.program.wait(lambda: samples(proxy)["flagsvc_workers"] == 3, "replacing them")
        assert [proxy.get().status for _ in range(30)] == [200] * 30
        assert proxy.program.stop() == 0


def test_a_replacement_is_warm(upstream: FakeUpstream) -> None:
    """A new worker accepts no connection before it has the configuration of the other workers."""
    with worker_pool(upstream) as proxy:
        for number in range(3):
            upstream.replace(document("first", f"toggle-{number}"))
            killed = workers(proxy)[number % 2]
            os.kill(killed, signal.SIGKILL)
            proxy.program.wait(lambda: replaced(proxy, killed), "replacing")  # noqa: B023
            expected = ["first", f"toggle-{number}"]
            proxy.program.wait(lambda: list(proxy.toggles()) == expected, "switching")  # noqa: B023
            assert [list(proxy.toggles()) for _ in range(8)] == [expected] * 8
        assert answered(samples(proxy), "GET", 503) == 0


def test_workers_that_cannot_start(upstream: FakeUpstream, tmp_path: Path) -> None:
    """Workers that end at once are restarted with growing pauses and logged; a signal still ends the proxy."""
    (tmp_path / "code.py").write_text(
        "import os, sys\nif 'flagsvc.process.worker' in ' '.join(sys.orig_argv):\n    os._exit(3)\nstrategies = []\n"
    )
    env = {"FLAGSVC_WORKERS": "2", "FLAGSVC_CUSTOM_STRATEGIES_FILE": str(tmp_path / "code.py")}
    with our_proxy(upstream.url, wait_ready=False, **env) as proxy:
        proxy.program.wait(lambda: "status=3 failures=3" in proxy.program.output(), "trying")
        assert "listening" not in proxy.program.output()
        assert proxy.program.stop() == 0


def test_the_parent_is_killed(upstream: FakeUpstream) -> None:
    """The workers end by themselves: no process is left, and the port is free."""
    with worker_pool(upstream) as proxy, load(proxy) as callers:
        left = workers(proxy)
        assert len(left) == 2
        os.kill(proxy.program.process.pid, signal.SIGKILL)
        assert proxy.program.process.wait(20) == -signal.SIGKILL
        wait_until(lambda: not any(alive(pid) for pid in left), 15, lambda: "workers stay behind")
        assert not ready(proxy)
    assert [caller.halves for caller in callers] == [0] * len(callers)


def test_the_parent_is_killed_at_the_start(upstream: FakeUpstream) -> None:
    """Workers that were only just started end as well."""
    with our_proxy(upstream.url, wait_ready=False, FLAGSVC_WORKERS="2", **ONCE) as proxy:
        proxy.program.wait(lambda: len(workers(proxy)) == 2, "starting workers")
        left = workers(proxy)
        os.kill(proxy.program.process.pid, signal.SIGKILL)
        wait_until(lambda: not any(alive(pid) for pid in left), 15, lambda: "workers stay behind")


def test_a_worker_that_stops_does_not_hold_the_others(upstream: FakeUpstream) -> None:
    """A worker that is stopped half-way does not keep the others from a new configuration, and gets it when it continues."""
    with worker_pool(upstream, FLAGSVC_WORKER_TIMEOUT="0") as proxy:
        stopped, other = workers(proxy)
        os.kill(stopped, signal.SIGSTOP)
        try:
            upstream.replace(document("first", "third"))
            proxy.program.wait(lambda: "a worker is late with a configuration" in proxy.program.output(), "telling")
        finally:
            os.kill(stopped, signal.SIGCONT)
        proxy.program.wait(lambda: [list(proxy.toggles()) for _ in range(8)] == [["first", "third"]] * 8, "switching")
        assert sorted(workers(proxy)) == sorted((stopped, other))


ENOUGH_S = 5.0
"""Within so many seconds every request is answered again."""
SLOW_START = """
import sys, time
if 'flagsvc.process.worker' in ' '.join(sys.orig_argv):
    time.sleep(2.4)
strategies = []
"""
SUSPENDED_S = 2.5
"""Longer than a worker may send no heartbeat."""


@pytest.fixture
def upstream_that_hangs() -> Iterator[FakeUpstream]:
    """A flag server."""
    with fake_upstream(trapped("first")) as server:
        yield server


def output(around: Outage) -> str:
    """Return what the proxy has logged."""
    return around.proxy.program.output()


def hung(around: Outage) -> tuple[float, float]:
    """Return how many workers were ended because they did not answer, and how many were replaced."""
    scraped = around.scraped()
    return scraped["flagsvc_worker_hangs_total"], scraped["flagsvc_worker_restarts_total"]


def test_workers_that_hang(upstream_that_hangs: FakeUpstream, tmp_path: Path) -> None:
    """Within five seconds each is ended and replaced, and every request is answered; probes fail only if all workers hang."""
    with outage(upstream_that_hangs, tmp_path, FLAGSVC_WORKER_TIMEOUT="1000") as around:
        stopped, moment = around.workers()[0], time.monotonic()
        os.kill(stopped, signal.SIGSTOP)
        assert around.seconds(moment) < ENOUGH_S
        around.restored(2)
        assert stopped not in around.workers()
        assert around.told(moment) == ["ready"]
        assert re.search(rf"a worker does not answer and is killed worker=[01] pid={stopped} silent_s=1\.", output(around))
        assert hung(around) == (1, 1)
        endless, moment = around.workers(), time.monotonic()
        around.touch(*(f"hang-{pid}" for pid in endless))
        assert around.seconds(moment) < ENOUGH_S
        around.restored(2)
        assert not set(endless) & set(around.workers())
        assert around.told(moment) == ["ready", "no-worker", "ready"]
        assert hung(around) == (3, 3)
        assert around.proxy.program.stop() == 0


def test_who_lives_is_left_alone(upstream_that_hangs: FakeUpstream, tmp_path: Path) -> None:
    """A slow start, a large configuration or a suspended machine makes the parent end no worker."""
    (tmp_path / "code.py").write_text(SLOW_START)
    short = {"FLAGSVC_WORKER_TIMEOUT": "2000", "FLAGSVC_CUSTOM_STRATEGIES_FILE": str(tmp_path / "code.py")}
    with worker_pool(upstream_that_hangs, **short) as proxy:
        before = sorted(workers(proxy))
        many = [f"one-of-many-{number}" for number in range(4000)]
        upstream_that_hangs.replace(document(*many))
        proxy.program.wait(lambda: len(proxy.toggles()) == len(many), "switching")
        os.killpg(proxy.program.process.pid, signal.SIGSTOP)
        time.sleep(SUSPENDED_S)
        os.killpg(proxy.program.process.pid, signal.SIGCONT)
        time.sleep(SUSPENDED_S)  # during this time the parent could wrongly end a worker
        assert samples(proxy)["flagsvc_worker_restarts_total"] == 0
        assert sorted(workers(proxy)) == before
