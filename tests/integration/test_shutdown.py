"""The end of a process that still gets requests: readiness fails first, every request is answered, and nothing is lost."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fake_upstream import METRICS, FakeUpstream
from support.flagservers import our_flag_server
from support.processes import Proxy, ask, our_proxy
from support.worker_pools import HEADERS, counted

LONG = {"FLAGSVC_SHUTDOWN_GRACE": "600"}
ENOUGH_S = 300.0
"""Much shorter than that, and longer than every other step takes."""


def readiness(proxy: Proxy) -> str:
    """Return a probe's answer on a new connection; nothing if it is refused."""
    try:
        return ask(f"http://127.0.0.1:{proxy.port}/readyz", seconds=5).body.decode()
    except OSError:
        return ""


@contextlib.contextmanager
def kept(proxy: Proxy) -> Iterator[http.client.HTTPConnection]:
    """Give a connection that has answered a request and is open."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", "/proxy", headers=HEADERS)
        answer = connection.getresponse()
        assert answer.read() and answer.getheader("connection") is None
        yield connection


@pytest.mark.parametrize("workers", ["1", "2"])
def test_readiness_fails_first(upstream: FakeUpstream, workers: str) -> None:
    """After SIGTERM readiness fails, and all requests are answered, on existing and new connections.

    Each answer is the last of its connection. A second signal ends the process at once, with its counts sent, and the exit code
    is 0.
    """
    with our_proxy(upstream.url, FLAGSVC_WORKERS=workers, **LONG) as proxy, kept(proxy) as before, kept(proxy) as resting:
        assert readiness(proxy) == "ready"
        proxy.program.process.send_signal(signal.SIGTERM)
        proxy.program.wait(lambda: [readiness(proxy) for _ in range(6)] == ["draining"] * 6, "failing its readiness")
        before.request("POST", "/proxy", b'{"toggles": ["first"]}', HEADERS)
        answer = before.getresponse()
        assert (answer.status, answer.getheader("connection")) == (200, "close")
        answer.read()
        for _ in range(6):
            late = proxy.post("", {"toggles": ["first"]})
            assert (late.status, late.headers["connection"]) == (200, "close")
        assert proxy.get("/health").status == proxy.get("/live").status == 200
        assert proxy.program.stop(signal.SIGTERM, ENOUGH_S) == 0
        assert resting.sock is not None and resting.sock.recv(1) == b"", "a connection at rest was closed in the end"
    assert counted(upstream) == 7 and len(upstream.received(METRICS)) == 1


def test_the_grace_passes(upstream: FakeUpstream) -> None:
    """Without a second signal it ends when the grace period is over, not before, and the exit code is 0."""
    with our_proxy(upstream.url, FLAGSVC_WORKERS="2", FLAGSVC_SHUTDOWN_GRACE="2") as proxy:
        began = time.monotonic()
        assert proxy.program.stop(signal.SIGTERM, ENOUGH_S) == 0
        assert time.monotonic() - began >= 2
        assert proxy.program.output().count("\n") <= 3, "it listens, is ready, stops, and has nothing else to tell"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_from_the_keyboard(upstream: FakeUpstream, workers: str) -> None:
    """Ctrl-C, which all processes get, has no grace period. All end in order, without a traceback."""
    with our_proxy(upstream.url, FLAGSVC_WORKERS=workers, **LONG) as proxy:
        assert proxy.post("", {"toggles": ["first"]}).status == 200
        os.killpg(proxy.program.process.pid, signal.SIGINT)
        assert proxy.program.process.wait(ENOUGH_S) == 0
        assert "Traceback" not in proxy.program.output() and "Interrupt" not in proxy.program.output()
    assert counted(upstream) == 1


def test_a_signal_to_all_processes(upstream: FakeUpstream) -> None:
    """SIGTERM to parent and workers together, as service managers send it, is one end with one grace period."""
    env = {"FLAGSVC_WORKERS": "2", "FLAGSVC_SHUTDOWN_GRACE": "3"}
    with our_proxy(upstream.url, **env) as proxy:
        os.killpg(proxy.program.process.pid, signal.SIGTERM)
        proxy.program.wait(lambda: readiness(proxy) == "draining", "failing its readiness")
        assert proxy.post("", {"toggles": ["first"]}).status == 200
        assert proxy.program.process.wait(ENOUGH_S) == 0
        assert "replaced" not in proxy.program.output()
    assert counted(upstream) == 1


def test_the_flag_server(tmp_path: Path) -> None:
    """It ends in the same way: not ready, alive, answering with the last answer of each connection, and done at a second signal."""
    with our_flag_server(folder=tmp_path, FLAGSVC_SHUTDOWN_GRACE="60") as server:
        url = server.url.removesuffix("/api")
        assert ask(f"{url}/ready").status == 200
        server.program.process.send_signal(signal.SIGTERM)
        server.program.wait(lambda: ask(f"{url}/ready").status == 503, "failing its readiness")
        server.program.wait(lambda: ask(f"{url}/health").headers.get("connection") == "close", "sending away")
        assert ask(f"{url}/health").status == 200
        assert server.program.stop(signal.SIGTERM, ENOUGH_S) == 0
