"""Readiness and liveness."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.proxy.api.operations import PROBES
from support.serving import Serving

LIVE = ("/proxy/live", "/livez", "/internal-backstage/health")
READY = ("/proxy/ready", "/readyz", "/internal-backstage/ready")


def test_ready_and_alive() -> None:
    """With a configuration both answer ok; without one only liveness does."""
    serving = Serving()
    assert serving.ask(b"GET", b"/proxy/health").body == b"ok"
    assert serving.ask(b"GET", b"/proxy/live").body == b"ok"
    serving.holder.current = None
    assert serving.ask(b"GET", b"/proxy/health").status == 503
    assert serving.ask(b"GET", b"/proxy/live").body == b"ok"


@pytest.mark.parametrize("base", ["", "/base"])
def test_every_probe_says_the_same(base: str) -> None:
    """Under every name there is, those of the root wherever the base path is."""
    serving = Serving(base_path=base)
    for path in (*LIVE, *READY):
        place = path if path in [probe[0] for probe in PROBES] else base + path
        answer = serving.ask(b"GET", place.encode())
        assert (answer.status, answer.body) == (200, b"ready" if path in READY else b"ok")


@pytest.mark.parametrize("path", READY)
def test_why_not(path: str) -> None:
    """Readiness gives its reason in one word. Liveness, health and evaluations still answer, unless there is no configuration."""
    serving = Serving(max_staleness=10)
    for word, change in (("stale", None), ("draining", "draining"), ("draining", "cold")):
        if change == "draining":
            serving.service.readiness.is_draining = True
        elif change == "cold":
            serving.holder.current = None
        else:
            asyncio.run(serving.clock.advance(11))
        answer = serving.ask(b"GET", path.encode())
        assert (answer.status, answer.body) == (503, word.encode())
        assert {(b"retry-after", b"1"), (b"cache-control", b"no-store")} <= set(answer.headers())
        assert serving.ask(b"GET", b"/livez").status == 200
        if change != "cold":
            assert serving.ask(b"GET", b"/proxy/health").status == serving.ask(b"GET", b"/proxy").status == 200
    serving.service.readiness.is_draining = False
    assert serving.ask(b"GET", path.encode()).body == b"cold"


def test_no_cache_keeps_the_answer_to_a_probe() -> None:
    """No cache may keep the answer to a probe."""
    answer = Serving().ask(b"HEAD", b"/readyz")
    assert (answer.status, answer.body) == (200, b"")
    assert (b"cache-control", b"no-store") in answer.headers()
