"""Odd byte streams to a real server process: rubbish, pipelines, cut anywhere, ended in every way a connection can end."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hypothesis import strategies as st

from fuzzing import words
from fuzzing.answers import STATUSES
from fuzzing.proxy import DOCUMENT
from fuzzing.rows import Row
from support.processes import KEY, Proxy, our_proxy

SECONDS = 10.0
AT_ONCE = struct.pack("ii", 1, 0)
STATUS = re.compile(rb"^HTTP/1\.1 (\d{3}) ", re.MULTILINE)


@dataclass(frozen=True)
class Asking:
    """A well-formed request and the status it is answered with."""

    method: str
    target: str
    status: int
    headers: str = ""
    body: bytes = b""

    def written(self) -> bytes:
        """Return the request as it goes over the wire."""
        head = f"{self.method} {self.target} HTTP/1.1\r\nHost: proxy\r\n{self.headers}\r\n"
        return head.encode("latin-1") + self.body


AUTH = f"Authorization: {KEY}\r\n"
REQUESTS = (
    Asking("GET", "/proxy?userId=7", 200, AUTH),
    Asking("GET", "/proxy?properties[a]=%C3%A4&b=" + "x" * 3_000, 200, AUTH + "Accept-Encoding: gzip\r\n"),
    Asking("GET", "/proxy", 401),
    Asking("HEAD", "/proxy", 200, AUTH),
    Asking("GET", "/proxy?userId=1&userId=2", 400, AUTH),
    Asking("GET", "/proxy/all", 200, AUTH),
    Asking("GET", "/proxy/health", 200),
    Asking("HEAD", "/nowhere", 404),
    Asking("GET", "/" + "n" * 2_000, 404),
    Asking("PUT", "/proxy", 405, "Content-Length: 5\r\n", b"hello"),
    Asking("OPTIONS", "/proxy", 204, "Origin: https://a.example\r\nAccess-Control-Request-Headers: authorization\r\n"),
    Asking("POST", "/proxy", 200, AUTH + "Content-Length: 36\r\n", b'{"context": {"userId": "7"}        }'),
    Asking(
        "POST",
        "/proxy",
        200,
        AUTH + "Transfer-Encoding: chunked\r\n",
        b"1\r\n{\r\n1;x=y\r\n}\r\n0\r\nTrailer: 1\r\n\r\n",
    ),
    Asking("POST", "/proxy", 400, AUTH + "Content-Length: 3\r\n", b"[1]"),
    Asking("POST", "/proxy", 415, AUTH + "Content-Type: text/plain\r\nContent-Length: 2\r\n", b"{}"),
    Asking("POST", "/proxy", 413, AUTH + "Content-Length: 102500\r\n", b" " * 102_500),
    Asking("POST", "/proxy", 200, AUTH + "Expect: 100-continue\r\nContent-Length: 2\r\n", b"{}"),
    Asking("POST", "/proxy/client/metrics", 400, AUTH + "Content-Length: 2\r\n", b"{}"),
    Asking("GET", "/proxy?" + "q" * 16_500, 414, AUTH),
    Asking("GET", "/proxy/internal-backstage/prometheus", 200),
)
PIECES = (
    b"\r\n", b"\n", b"\r", b" ", b"\0", b"GET ", b"POST /proxy HTTP/1.1\r\n", b"GET /proxy HTTP/1.1\r\n",
    b"GET / HTTP/9.9\r\n", b" HTTP/1.1\r\n", b"Host: a\r\n",
    b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n",
    b"ffffffffffffffff\r\n", b"-1\r\n", b"Connection: close\r\n", b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
    b"Upgrade: h2c\r\n", b"Expect: 100-continue\r\n",
    b"Expect: x\r\n", b": no name\r\n", b"no colon\r\n", b" folded\r\n", b"X: \xff\xfe\r\n",
    b"X: " + b"y" * 70_000 + b"\r\n", b"GET /" + b"p" * 70_000, b"\x16\x03\x01\x02\0",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n", b"GET http://[::1 HTTP/1.1\r\n",
    b"OPTIONS * HTTP/1.1\r\n", b"Authorization: " + KEY.encode() + b"\r\n",
    b"Content-Type: application/json\r\n", b"Content-Encoding: gzip\r\n", b"\x1f\x8b\x08\0", b'{"context": {}}', b"\xff" * 50,
)  # fmt: skip

rubbish = st.lists(st.sampled_from(PIECES) | st.binary(max_size=30), min_size=1, max_size=10).map(b"".join)
wholes = st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=4).map(lambda asked: b"".join(one.written() for one in asked))
streams = rubbish | words.damaged(wholes) | st.tuples(wholes, rubbish).map(b"".join)
ends = st.sampled_from(("half-close", "half-close", "close", "reset", "leave open"))
cuts = st.lists(st.integers(0, 100_000), max_size=6)


def pieces(data: bytes, where: list[int]) -> list[bytes]:
    """Return the bytes in pieces, cut at these places modulo their number."""
    places = sorted({at % (len(data) + 1) for at in where})
    return [data[begin:end] for begin, end in zip([0, *places], [*places, len(data)], strict=True) if begin < end]


class Target:
    """A running proxy, and the connections to it that were left open."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.open: list[socket.socket] = []
        self._descriptors = Path(f"/proc/{proxy.program.process.pid}/fd")

    def connect(self) -> socket.socket:
        """Return a connection whose small pieces leave at once."""
        connection = socket.create_connection(("127.0.0.1", self.proxy.port), timeout=SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def descriptors(self) -> int:
        """Return how many files and sockets the process has open."""
        return len(list(self._descriptors.iterdir()))

    def check(self) -> None:
        """Check that the process lives and answers a good request; close old connections when there are many."""
        if len(self.open) > 20:
            self.release()
        assert self.proxy.program.process.poll() is None, self.proxy.program.output()
        assert self.proxy.get("?userId=7").status == 200

    def release(self) -> None:
        """Close the connections left open."""
        while self.open:
            self.open.pop().close()


def stream_row(target: Target, given: tuple[bytes, list[int], str]) -> None:
    """Any bytes on a connection get our statuses or no answer, and the next caller is served."""
    data, where, end = given
    connection = target.connect()
    with contextlib.suppress(OSError):  # the proxy may close before everything is sent
        for piece in pieces(data, where):
            connection.sendall(piece)
    answered = finish(target, connection, end)
    statuses = {int(status) for status in STATUS.findall(answered)}
    assert statuses <= STATUSES | {100}, (statuses, answered[:2000])
    target.check()


def finish(target: Target, connection: socket.socket, end: str) -> bytes:
    """End a connection as told, and return what came."""
    if end == "leave open":
        target.open.append(connection)
        return b""
    with contextlib.closing(connection):
        if end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        if end != "half-close":
            return b""
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    """Return what comes until the other side ends the connection; it must not take long."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def pipeline_row(target: Target, given: tuple[list[Asking], list[int]]) -> None:
    """Requests in a pipeline, cut anywhere, are answered in order."""
    asked, where = given
    with contextlib.closing(target.connect()) as connection:
        for piece in pieces(b"".join(each.written() for each in asked), where):
            connection.sendall(piece)
        with connection.makefile("rb") as answered:
            for each in asked:
                status, body = read_one(answered, each.method)
                assert status == each.status, (each, status, body)
    target.check()


def read_one(answered: BinaryIO, method: str) -> tuple[int, bytes]:
    """Return status and body of the next answer; a 100 is passed over."""
    status = int(answered.readline().split()[1])
    head = b"".join(iter(answered.readline, b"\r\n"))
    if status == 100:
        return read_one(answered, method)
    length = re.search(rb"^content-length: (\d+)\r$", head, re.MULTILINE)
    return status, b"" if method == "HEAD" or length is None else answered.read(int(length[1]))


@contextlib.contextmanager
def target() -> Iterator[Target]:
    """Run a proxy in a process of its own; in the end nothing has gone wrong in it and no connection is left."""
    with our_proxy(DOCUMENT.as_uri(), LOG_LEVEL="info", JSON_LOGGER="true") as proxy:
        running = Target(proxy)
        proxy.get()
        before = running.descriptors()
        try:
            yield running
        finally:
            running.release()
        proxy.program.wait(lambda: running.descriptors() <= before, "rid of its connections")
        output = proxy.program.output()
        assert "Traceback" not in output
        assert '"level":"error"' not in output.replace(" ", "")
    assert proxy.program.process.wait() == 0


ROWS: tuple[Row[Target], ...] = (
    Row("streams", st.tuples(streams, cuts, ends), stream_row, 200),
    Row("pipelines", st.tuples(st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=6), cuts), pipeline_row, 100),
)
