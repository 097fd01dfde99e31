"""One probe of a proxy: over TCP and Unix sockets, over TLS, with a client certificate."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flagsvc.cli.probing import ProbeTarget, probe_status
from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames
from support.pki import HOST, Authority, written

AUTHORITY = Authority()
NAMES = CertificateOptionNames("cert", "key", "password")
ANSWER = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"


@contextmanager
def answering(listener: socket.socket, tls: ssl.SSLContext | None = None) -> Iterator[list[bytes]]:
    """Answer one connection and give the requests."""
    asked: list[bytes] = []

    def run() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection if tls is None else tls.wrap_socket(connection, server_side=True) as line:
                asked.append(line.recv(1000))
                line.sendall(ANSWER)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield asked
    finally:
        listener.close()
        thread.join()


def test_names() -> None:
    """The URL of a target has its scheme, host, port and path."""
    assert ProbeTarget("::1", 3000, "/x").url == "http://[::1]:3000/x"
    assert ProbeTarget("host", 3000, "/x", tls=True).url == "https://host:3000/x"
    assert ProbeTarget("unix:/run/p.sock", 0, "/x").url == "http://unix:/run/p.sock:/x"


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
    for pair, answered in (
        (own, True),
        (CertificateFiles(NAMES, str(tmp_path / "gone")), not wanted),
        (None, not wanted),
    ):
        listener = socket.create_server((HOST, 0))
        place = ProbeTarget(HOST, listener.getsockname()[1], "/a", tls=True, own=pair)
        with answering(listener, AUTHORITY.server(wants_certificate=wanted)):
            if answered:
                assert probe_status(place, 5) == 204
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    probe_status(place, 5)
