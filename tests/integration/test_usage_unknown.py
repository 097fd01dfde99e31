"""Who may read how many counts were dropped because their toggle is unknown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.fake_upstream import FakeUpstream, fake_upstream
from support.processes import Proxy, ask, free_port
from support.waiting import wait_until
from support.worker_pools import document, worker_pool


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    """A flag server with one toggle."""
    with fake_upstream(document("first")) as server:
        yield server


def look_up(proxy: Proxy) -> None:
    """Ask for toggles of which one is known, each time on a connection of its own."""
    for _ in range(10):
        assert proxy.post("", {"toggles": ["first", "unknown", "unknown"]}).status == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_operators_see_it_on_their_own_address(upstream: FakeUpstream, workers: int) -> None:
    """Summed over the workers."""
    port = free_port()
    with worker_pool(upstream, workers, FLAGSVC_ADMIN_ADDRESS=f"127.0.0.1:{port}") as proxy:
        look_up(proxy)
        scrape = f"http://127.0.0.1:{port}/proxy/internal-backstage/prometheus"
        assert ask(scrape).status == 200
        # the test does not wait for a worker that gets no processor for a quarter of a second
        wait_until(lambda: b"\nflagsvc_usage_unknown_total 20.0\n" in ask(scrape).body)


@pytest.mark.parametrize("workers", [1, 2])
def test_callers_do_not(upstream: FakeUpstream, workers: int) -> None:
    """Otherwise a holder of a client key could find out whether a toggle of some name exists."""
    with worker_pool(upstream, workers) as proxy:
        look_up(proxy)
        page = proxy.get("/internal-backstage/prometheus")
        assert page.status == 200
        assert b"flagsvc_usage_unknown" not in page.body and b"flagsvc_usage_waiting" not in page.body
        assert b'flagsvc_usage_dropped_total{reason="full"} 0.0' in page.body
