"""More connections than the limit: existing ones are served, and afterwards new ones are accepted again.

A SIGHUP that comes before the program can read its files again does not disturb the start.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from support.pki import HOST, Authority, written
from support.processes import KEY, ROOT, answers, clean_environment, flagsvc, free_port, our_proxy, proxy_environment, running
from support.waiting import wait_until
from support.worker_pools import samples

LIVE = f"GET /proxy/live HTTP/1.1\r\nHost: a\r\nAuthorization: {KEY}\r\n\r\n".encode()
SECONDS = 20.0
TURNED_AWAY = 'flagsvc_limits_reached_total{limit="connections"}'


def document(folder: Path) -> str:
    """Return the URL of a configuration without flags."""
    path = folder / "flags.json"
    path.write_text(json.dumps({"version": 2, "features": []}))
    return f"file://{path}"


def connected(port: int) -> socket.socket:
    """Return a connection."""
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS)


def status(caller: socket.socket) -> int:
    """Return the status of the answer to one request."""
    with contextlib.suppress(OSError):  # a refused caller may be gone already
        caller.sendall(LIVE)
    with contextlib.suppress(OSError):
        first = caller.recv(65_536)
        return int(first.split()[1]) if first else 0
    return 0


def test_one_more_than_there_is_room_for(tmp_path: Path) -> None:
    """The extra connection gets a 503, and the others are served. When they close there is room again, and all of it is counted."""
    with our_proxy(document(tmp_path), FLAGSVC_MAX_CONNECTIONS="20") as proxy, contextlib.ExitStack() as stack:
        wait_until(lambda: samples(proxy)[TURNED_AWAY] == 0, SECONDS, lambda: "turned away")
        held = [stack.enter_context(connected(proxy.port)) for _ in range(20)]
        assert [status(caller) for caller in held] == [200] * 20
        assert [status(stack.enter_context(connected(proxy.port))) for _ in range(5)] == [503] * 5
        assert [status(caller) for caller in held] == [200] * 20
        for caller in held:
            caller.close()
        wait_until(lambda: answers(f"{proxy.url}/health"), SECONDS, lambda: "no room again")
        assert samples(proxy)[TURNED_AWAY] >= 5


@pytest.mark.parametrize("files", [150, 60], ids=["enough for those it takes", "not even for those"])
def test_more_than_the_system_allows(tmp_path: Path, files: int) -> None:
    """With few open files the proxy accepts fewer connections and logs this; after a flood it still runs and answers."""
    port = free_port()
    environment = proxy_environment(document(tmp_path), port, {})
    command = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *flagsvc(), "proxy"]
    with running("proxy", command, env=environment, folder=tmp_path) as program:
        program.wait(lambda: answers(f"http://127.0.0.1:{port}/proxy/health"), "ready")
        assert "fewer connections than maxConnections" in program.output()
        for _ in range(3):
            with contextlib.ExitStack() as stack:
                for _ in range(300):
                    with contextlib.suppress(OSError):
                        stack.enter_context(connected(port))
        program.wait(lambda: answers(f"http://127.0.0.1:{port}/proxy/health"), "answering again", SECONDS)
        assert "Traceback" not in program.output()


def secured(port: int, context: ssl.SSLContext) -> socket.socket:
    """Return a connection over TLS."""
    return context.wrap_socket(connected(port), server_hostname=HOST)


def asked(port: int, context: ssl.SSLContext) -> int:
    """Return the status of the answer to one request over TLS; 0 if the connection is cut off."""
    with contextlib.suppress(OSError), secured(port, context) as caller:
        return status(caller)
    return 0


def test_those_that_never_shake_hands_count(tmp_path: Path) -> None:
    """Over TLS a silent connection takes up room: one over the limit gets a 503, far more are cut off."""
    authority = Authority()
    context = authority.client()
    limits = {"FLAGSVC_MAX_CONNECTIONS": "10", "FLAGSVC_TLS_HANDSHAKE_TIMEOUT": "300"}
    certificate = {"FLAGSVC_TLS_CERT": written(tmp_path, "own.pem", authority.issue().both)}
    with our_proxy(document(tmp_path), wait_ready=False, **limits, **certificate) as proxy, contextlib.ExitStack() as kept:
        proxy.program.wait(lambda: "flagsvc ready" in proxy.program.output(), "ready")
        served = kept.enter_context(secured(proxy.port, context))
        assert status(served) == 200
        with contextlib.ExitStack() as silent:
            for _ in range(40):
                silent.enter_context(connected(proxy.port))
            assert [asked(proxy.port, context) for _ in range(5)] == [503] * 5
            assert status(served) == 200
            for _ in range(100):
                silent.enter_context(connected(proxy.port))
            assert 0 in [asked(proxy.port, context) for _ in range(3)], "one that was cut off makes room for one that is told"
            assert status(served) == 200
        proxy.program.wait(lambda: asked(proxy.port, context) == 200, "having room again", SECONDS)
        assert "Traceback" not in proxy.program.output()


HOOK = """
import os, signal, sys

class Hanging:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("flagsvc.") and name not in ("flagsvc.core", "flagsvc.core.version", "flagsvc.__main__"):
            with open(os.environ["HANGUPS"], "a") as notes:
                print(os.getpid(), name, file=notes)
            os.kill(os.getpid(), signal.SIGHUP)

sys.meta_path.insert(0, Hanging())
"""
"""Run by Python before the program: sends SIGHUP whenever the program is about to load another part of itself."""


def hooked(folder: Path) -> dict[str, str]:
    """Return the environment of a program that gets a SIGHUP at each of its first steps."""
    (folder / "sitecustomize.py").write_text(HOOK)
    return {"PYTHONPATH": f"{folder}:{ROOT / 'src'}", "HANGUPS": str(folder / "hangups")}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_proxy_that_is_just_starting(tmp_path: Path, workers: str) -> None:
    """The proxy starts, answers and ends as usual, and so do its workers."""
    port = free_port()
    env = proxy_environment(document(tmp_path), port, {"FLAGSVC_WORKERS": workers}) | hooked(tmp_path)
    with running("proxy", [sys.executable, "-m", "flagsvc", "proxy"], env=env, folder=tmp_path) as program:
        program.wait(lambda: answers(f"http://127.0.0.1:{port}/proxy/health"), "ready")
        assert program.stop() == 0
    hangups = (tmp_path / "hangups").read_text().splitlines()
    assert len(hangups) > 50 and len({line.split()[0] for line in hangups}) == (1 if workers == "1" else 3)


def test_a_flag_server_that_is_just_starting(tmp_path: Path) -> None:
    """The flag server starts as usual."""
    command = [sys.executable, "-m", "flagsvc", "server", "--port", free_port(), "--database", tmp_path / "flags.db"]
    with running("server", command, env=hooked(tmp_path), folder=tmp_path) as program:
        program.wait(lambda: "flagsvc ready" in program.output(), "ready")
        assert program.stop() == 0


def test_other_commands_end(tmp_path: Path) -> None:
    """SIGHUP ends other commands: a user whose terminal is gone does not want an import to continue."""
    env = clean_environment(tmp_path) | hooked(tmp_path)
    done = subprocess.run([sys.executable, "-m", "flagsvc", "config"], env=env, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == -1
