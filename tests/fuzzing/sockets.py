"""Odd byte streams to a real server process: cut anywhere, ended in every way a connection can end."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from fuzzing.answers import STATUSES
from fuzzing.proxy import DOCUMENT
from fuzzing.rows import Row
from fuzzing.streams import cut_up, cuts, streams
from support.processes import Proxy, our_proxy

KEY = "client-key"
SECONDS = 10.0
AT_ONCE = struct.pack("ii", 1, 0)
STATUS = re.compile(rb"^HTTP/1\.1 (\d{3}) ", re.MULTILINE)
LARGE = (b"X: " + b"y" * 70_000 + b"\r\n", b"GET /" + b"p" * 70_000)
sent = streams | st.tuples(streams, st.sampled_from(LARGE)).map(b"".join)
ends = st.sampled_from(("half-close", "half-close", "close", "reset", "leave open"))


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
        return len(list(self._descriptors.iterdir()))

    def check(self) -> None:
        """Check that the process lives and answers a good request; close old connections when there are many."""
        if len(self.open) > 20:
            self.release()
        assert self.proxy.program.process.poll() is None, self.proxy.program.output()
        assert self.proxy.get("?userId=7").status == 200

    def release(self) -> None:
        while self.open:
            self.open.pop().close()


def stream_row(target: Target, given: tuple[bytes, list[int], str]) -> None:
    """Any bytes on a connection get our statuses or no answer, and the next caller is served."""
    data, where, end = given
    connection = target.connect()
    with contextlib.suppress(OSError):  # the proxy may close before everything is sent
        for piece in cut_up(data, where):
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


@contextlib.contextmanager
def target() -> Iterator[Target]:
    """Run a proxy in a process of its own; in the end nothing has gone wrong in it and no connection is left."""
    env = {"UNLEASH_PROXY_CLIENT_KEYS": KEY, "LOG_LEVEL": "info", "JSON_LOGGER": "true"}
    with our_proxy(DOCUMENT.as_uri(), **env) as started:
        proxy = replace(started, headers={"Authorization": KEY})
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


ROWS: tuple[Row[Target], ...] = (Row("streams", st.tuples(sent, cuts, ends), stream_row, 200),)
