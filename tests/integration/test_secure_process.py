"""`flagsvc proxy` and `flagsvc server` as processes over TLS, on Unix sockets, and with an address for operators."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from flagsvc.cli.health import ProbeTarget, probe_status
from support.fake_upstream import FakeUpstream, Reply
from support.pki import HOST, Authority, serial, written
from support.processes import KEY, LISTENING, Program, Proxy, answers, ask, call, flagsvc, free_port, proxy_environment, running
from support.waiting import threads, wait_until
from support.worker_pools import workers

AUTHORITY = Authority()
PROCESSES = pytest.mark.parametrize("number", [1, 2], ids=["alone", "workers"])
METRICS = "/proxy/internal-backstage/prometheus"
FEATURES = "/api/client/features"


@contextmanager
def proxy(upstream: FakeUpstream, folder: Path, port: int, number: int = 1, **env: str) -> Iterator[Program]:
    """Run the proxy until the block ends; it begins when it is listening."""
    given = {"FLAGSVC_WORKERS": str(number), "FLAGSVC_WATCH_INTERVAL": "1", "FLAGSVC_SHUTDOWN_GRACE": "0", **env}
    variables = proxy_environment(upstream.url, port, given)
    with running("proxy", [*flagsvc(), "proxy"], env=variables, folder=folder) as program:
        program.wait(lambda: "listening on" in program.output(), "listening")
        yield program


def ready(program: Program) -> None:
    """Wait until it says so."""
    program.wait(lambda: "flagsvc ready" in program.output(), "ready")


@contextmanager
def line(port: int, context: ssl.SSLContext) -> Iterator[http.client.HTTPSConnection]:
    """Give a connection over TLS."""
    with contextlib.closing(http.client.HTTPSConnection(HOST, port, context=context, timeout=20)) as connection:
        connection.connect()
        yield connection


def status(connection: http.client.HTTPConnection, path: str = "/proxy") -> int:
    """Ask on a connection that is kept."""
    connection.request("GET", path, headers={"Authorization": KEY})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def shown(port: int, caller: ssl.SSLContext) -> str:
    """Return which certificate a new connection gets to see."""
    with line(port, caller) as connection:
        assert status(connection) == 200 and isinstance(connection.sock, ssl.SSLSocket)
        return serial(connection.sock)


def probe(folder: Path, port: int, env: Mapping[str, str]) -> tuple[int, str]:
    """Return exit code and text of `flagsvc health`."""
    return call("health", folder=folder, env=proxy_environment("http://127.0.0.1:1", port, env))[:2]


@PROCESSES
def test_a_new_certificate_without_a_restart(upstream: FakeUpstream, tmp_path: Path, number: int) -> None:
    """Changed files, or SIGHUP: every process shows the new one, kept connections go on, a bad pair changes nothing."""
    pair, port, caller = written(tmp_path, "pair.pem", AUTHORITY.issue().both), free_port(), AUTHORITY.client()
    env = {"FLAGSVC_TLS_CERT": pair, "LOG_LEVEL": "info"}
    with proxy(upstream, tmp_path, port, number, **env) as program:
        ready(program)
        assert f"{LISTENING} https://localhost:{port}/proxy" in program.output()
        assert probe(tmp_path, port, env) == (0, f"ready: https://127.0.0.1:{port}/proxy/health\n")
        first = shown(port, caller)
        with line(port, caller) as kept:
            assert status(kept) == 200
            written(tmp_path, "pair.pem", AUTHORITY.issue().both)
            program.wait(lambda: program.output().count("TLS files read again") == number, "reading them again")
            second = {shown(port, caller) for _ in range(8)}
            assert len(second) == 1 and first not in second
            written(tmp_path, "pair.pem", "nothing")
            program.wait(lambda: program.output().count("the new TLS files are refused") == number, "refusing them")
            assert {shown(port, caller) for _ in range(8)} == second
            os.kill(program.process.pid, signal.SIGHUP)
            program.wait(lambda: program.output().count("the new TLS files are refused") == 2 * number, "asked to")
            written(tmp_path, "pair.pem", AUTHORITY.issue().both)
            os.kill(program.process.pid, signal.SIGHUP)
            program.wait(lambda: program.output().count("TLS files read again") >= 2 * number, "asked to")
            assert {shown(port, caller) for _ in range(8)}.isdisjoint(second | {first})
            assert status(kept) == 200
        with pytest.raises((OSError, http.client.HTTPException)):
            probe_status(ProbeTarget(HOST, port, "/proxy/live"), 10)
        if number > 1:  # a worker that begins while the files are bad says why it cannot, the others answer
            written(tmp_path, "pair.pem", "nothing")
            os.kill(workers(Proxy("", 0, program))[0], signal.SIGKILL)
            program.wait(lambda: "a worker cannot start" in program.output(), "saying so")
            shown(port, caller)
        assert program.stop() == 0 and "Traceback" not in program.output()


def test_callers_with_certificates(upstream: FakeUpstream, tmp_path: Path) -> None:
    """Others get no answer; probes have the operators' address, or a certificate that serves both sides."""
    pair, port = written(tmp_path, "pair.pem", AUTHORITY.issue().both), free_port()
    env = {"FLAGSVC_TLS_CERT": pair, "FLAGSVC_TLS_CLIENT_CA": written(tmp_path, "ca.pem", AUTHORITY.pem)}
    admin = f"unix:{tmp_path}/admin.sock"
    with proxy(upstream, tmp_path, port, 2, **env, FLAGSVC_ADMIN_ADDRESS=admin) as program:
        ready(program)
        shown(port, AUTHORITY.client(shown=True))
        with pytest.raises((OSError, http.client.HTTPException)):
            shown(port, AUTHORITY.client())
        assert "ssl" not in program.output().lower()  # what callers do wrong is nothing to log
        assert probe(tmp_path, port, {**env, "FLAGSVC_ADMIN_ADDRESS": admin})[0] == 0
        assert probe(tmp_path, port, env)[0] == 0
        assert program.stop() == 0
    assert not list(tmp_path.glob("*.sock"))


@PROCESSES
def test_a_unix_socket(upstream: FakeUpstream, tmp_path: Path, number: int) -> None:
    """The socket works for all workers, replaces one that a killed process left, and is removed at the end."""
    host = f"unix:{tmp_path}/p.sock"
    env = {"FLAGSVC_HOST": host, "TRUST_PROXY": "true"}
    place = ProbeTarget(host, 0, "/proxy/health")
    with proxy(upstream, tmp_path, 3000, number, **env) as program:
        ready(program)
        assert f"{LISTENING} http://{host}:/proxy\n" in program.output()
        assert [probe_status(place, 10) for _ in range(8)] == [200] * 8
        assert probe(tmp_path, 3000, env) == (0, f"ready: http://{host}:/proxy/health\n")
        os.kill(program.process.pid, signal.SIGKILL)
        program.process.wait(10)
        assert Path(f"{tmp_path}/p.sock").exists()
        with contextlib.suppress(OSError):  # workers end by themselves when their parent is gone
            wait_until(lambda: probe_status(place, 10) != 200)
    with proxy(upstream, tmp_path, 3000, number, **env) as program:
        ready(program)
        assert probe_status(place, 10) == 200
        with running("other", [*flagsvc(), "proxy"], env=proxy_environment(upstream.url, 1, env), folder=tmp_path) as other:
            assert other.process.wait(20) == 1
            assert "another program is listening there" in other.output()
        assert probe_status(place, 10) == 200
        if number > 1:
            killed = workers(Proxy("", 0, program))[0]
            os.kill(killed, signal.SIGKILL)
            program.wait(lambda: "is replaced" in program.output(), "replacing a worker")
            wait_until(lambda: probe_status(place, 10) == 200)
        assert program.stop() == 0
    assert not list(tmp_path.glob("*.sock"))


def test_operators_have_their_own_address(upstream: FakeUpstream, tmp_path: Path) -> None:
    """Metrics answer there while there is no configuration, and nowhere else; readiness fails there first of all."""
    upstream.replies[FEATURES] = Reply(503)
    port, admin = free_port(), free_port()
    here, there = f"http://{HOST}:{port}", f"http://{HOST}:{admin}"
    env = {"FLAGSVC_ADMIN_ADDRESS": f"{HOST}:{admin}", "FLAGSVC_SHUTDOWN_GRACE": "60", "FLAGSVC_STORAGE": "none"}
    with proxy(upstream, tmp_path, port, 2, **env) as program:
        said = [each for each in program.output().splitlines() if each.startswith("flagsvc ")]
        assert said[0].startswith(f"{LISTENING} http://localhost:{port}/proxy (all addresses, ")
        assert said[1] == f"flagsvc admin on {there}"
        statuses = {"/metrics": 200, METRICS: 200, "/livez": 200, "/proxy/live": 200, "/readyz": 503}
        assert {path: answers(f"{there}{path}", code) for path, code in statuses.items()} == dict.fromkeys(statuses, True)
        assert answers(f"{here}{METRICS}", 503) and answers(f"{here}/livez")
        del upstream.replies[FEATURES]
        ready(program)
        assert answers(f"{here}{METRICS}", 404) and answers(f"{here}/metrics", 404)
        assert answers(f"{there}/readyz") and answers(f"{there}/proxy/health") and answers(f"{there}/proxy", 404)
        for _ in range(5):
            assert answers(f"{here}/proxy", 401)
        refused = b'flagsvc_http_requests_total{method="GET",route="/proxy",status="401"} 5.0'
        # the test does not wait for a worker that gets no processor for a quarter of a second
        program.wait(lambda: refused in ask(f"{there}/metrics").body, "telling of all")
        assert b"flagsvc_workers 2.0" in ask(f"{there}/metrics").body
        program.process.send_signal(signal.SIGTERM)
        program.wait(lambda: answers(f"{there}/readyz", 503), "failing its readiness")
        assert answers(f"{here}/livez") and answers(f"{there}/metrics")
        assert program.stop() == 0  # a second signal cuts the grace short


def test_the_flag_server_speaks_tls_and_listens_on_unix_sockets(tmp_path: Path) -> None:
    """It has the same machinery: a proxy reads its flags over both kinds of TLS options."""
    pair = written(tmp_path, "pair.pem", AUTHORITY.issue().both)
    for host, port in ((HOST, free_port()), (f"unix:{tmp_path}/s.sock", 0)):
        env = {"FLAGSVC_TLS_CERT": pair, "FLAGSVC_SERVER_HOST": host, "FLAGSVC_SERVER_PORT": str(port)}
        with running("server", [*flagsvc(), "server"], env=env, folder=tmp_path) as program:
            ready(program)
            assert probe_status(ProbeTarget(host, port, "/health", tls=True), 10) == 200
            assert program.stop() == 0
    assert not list(tmp_path.glob("*.sock"))


@PROCESSES
def test_reloading_certificates_disturbs_no_request(
    upstream: FakeUpstream, tmp_path: Path, number: int, record_property: Callable[[str, object], None]
) -> None:
    """While certificates change repeatedly, every handshake succeeds and every request is answered."""
    pair, port, caller = written(tmp_path, "pair.pem", AUTHORITY.issue().both), free_port(), AUTHORITY.client()
    over, seen, failed = threading.Event(), list[str](), list[str]()

    def ask() -> None:
        while not over.is_set():
            try:
                seen.append(shown(port, caller))
            except (OSError, http.client.HTTPException, AssertionError) as error:
                failed.append(repr(error))

    with proxy(upstream, tmp_path, port, number, FLAGSVC_TLS_CERT=pair, LOG_LEVEL="info") as program:
        ready(program)
        with threads(*[ask] * 4, stop=over.set):
            for time in range(1, 11):
                written(tmp_path, "next.pem", AUTHORITY.issue().both)
                os.replace(tmp_path / "next.pem", pair)
                os.kill(program.process.pid, signal.SIGHUP)
                read = partial(anew, program, time * number)
                program.wait(read, "reading them again")
        assert program.stop() == 0
    record_property("handshakes", len(seen))
    assert failed == [] and len(set(seen)) > 5


def anew(program: Program, times: int) -> bool:
    """Return whether all processes together have read the files again so often."""
    return program.output().count("TLS files read again") >= times
