"""`flagsvc health`: probes the proxy of this configuration, and reports the result as one line and an exit code."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flagsvc.cli import health
from flagsvc.cli.health import LOOPBACK, ProbeTarget, probe_status
from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames
from support.cli_helpers import Flagsvc
from support.http_servers import Reply, Request, http_server
from support.pki import HOST, Authority, written
from support.processes import free_port

AUTHORITY = Authority()
NAMES = CertificateOptionNames("cert", "key", "password")
ANSWER = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"


@contextmanager
def answering(listener: socket.socket, tls: ssl.SSLContext | None = None, answer: bytes = ANSWER) -> Iterator[list[bytes]]:
    """Answer one connection and give the requests."""
    asked: list[bytes] = []

    def run() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection if tls is None else tls.wrap_socket(connection, server_side=True) as line:
                asked.append(line.recv(1000))
                line.sendall(answer)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield asked
    finally:
        listener.close()
        thread.join()


def test_over_tcp_and_over_a_unix_socket(tmp_path: Path) -> None:
    """The probe sends GET for the path and returns the status."""
    listener = socket.create_server((HOST, 0))
    port = listener.getsockname()[1]
    with answering(listener) as asked:
        assert probe_status(ProbeTarget(HOST, port, "/a"), 5) == 204
    assert asked[0].startswith(b"GET /a HTTP/1.1\r\n")
    path = str(tmp_path / "p.sock")
    local = socket.socket(socket.AF_UNIX)
    local.bind(path)
    local.listen()
    with answering(local) as asked:
        assert probe_status(ProbeTarget(f"unix:{path}", 0, "/b"), 5) == 204
    assert asked[0].startswith(b"GET /b HTTP/1.1\r\n")


@pytest.mark.parametrize("wanted", [False, True])
def test_over_tls(tmp_path: Path, wanted: bool) -> None:
    """Any server certificate is accepted. The own certificate is sent if the server requests one and the file can be read."""
    own = CertificateFiles(NAMES, written(tmp_path, "own.pem", AUTHORITY.issue().both))
    for pair, answered in ((own, True), (CertificateFiles(NAMES, str(tmp_path / "gone")), not wanted), (None, not wanted)):
        listener = socket.create_server((HOST, 0))
        place = ProbeTarget(HOST, listener.getsockname()[1], "/a", tls=True, own=pair)
        with answering(listener, AUTHORITY.server(wants_certificate=wanted)):
            if answered:
                assert probe_status(place, 5) == 204
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    probe_status(place, 5)


@dataclass
class Proxy:
    """A fake proxy: answers with the statuses of `script`, and then repeats the last one."""

    port: str = ""
    script: list[int] = field(default_factory=lambda: [200])
    paths: list[str] = field(default_factory=list)

    def answer(self, request: Request) -> Reply:
        """Answer with the next status."""
        self.paths.append(request.path)
        return Reply(self.script.pop(0) if len(self.script) > 1 else self.script[0])


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Return something that answers like a proxy."""
    made = Proxy()
    with http_server(made.answer) as url:
        made.port = url.rpartition(":")[2]
        yield made


def test_ready(flagsvc: Flagsvc, proxy: Proxy) -> None:
    """A ready proxy is exit code 0. Options that concern neither the address nor the base path are ignored."""
    called = flagsvc("health", env={"PORT": proxy.port, "LOG_LEVEL": "wrong"})
    assert called == (0, f"ready: http://127.0.0.1:{proxy.port}/proxy/health\n", "")
    assert flagsvc("health", "--port", proxy.port, env={"PROXY_BASE_PATH": "a/b/"}).code == 0
    assert proxy.paths == ["/proxy/health", "/a/b/proxy/health"]


def test_the_configuration_file(flagsvc: Flagsvc, proxy: Proxy, tmp_path: Path) -> None:
    """The probe reads the proxy's configuration file, given by flag or variable."""
    file = tmp_path / "flagsvc.toml"
    file.write_text(f'port = {proxy.port}\nhost = "0.0.0.0"\n[cors]\norgin = "typo"\n')
    assert flagsvc("health", "--config", str(file)).code == 0
    assert flagsvc("health", env={"FLAGSVC_CONFIG": str(file)}).code == 0


def test_not_ready(flagsvc: Flagsvc, proxy: Proxy) -> None:
    """A proxy without a configuration answers 503: exit code 1, with the status in the message."""
    proxy.script = [503]
    called = flagsvc("health", "--port", proxy.port)
    assert called == (1, f"not ready: http://127.0.0.1:{proxy.port}/proxy/health: it answers 503\n", "")
    assert len(proxy.paths) == 1


def test_the_flag_server(flagsvc: Flagsvc, proxy: Proxy, tmp_path: Path) -> None:
    """With --server the command probes the flag server, and reads its variables, flags and table."""
    place = f"http://127.0.0.1:{proxy.port}"
    own = {"FLAGSVC_SERVER_PORT": proxy.port, "FLAGSVC_SERVER_BASE_PATH": "flags", "PROXY_PORT": "1"}
    assert flagsvc("health", "--server", env=own) == (0, f"ready: {place}/flags/ready\n", "")
    given = ["--server", "--port", proxy.port, "--base-path", "f"]
    assert flagsvc("health", *given, env=own) == (0, f"ready: {place}/f/ready\n", "")
    file = tmp_path / "flagsvc.toml"
    file.write_text(f"port = 1\n[server]\nport = {proxy.port}\n")
    assert flagsvc("health", "--server", env={"FLAGSVC_CONFIG": str(file)}).code == 0
    proxy.script = [503]
    called = flagsvc("health", "--server", "--config", str(file))
    assert called == (1, f"not ready: {place}/ready: it answers 503\n", "")


def test_any_of_both(flagsvc: Flagsvc, proxy: Proxy) -> None:
    """With --any a ready program is enough, also if the other program has no usable address. Else the answer is printed."""
    place, closed = f"http://127.0.0.1:{proxy.port}", str(free_port())
    for port, own, path in ((proxy.port, closed, "/proxy/health"), (closed, proxy.port, "/ready"), ("0", proxy.port, "/ready")):
        called = flagsvc("health", "--any", env={"PROXY_PORT": port, "FLAGSVC_SERVER_PORT": own})
        assert called == (0, f"ready: {place}{path}\n", "")
    proxy.script = [503]
    called = flagsvc("health", "--any", env={"PROXY_PORT": closed, "FLAGSVC_SERVER_PORT": proxy.port})
    assert called == (1, f"not ready: {place}/ready: it answers 503\n", "")
    called = flagsvc("health", "--any", env={"PROXY_PORT": "0", "FLAGSVC_SERVER_PORT": "0"})
    assert called.code == 2 and called.err.startswith("flagsvc health: port (")


def test_waiting(flagsvc: Flagsvc, proxy: Proxy) -> None:
    """With --wait the command repeats the probe until the proxy is ready, or until the time is over."""
    proxy.script = [503, 503, 200]
    assert flagsvc("health", "--port", proxy.port, "--wait", "20").code == 0
    assert len(proxy.paths) == 3
    port = free_port()
    called = flagsvc("health", "--port", str(port), "--wait", "0.3")
    assert called == (1, f"not ready: http://127.0.0.1:{port}/proxy/health: there is no listener\n", "")


def test_no_answer(flagsvc: Flagsvc, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe fails for an answer that is not HTTP, for an unknown host, and after its time limit."""
    server = socket.create_server((HOST, 0))
    port = str(server.getsockname()[1])
    with answering(server, answer=b"220 mail ready\r\n"):
        called = flagsvc("health", "--port", port)
    assert called.code == 1 and called.out.endswith(": no http answer\n")
    called = flagsvc("health", "--host", "no-such-host.invalid")
    assert called.code == 1 and called.out.startswith("not ready: http://no-such-host.invalid:3000/proxy/health: ")
    monkeypatch.setattr(health, "PROBE_TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        called = flagsvc("health", "--port", str(silent.getsockname()[1]))
    assert called.code == 1 and called.out.endswith(": no answer in time\n")


@pytest.mark.parametrize(
    ("host", "asked"),
    [(None, "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "127.0.0.1"), ("::1", "[::1]"), ("10.9.8.7", "10.9.8.7")],
)
def test_which_address_is_asked(host: str | None, asked: str, flagsvc: Flagsvc, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a wildcard address the probe uses the loopback address. Otherwise it uses the address itself."""
    monkeypatch.setattr(health, "_probe", lambda target, timeout: (True, ""))
    called = flagsvc("health", env={"FLAGSVC_HOST": host} if host else {})
    assert called.out == f"ready: http://{asked}:3000/proxy/health\n"
    assert LOOPBACK.get(host, host) == asked.strip("[]")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--port", "x"), "port (flag --port): expected a port number from 0 to 65535, got `x`\n"),
        (("--port", "0"), "port (flag --port): 0 is any free port, so nothing says which one to ask\n"),
        (("--server", "--port", "0"), "port (flag --port): 0 is any free port, so nothing says which one to ask\n"),
        (("--server", "--port", "x"), "port (flag --port): expected a port number from 0 to 65535, got `x`\n"),
        (("--server", "--proxy-base-path", "x"), "`--proxy-base-path` is an option of the proxy: leave out `--server`\n"),
        (("--base-path", "x"), "`--base-path` is an option of the flag server: add `--server`\n"),
        (("--host", "a b"), "host (flag --host): expected a host name, an IP address, or unix:/path"),
        (("--admin-address", ":0"), "adminAddress (flag --admin-address): 0 is any free port"),
        (("--tls-key", "key.pem"), "tlsKey (flag --tls-key): has no effect without tlsCert"),
        (("--config", "/no/such.toml"), "configuration file /no/such.toml: cannot read it: no such file or directory"),
    ],
)
def test_a_configuration_that_does_not_say_where(arguments: tuple[str, ...], problem: str, flagsvc: Flagsvc) -> None:
    """An address that is invalid or unknown is exit code 2."""
    called = flagsvc("health", *arguments)
    assert (called.code, called.out) == (2, "") and called.err.startswith(f"flagsvc health: {problem}")


def test_the_operators_address_is_asked_where_there_is_one(flagsvc: Flagsvc, proxy: Proxy) -> None:
    """The operators' address needs no certificate, even if callers do."""
    called = flagsvc("health", "--port", "1", env={"FLAGSVC_ADMIN_ADDRESS": f":{proxy.port}", "FLAGSVC_TLS_CERT": "/gone"})
    assert called == (0, f"ready: http://127.0.0.1:{proxy.port}/proxy/health\n", "")


def test_a_unix_socket(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """Callers' and operators' sockets are probed by path; a missing file means that there is no listener."""
    for variable in ("FLAGSVC_HOST", "FLAGSVC_ADMIN_ADDRESS"):
        called = flagsvc("health", env={variable: f"unix:{tmp_path}/p.sock"})
        assert called == (1, f"not ready: http://unix:{tmp_path}/p.sock:/proxy/health: there is no listener\n", "")


def test_tls(flagsvc: Flagsvc, proxy: Proxy, tmp_path: Path) -> None:
    """A certificate for any name is accepted on this machine. An answer without TLS is reported, with what to do."""
    pair = written(tmp_path, "both.pem", AUTHORITY.issue("elsewhere.example").both)
    called = flagsvc("health", "--port", proxy.port, "--tls-cert", pair)
    assert called.code == 1 and "no answer over TLS" in called.out and "adminAddress" in called.out
    with http_server(proxy.answer, tls=AUTHORITY.server()) as url:
        called = flagsvc("health", "--port", url.rpartition(":")[2], "--tls-cert", pair)
    assert called == (0, f"ready: {url}/proxy/health\n", "")
