"""Two replicas behind a load balancer are restarted one after the other under load: no request is lost."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Sequence

import pytest

from support.balancers import haproxy, nginx
from support.fake_upstream import FakeUpstream, fake_upstream
from support.processes import Proxy, free_port, our_proxy
from support.processes import answers as answering
from support.waiting import wait_until
from support.worker_pools import Caller, calling, counted, document, samples

GRACE_S = 2
ENOUGH_S = 20.0
Balancer = Callable[[Sequence[int]], contextlib.AbstractContextManager[int]]


def replica(upstream: FakeUpstream, port: int, **env: str) -> contextlib.AbstractContextManager[Proxy]:
    """Run a replica on a port until the block ends; `ready` waits for it."""
    given = {"FLAGSVC_SHUTDOWN_GRACE": str(GRACE_S), "FLAGSVC_FETCH_INTERVAL": "200", "PORT": str(port), **env}
    return our_proxy(upstream.url, wait_ready=False, **given)


def ready(proxy: Proxy) -> None:
    """Wait until a replica's readiness probe succeeds."""
    proxy.program.wait(lambda: answering(f"http://127.0.0.1:{proxy.port}/readyz"), "ready")


@pytest.mark.parametrize(
    ("balancer", "workers"), [(haproxy, "2"), *(pytest.param(each, "1", marks=pytest.mark.long) for each in (haproxy, nginx))]
)
def test_a_rolling_restart(balancer: Balancer, workers: str, record_property: Callable[[str, object], None]) -> None:
    """Every request is answered with 200, each replica ends with exit code 0, and the upstream hears of every look-up, once."""
    ports = [free_port(), free_port()]
    with fake_upstream(document("first")) as upstream, contextlib.ExitStack() as stack:
        replicas = [contextlib.ExitStack(), contextlib.ExitStack()]
        for each in replicas:
            stack.enter_context(each)
        running_now = [
            each.enter_context(replica(upstream, port, FLAGSVC_WORKERS=workers)) for each, port in zip(replicas, ports, strict=True)
        ]
        for proxy in running_now:
            ready(proxy)
        with balancer(ports) as port, calling(port) as callers:
            for number, each in enumerate(replicas):
                others(callers)
                assert running_now[number].program.stop() == 0
                each.close()
                running_now[number] = each.enter_context(replica(upstream, ports[number], FLAGSVC_WORKERS=workers))
                ready(running_now[number])
                called(running_now[number])
                others(callers)
        for proxy in running_now * 2:  # no caller is left: a second signal ends the grace period
            proxy.program.process.send_signal(signal.SIGTERM)
        for proxy in running_now:
            assert proxy.program.process.wait(ENOUGH_S) == 0
        lost = sum(caller.broken + caller.halves for caller in callers)
        record_property("requests", sum(len(caller.times) for caller in callers))
        record_property("lost", lost)
        assert (lost, [caller.strange for caller in callers]) == (0, [[] for _ in callers])
        assert not any(caller.refused for caller in callers)
        assert counted(upstream) == sum(len(caller.times) for caller in callers)


def called(proxy: Proxy) -> None:
    """Wait until the balancer sends callers to a replica. Only then the other one may stop."""
    count = 'flagsvc_http_requests_total{method="POST",route="/proxy",status="200"}'
    proxy.program.wait(lambda: samples(proxy).get(count, 0) > 0, "called")


def others(callers: list[Caller]) -> None:
    """Return when every caller has had some more answers."""
    before = [len(caller.times) for caller in callers]
    wait_until(lambda: all(len(caller.times) > was + 20 for caller, was in zip(callers, before, strict=True)))
