"""Workers that hang: which are replaced and how soon, what probes get, and which are left alone."""

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
from support.worker_pools import document, samples, worker_pool, workers

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
def upstream() -> Iterator[FakeUpstream]:
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


def test_workers_that_hang(upstream: FakeUpstream, tmp_path: Path) -> None:
    """Within five seconds each is ended and replaced, and every request is answered; probes fail only if all workers hang."""
    with outage(upstream, tmp_path, FLAGSVC_WORKER_TIMEOUT="1000") as around:
        stopped, moment = around.workers()[0], time.monotonic()
        os.kill(stopped, signal.SIGSTOP)
        assert around.seconds(moment) < ENOUGH_S
        around.restored(2)
        assert stopped not in around.workers()
        assert around.told(moment) == ["ready"]
        assert re.search(
            rf"a worker does not answer and is killed worker=[01] pid={stopped} silent_s=1\.", output(around)
        )
        assert hung(around) == (1, 1)
        endless, moment = around.workers(), time.monotonic()
        around.touch(*(f"hang-{pid}" for pid in endless))
        assert around.seconds(moment) < ENOUGH_S
        around.restored(2)
        assert not set(endless) & set(around.workers())
        assert around.told(moment) == ["ready", "no-worker", "ready"]
        assert hung(around) == (3, 3)
        assert around.proxy.program.stop() == 0


def test_who_lives_is_left_alone(upstream: FakeUpstream, tmp_path: Path) -> None:
    """A slow start, a large configuration or a suspended machine makes the parent end no worker."""
    (tmp_path / "code.py").write_text(SLOW_START)
    short = {"FLAGSVC_WORKER_TIMEOUT": "2000", "FLAGSVC_CUSTOM_STRATEGIES_FILE": str(tmp_path / "code.py")}
    with worker_pool(upstream, **short) as proxy:
        before = sorted(workers(proxy))
        many = [f"one-of-many-{number}" for number in range(4000)]
        upstream.replace(document(*many))
        proxy.program.wait(lambda: len(proxy.toggles()) == len(many), "switching")
        os.killpg(proxy.program.process.pid, signal.SIGSTOP)
        time.sleep(SUSPENDED_S)
        os.killpg(proxy.program.process.pid, signal.SIGCONT)
        time.sleep(SUSPENDED_S)  # during this time the parent could wrongly end a worker
        assert samples(proxy)["flagsvc_worker_restarts_total"] == 0
        assert sorted(workers(proxy)) == before
