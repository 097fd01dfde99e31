"""The upstream session over real sockets: which connections it opens, keeps and gives up, and odd but right answers.

The session with the upstream over TLS: authorities of one's own, a certificate of one's own, and both changed while it runs.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import gzip
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
import uvloop

from flagsvc.core.certificates import CertificateFiles
from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import UpstreamError
from flagsvc.http.client import connection, transport
from flagsvc.http.client.answers import Body
from flagsvc.http.client.trust import OWN
from flagsvc.proxy.upstream import Limits, Outbound, Trust, Upstream, download
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import asynchronous, until
from support.loopback import Behave, Request, Writer, loopback, reply, silence, then_close, tunnel
from support.pki import Authority, written
from support.upstream_session import DOCUMENT, fault, options, session

LOOPS = pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

# ---- odd but right answers


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n" + reply(200, DOCUMENT),
        then_close(reply(200, DOCUMENT, content_length="-")),
        then_close(reply(200, gzip.compress(DOCUMENT), content_length="-", content_encoding="gzip")),
        then_close(reply(200, DOCUMENT).replace(b"HTTP/1.1", b"HTTP/1.0")),
        reply(200, b"5\r\n" + DOCUMENT[:5] + b"\r\n16\r\n" + DOCUMENT[5:] + b"\r\n0\r\nx-late: 1\r\n\r\n", content_length="-")
        .replace(b"200 Some Words\r\n", b"200 \r\nTransfer-Encoding: chunked\r\n"),
    ],
    ids=["interim answers", "no length", "no length, packed", "http 1.0", "chunks"],
)  # fmt: skip
@asynchronous
async def test_an_odd_answer_is_an_answer(answer: bytes | Behave) -> None:
    """Every form that HTTP allows is read, and the next request works."""
    assert len(DOCUMENT) == 5 + 0x16
    async with session() as (server, upstream):
        server.script(answer)
        assert (await upstream.get_features(None)).body == DOCUMENT
        assert (await upstream.get_features(None)).body == DOCUMENT


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "network"),
        (b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "unexpected"),
        (then_close(b"HTTP/1.1 200 OK\r\nContent-Le"), "network"),
        (then_close(b"HTTP/1.1 100 Continue\r\n\r\n"), "network"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "network"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "network"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "network"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "network"),
        (CHUNKED + b"0\r\nx: " + b"x" * 70_000, "document"),
        (CHUNKED + b"2\r\n{}\r\n" + b"0;a=" + b"x" * 400_000, "document"),
    ],
    ids=[
        *("endless head", "another protocol", "half a head", "only an interim answer", "no length at all"),
        *("length and chunks", "two lengths", "another transfer coding", "endless trailer", "endless extension"),
    ],
)
@asynchronous
async def test_what_is_no_answer_is_an_error(answer: bytes | Behave, kind: str) -> None:
    """Only the connection is lost."""
    async with session() as (server, upstream):
        server.script(answer, reply(200, DOCUMENT))
        assert (await fault(upstream)).kind == kind
        assert (await upstream.get_features(None)).body == DOCUMENT


@asynchronous
async def test_an_etag_is_told_as_it_came() -> None:
    """Bytes beyond ASCII are sent back unchanged if they are UTF-8. Repeated headers are a list."""
    async with session() as (server, upstream):
        server.script(reply(200, DOCUMENT, etag='"\u00c3\u00a4"'))  # latin-1 on the wire: the UTF-8 of ä
        fetched = await upstream.get_features(None)
        assert fetched.etag == '"ä"'
        await upstream.get_features(fetched.etag)
        server.script(reply(200, DOCUMENT, etag='"\u00e4"', ETag='"b"'))
        assert (await upstream.get_features(None)).etag == '"ä", "b"'
    assert server.requests[1].headers["if-none-match"].encode("latin-1") == '"ä"'.encode()


@asynchronous
async def test_an_address_may_hold_any_character() -> None:
    """Characters that a request line cannot contain are percent-encoded. Existing escapes stay."""
    async with session("/a b/ä%20(1)") as (server, upstream):
        await upstream.get_features(None)
    assert server.requests[0].target == "/a%20b/%C3%A4%20(1)/client/features"


@asynchronous
async def test_user_and_password_of_a_bootstrap_address_are_its_authorization() -> None:
    """`https://user:password@host/…`, escapes undone."""
    async with loopback() as server:
        url = f"http://us%65r:p%40ss@127.0.0.1:{server.port}/flags?x=%20y z"
        await download(url, authorization="no", trust=Trust(), outbound=Outbound(), clock=SystemClock())
    (request,) = server.requests
    assert request.target == "/flags?x=%20y%20z"
    assert request.headers["authorization"] == "Basic " + base64.b64encode(b"user:p@ss").decode()


# ---- which connections are kept


@asynchronous
async def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    """Whether it says so or just does."""
    async with session() as (server, upstream):
        server.script(reply(200, DOCUMENT, connection="close"), reply(202))
        await upstream.get_features(None)
        await upstream.send_metrics({})
        assert server.connections == 2
        server.end()
        await until(lambda: upstream_idle(upstream) == [False])
        await upstream.send_metrics({})
        assert server.connections == 3


@asynchronous
async def test_an_answer_that_nobody_asked_for_is_never_taken_for_one() -> None:
    """The connection it comes over is given up."""
    async with session() as (server, upstream):
        server.script(reply(200, DOCUMENT) + reply(200, b"evil"), reply(200, DOCUMENT))
        await upstream.get_features(None)
        assert (await upstream.get_features(None)).body == DOCUMENT
        assert server.connections == 2

    late: list[Writer] = []

    async def answer(_: Request, __: asyncio.StreamReader, writer: Writer) -> None:
        writer.write(reply(200, DOCUMENT))
        late.append(writer)

    async with session() as (server, upstream):
        server.script(answer)
        await upstream.get_features(None)
        late[0].write(reply(200, b"evil"))
        await until(lambda: upstream_idle(upstream) == [False])
        assert (await upstream.get_features(None)).body == DOCUMENT


def upstream_idle(upstream: Upstream) -> list[bool]:
    """Return for each kept connection whether it is still good."""
    made = upstream._transport
    assert made is not None
    return [each.usable for each in made.result()._kept]


@asynchronous
async def test_a_connection_is_kept_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old one is closed, not used."""
    async with session() as (server, upstream):
        await upstream.get_features(None)
        monkeypatch.setattr(transport, "KEPT_S", 0.0)
        await upstream.get_features(None)
        assert server.connections == 2


@asynchronous
async def test_a_few_connections_are_enough() -> None:
    """However many requests there are at once, four are on their way; two connections are kept."""
    waiting: list[asyncio.Future[None]] = []
    peak = 0

    async def together(_: Request, __: asyncio.StreamReader, writer: Writer) -> None:
        nonlocal peak
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(gate)
        peak = max(peak, len(waiting))
        await gate
        writer.write(reply(200, DOCUMENT))

    async with session() as (server, upstream):
        server.script(together)
        asking = [asyncio.create_task(upstream.get_features(None)) for _ in range(12)]
        for _ in range(3):
            await until(lambda: len(waiting) == 4)
            while waiting:
                waiting.pop().set_result(None)
        await asyncio.gather(*asking)
        assert len(server.requests) == 12 and peak == 4
        assert upstream_idle(upstream) == [True, True]


@asynchronous
async def test_the_rest_of_an_answer_that_nobody_needs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status came; a body that does not get on, or has no end, costs a moment and the connection."""
    monkeypatch.setattr(connection, "DRAIN_S", 0.05)

    async def hang(_: Request, reader: asyncio.StreamReader, writer: Writer) -> None:
        writer.write(reply(202, b"half", content_length="100"))
        await reader.read()

    async with session() as (server, upstream):
        server.script(hang, reply(202, b"x" * 300_000), reply(202))
        for count in (1, 2, 3):
            await upstream.send_metrics({})
            assert server.connections == count


@asynchronous
async def test_a_connection_with_half_a_request_on_it_is_not_used_again() -> None:
    """An answer may come before the request is read. The rest of the request may never be read, and would block the next one."""

    async def early(reader: asyncio.StreamReader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply(202))
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await gone.wait()
        writer.close()

    gone = asyncio.Event()
    server = await asyncio.start_server(early, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api"
    upstream = Upstream(options(url), clock=FakeClock(), log=RecordingLog())
    await upstream.send_metrics({"large": "x" * 16_000_000})
    assert upstream_idle(upstream) == []
    await upstream.send_metrics({})
    assert upstream_idle(upstream) == [True]
    await upstream.aclose()
    gone.set()
    server.close()


@asynchronous
async def test_a_document_does_not_wait_for_the_garbage_collector() -> None:
    """Neither the received pieces nor their collector form a reference cycle."""
    large = b"[" + b" " * 900_000 + b"]"
    gc.collect()
    gc.disable()
    try:
        async with session() as (server, upstream):
            server.script(reply(200, large))
            await upstream.get_features(None)
            assert not [each for each in gc.get_objects() if isinstance(each, Body | connection.Exchange)]
            server.script(reply(500), reply(200, b"no gzip", content_encoding="gzip"), then_close(large))
            for _ in range(3):
                with contextlib.suppress(UpstreamError):  # `fault` would keep the failure, and its frames, in a cycle
                    await upstream.get_features(None)
            assert len(server.requests) == 4
            assert not [each for each in gc.get_objects() if isinstance(each, Body)]
    finally:
        gc.enable()


# ---- outbound proxies


@LOOPS
def test_tls_through_a_tunnel_over_tls(make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """`HTTPS_PROXY=https://user:password@…`: the tunnel is asked for over TLS, and TLS goes through it."""

    async def live() -> None:
        tls = Authority().server()
        async with loopback(tls) as proxy, loopback(tls) as server:
            outbound = Outbound(https=f"https://user:pw@127.0.0.1:{proxy.port}")
            chosen = options(f"{server.url}/api", outbound=outbound, trust=Trust(False))
            upstream = Upstream(chosen, clock=FakeClock(), log=RecordingLog())
            proxy.script(tunnel)
            large = b"[" + b" " * 900_000 + b"]"
            server.script(reply(200, large))
            for _ in range(2):
                assert (await upstream.get_features(None)).body == large
            await upstream.aclose()
        (request,) = proxy.requests
        assert (request.method, request.target) == ("CONNECT", f"127.0.0.1:{server.port}")
        assert request.headers["proxy-authorization"].startswith("Basic ")
        assert "authorization" not in request.headers, "it never sees the token"
        assert {seen.headers.get("proxy-authorization") for seen in server.requests} == {None}

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(asyncio.wait_for(live(), 20))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply(407), "refused with status 407"),
        (then_close(b""), "ended"),
        (silence, "no connection within"),
        (then_close(reply(200, content_length="-")), ""),
    ],
    ids=["refused", "closed", "silent", "closed behind its yes"],
)
@asynchronous
async def test_a_tunnel_that_does_not_come_about(answer: bytes | Behave, words: str) -> None:
    """A network error; neither the proxy nor its password is in the message, and the upstream is not asked."""
    async with loopback() as proxy, loopback(Authority().server()) as server:
        outbound = Outbound(https=f"http://user:hidden@127.0.0.1:{proxy.port}")
        chosen = options(server.url, outbound=outbound, trust=Trust(False), limits=Limits(0.3, 5.0))
        upstream = Upstream(chosen, clock=FakeClock(), log=RecordingLog())
        proxy.script(answer)
        error = await fault(upstream)
        await upstream.aclose()
    assert error.kind == "network" and words in str(error) and str(proxy.port) not in str(error)
    assert not server.requests


@LOOPS
def test_a_certificate_that_is_trusted(make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """It is compared with the requested name, on both loops. A server with several protocols gets ours."""
    ca = trustme.CA()
    right, wrong = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(right)
    ca.issue_cert("elsewhere.example").configure_cert(wrong)

    right.set_alpn_protocols(["h2", "http/1.1"])
    spoken: list[str | None] = []

    async def answer(_: Request, __: asyncio.StreamReader, writer: Writer) -> None:
        spoken.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        writer.write(reply(200, DOCUMENT))

    async def live() -> None:
        async with session(tls=right) as (server, upstream):
            server.script(answer)
            assert (await upstream.get_features(None)).body == DOCUMENT
            assert spoken.pop() == "http/1.1"
        async with session(tls=wrong) as (server, upstream):
            assert "certificate" in str(await fault(upstream))
            assert not server.requests

    with ca.cert_pem.tempfile() as path, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", path)
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(asyncio.wait_for(live(), 20))


OURS, THEIRS = Authority(), Authority()


def presented(folder: Path, authority: Authority) -> CertificateFiles:
    """Write a certificate to a file, in place of its content, and return the path."""
    return CertificateFiles(OWN, written(folder, "own.pem", authority.issue().both))


@asynchronous
async def test_files_that_change_are_read_anew(tmp_path: Path) -> None:
    """New files apply from the request after next. If they cannot be used, the old ones stay, with one log line."""
    log = RecordingLog()
    ca = written(tmp_path, "ca.pem", OURS.pem)
    trust = Trust(ca=ca, own=presented(tmp_path, OURS))
    async with loopback(OURS.server(wants_certificate=True)) as server:
        server.script(reply(200, DOCUMENT))
        upstream = Upstream(options(f"{server.url}/api", trust=trust), clock=FakeClock(), log=log)
        await upstream.get_features(None)
        written(tmp_path, "own.pem", "half a file")
        for _ in range(4):
            await upstream.get_features(None)
        assert server.connections == 1
        assert [line.event for line in log.lines if line.level == "error"] == [
            "the new certificates towards the upstream are refused"
        ]
        presented(tmp_path, OURS)
        for _ in range(3):
            await upstream.get_features(None)
        assert server.connections == 2
        written(tmp_path, "ca.pem", THEIRS.pem)
        await upstream.get_features(None)
        assert "certificate verify failed" in str(await fault(upstream))
        await upstream.aclose()
