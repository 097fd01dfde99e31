"""Several workers and one upstream client: each worker knows the configuration's freshness and answers readiness."""

from __future__ import annotations

import os
import signal

from support.fake_upstream import FEATURES, Reply, fake_upstream
from support.processes import Proxy
from support.worker_pools import document, ready, samples, worker_pool, workers

MANY = 8
"""Requests, each on a connection of its own: they come to different workers."""
AGE = "x-config-age"
LOOPS = ("polling", "usage", "workers")
LONG_AGO_S = 3
"""Seconds since the last check; more than a worker is old when it answers, which is what it would say if nobody told it."""


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


def test_a_worker_that_is_replaced_is_as_fresh_as_the_others() -> None:
    """It learns the time of the last check before it accepts connections, however long ago that was."""
    options = {"FLAGSVC_FETCH_INTERVAL": "60000", "FLAGSVC_AGE_HEADER": AGE}
    with fake_upstream(document("first")) as upstream, worker_pool(upstream, 2, **options) as proxy:
        proxy.program.wait(lambda: samples(proxy)["flagsvc_config_age_seconds"] >= LONG_AGO_S, "without a check")
        killed = set(workers(proxy))
        assert len(killed) == 2
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        proxy.program.wait(lambda: len(set(workers(proxy)) - killed) == 2 and ready(proxy), "complete again")
        ages = [int(proxy.get().headers[AGE]) for _ in range(MANY)]
        assert min(ages) >= LONG_AGO_S, ages
