"""TLS of the listening sockets: versions, client certificates, and files that change or cannot be used.

A connection over TLS is counted once, from before its handshake until it is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.process import tls as secure
from flagsvc.process.listen import listen, serve_socket
from flagsvc.process.process import loop_factory
from flagsvc.process.tls import Tls, TlsServer, make_tls, serve_tls_connection
from flagsvc.settings.server import ServerOptions
from flagsvc.testing import RecordingLog
from support.aio import until
from support.pki import HOST, Authority, serial, written

OURS, THEIRS = Authority(), Authority()


class Counting:
    """Makes protocols; `room` of them are accepted.

    `opening` are in their handshake, `made` have finished it, `over` have heard of its end.
    """

    def __init__(self, room: int = 10, *, closes: bool = True) -> None:
        self.room, self.closes = room, closes
        self.opening = self.made = self.over = 0

    def __call__(self) -> Any:
        return Hello(self)


class Hello(asyncio.Protocol):
    """Sends one word and, as the counting says, closes the connection."""

    def __init__(self, counting: Counting) -> None:
        self.counting = counting

    def handshake_begins(self) -> bool:
        if self.counting.opening >= self.counting.room:
            return False
        self.counting.opening += 1
        return True

    def handshake_over(self) -> None:
        self.counting.opening -= 1
        self.counting.over += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.counting.made += 1
        cast("asyncio.Transport", transport).write(b"hello")
        if self.counting.closes:
            transport.close()


@asynccontextmanager
async def serving(
    counting: Counting, handshake_s: float = 10, context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[TlsServer, int]]:
    """Serve until the block ends; give the server and its port."""
    [sock] = listen(HOST, 0)
    port = sock.getsockname()[1]
    server = cast("TlsServer", await serve_socket(sock, counting, context or OURS.server(), handshake_s))
    try:
        yield server, port
    finally:
        server.close()
        await server.wait_closed()


async def said(port: int, context: ssl.SSLContext) -> bytes:
    """Return the bytes received over TLS; empty if the connection is cut off."""
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection(HOST, port, ssl=context)
        with contextlib.closing(writer):
            return await reader.read()
    return b""


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except OSError:
        return True


async def silence(port: int, number: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Return open connections on which no bytes are sent."""
    return [await asyncio.open_connection(HOST, port) for _ in range(number)]


async def counted() -> None:
    """Open silent connections, a talking connection, and a connection above the limit; check their counts."""
    counting, context = Counting(room=3), OURS.client()
    async with serving(counting) as (_, port):
        assert await said(port, context) == b"hello"
        await until(lambda: counting.over == 1)
        silent = await silence(port, 2)
        await until(lambda: counting.opening == 2)
        assert await said(port, context) == b"hello"
        silent += await silence(port, 1)
        await until(lambda: counting.opening == 3)
        assert await said(port, context) == b""
        [more] = await silence(port, 1)
        assert await ended(more[0])
        silent[0][1].close()
        silent[1][1].write(b"no greeting")
        await until(lambda: counting.opening == 1)
        assert await said(port, context) == b"hello"
        await until(lambda: counting.over == 5)
        for _, writer in (*silent, more):
            writer.close()
        assert counting.made == 3
        await until(lambda: counting.opening == 0)


async def timed() -> None:
    """Advance the time until silent connections are closed."""
    counting = Counting()
    async with serving(counting, 0.1) as (_, port):
        silent = await silence(port, 2)
        assert all([await ended(reader) for reader, _ in silent])
        await until(lambda: (counting.opening, counting.over, counting.made) == (0, 2, 0))
        for _, writer in silent:
            writer.close()


@pytest.mark.parametrize("loop", [None, loop_factory()], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("scene", [counted, timed])
def test_those_in_their_handshake(scene: Callable[[], Awaitable[None]], loop: object) -> None:
    """Connections are counted during their handshake. Without room they are closed at once, in both event loops."""
    with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
        runner.run(asyncio.wait_for(scene(), 20))


async def test_a_closed_one_takes_nobody() -> None:
    """Open connections continue. The socket is closed once."""
    counting, context = Counting(), OURS.client()
    async with serving(counting) as (server, port):
        assert [each.getsockname()[1] for each in server.sockets] == [port]
        [(reader, writer)] = await silence(port, 1)
        await until(lambda: counting.opening == 1)
        server.close()
        assert server.sockets == ()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HOST, port)
        await writer.start_tls(context, server_hostname=HOST)
        assert await reader.read() == b"hello"
        writer.close()


class Refusing(socket.socket):
    """A listening socket whose `accept` raises each of its errors once before it accepts connections."""

    errors: list[int]

    def accept(self) -> tuple[socket.socket, object]:
        """Accept a connection, or raise the next error."""
        if self.errors:
            raise OSError(self.errors.pop(), "no")
        return super().accept()


@pytest.mark.parametrize("errors", [[errno.EMFILE, errno.ENFILE], [errno.ECONNABORTED], [errno.EMFILE, errno.EAGAIN]])
async def test_no_room_in_the_system(errors: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepting pauses and then continues. A caller that has already gone does not cause a pause."""
    monkeypatch.setattr(secure, "RETRY_S", 0.05)
    counting = Counting()
    [sock] = listen(HOST, 0)
    with Refusing(fileno=sock.detach()) as refusing:
        refusing.errors = list(errors)
        server = TlsServer(refusing, counting, OURS.server(), 10)
        assert await said(refusing.getsockname()[1], OURS.client()) == b"hello"
        assert refusing.errors == []
        server.close()
        server.close()
    server._listen()  # whoever was to go on after a pause does not


async def test_one_that_was_taken_by_hand() -> None:
    """At the end of a server, the handshake is waited for, and a connection without room is closed."""
    for room in (1, 0):
        counting = Counting(room)
        with socket.create_server((HOST, 0)) as door:
            door.setblocking(False)
            calling = asyncio.ensure_future(said(door.getsockname()[1], OURS.client()))
            taken, _ = await asyncio.get_running_loop().sock_accept(door)
            await serve_tls_connection(taken, counting, OURS.server(), 10)
            assert (counting.made, await calling) == (room, b"hello" * room)


def given(cert: str | None = None, **more: Any) -> ServerOptions:
    return ServerOptions(database="flags.db", tls_cert=cert, **more)


async def call(port: int, context: ssl.SSLContext) -> ssl.SSLObject | None:
    """Return the other side's certificate and version; None if it does not answer."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        reader, writer = await asyncio.open_connection(HOST, port, ssl=context)
        with contextlib.closing(writer):
            assert await reader.readexactly(5) == b"hello"
            found: ssl.SSLObject = writer.get_extra_info("ssl_object")
            return found
    return None


def only(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = OURS.client()
    context.minimum_version = context.maximum_version = version
    return context


async def test_versions_and_protocol(tmp_path: Path) -> None:
    """TLS 1.2 and 1.3 are accepted, or 1.3 alone; nothing below. HTTP/1.1 is negotiated."""
    both = written(tmp_path, "both.pem", OURS.issue().both)
    for lowest, spoken in (("1.2", [True, True]), ("1.3", [False, True])):
        tls = Tls(given(both, tls_min_version=lowest), RecordingLog())
        async with serving(Counting(closes=False), context=tls.context) as (_, port):
            found = [await call(port, only(each)) for each in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)]
            assert [each is not None for each in found] == spoken
            caller = OURS.client()
            caller.set_alpn_protocols(["h2", "http/1.1"])
            peer = await call(port, caller)
            assert peer is not None and peer.selected_alpn_protocol() == "http/1.1"


async def changes(folder: Path) -> None:
    """Change certificate and authorities under a server."""
    log = RecordingLog()
    cert, ca = written(folder, "a.pem", OURS.issue().both), written(folder, "ca", OURS.pem)
    tls = Tls(given(cert, tls_client_ca=ca), log)
    async with serving(Counting(closes=False), context=tls.context) as (_, port):
        caller = OURS.client(shown=True)
        before = await call(port, caller)
        reader, writer = await asyncio.open_connection(HOST, port, ssl=caller)
        await reader.readexactly(5)
        written(folder, "a.pem", OURS.issue().both)
        assert tls.reload()
        after = await call(port, caller)
        assert after is not None and tls.expiry == ssl.cert_time_to_seconds(str((after.getpeercert() or {})["notAfter"]))
        assert before is not None and serial(before) != serial(after)
        assert not reader.at_eof()  # what was begun goes on
        writer.close()
        written(folder, "a.pem", "nothing")
        assert not tls.reload()
        still = await call(port, caller)
        assert still is not None and serial(still) == serial(after)
        written(folder, "a.pem", OURS.issue().both)
        written(folder, "ca", THEIRS.pem)
        assert tls.reload()
        assert await call(port, caller) is None  # nor by resuming a session that was good before
    assert [line.event for line in log.lines if line.level == "error"] == ["the new TLS files are refused"]


@pytest.mark.parametrize("make", [None, loop_factory()], ids=["asyncio", "uvloop"])
def test_files_are_read_anew(make: object, tmp_path: Path) -> None:
    """The next handshake has the new ones, in both event loops; a pair that cannot be used changes nothing."""
    with asyncio.Runner(loop_factory=make) as runner:  # type: ignore[arg-type]
        runner.run(asyncio.wait_for(changes(tmp_path), 30))


async def test_changed_files_are_noticed(tmp_path: Path) -> None:
    """Changed files are noticed by regular checks. A failed check is not the last one."""
    log = RecordingLog()
    async with Tls(given(written(tmp_path, "a.pem", OURS.issue().both)), log, 0.01):
        for text, events in (("x", 1), (OURS.issue().both, 2)):
            written(tmp_path, "a.pem", text)
            await until(lambda: len(log.lines) == events)  # noqa: B023
    assert [line.level for line in log.lines] == ["error", "info"]


def test_none_without_a_certificate(tmp_path: Path) -> None:
    """Without a certificate there is no TLS. A file that cannot be used stops the start."""
    assert make_tls(given(), RecordingLog()) is None
    path = written(tmp_path, "a.pem", OURS.issue().cert)
    with pytest.raises(ConfigurationError, match=r"tlsCert: .* holds no key in PEM form; give tlsKey"):
        make_tls(given(path), RecordingLog())
    good = given(written(tmp_path, "b.pem", OURS.issue().both), tls_client_ca=str(tmp_path / "gone"))
    with pytest.raises(ConfigurationError, match="tlsClientCa: cannot read"):
        make_tls(good, RecordingLog())
