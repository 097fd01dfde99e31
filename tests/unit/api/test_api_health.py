"""Readiness and liveness."""

from __future__ import annotations

from serving import Serving


def test_ready_and_alive() -> None:
    """Both say ok when there is a configuration; without one only liveness does."""
    serving = Serving()
    assert serving.ask(b"GET", b"/proxy/health").body == b"ok"
    assert serving.ask(b"GET", b"/proxy/live").body == b"ok"
    serving.holder.current = None
    assert serving.ask(b"GET", b"/proxy/health").status == 503
    assert serving.ask(b"GET", b"/proxy/live").body == b"ok"
