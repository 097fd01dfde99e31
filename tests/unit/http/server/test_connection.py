"""One connection of the front: order, bounds, bodies, and how it ends."""

from __future__ import annotations

import asyncio
import ssl
from random import Random
from typing import Any

import pytest

from flagsvc.core.tracing import Tracer
from flagsvc.http.server import ConnectionLimits
from flagsvc.http.server.states import ANSWERING
from flagsvc.testing import turns
from support.frontkit import KEYED, dial, get, head, open_connections, parse_answer, serving


def many_flags(number: int, length: int) -> dict[str, Any]:
    """Return a document of flags that are on for everyone, with names of this length."""
    names = [f"on-{at:05}".ljust(length, "x") for at in range(number)]
    return {"version": 2, "features": [{"name": name, "enabled": True, "strategies": [{"name": "default"}]} for name in names]}


HEALTH = get("/proxy/health")
CHUNKED = head("POST /proxy HTTP/1.1", KEYED, "Transfer-Encoding: chunked")


async def test_a_slow_answer_before_fast_ones() -> None:
    """Requests after a slow one are not parsed before its answer is ready. Then all answers come in order."""
    slow = serving(slow=True)
    line = dial(slow).send(get() + HEALTH + get("/nowhere"))
    await turns()
    assert slow.waiting == 1 and line.transport.data == b"" and not line.transport.reading
    slow.gate.set()
    await turns()
    assert line.answers("GET", "GET", "GET") == [200, 200, 404]
    assert line.transport.reading


async def test_what_comes_while_an_answer_is_made() -> None:
    """Later bytes are held, reading pauses, and they are answered afterwards. A single request pauses nothing."""
    slow = serving(slow=True)
    line = dial(slow).send(get())
    assert line.transport.reading
    line.send(HEALTH[:10])
    assert not line.transport.reading
    line.send(HEALTH[10:])  # type: ignore[unreachable]
    slow.gate.set()
    await turns()
    assert line.answers("GET", "GET") == [200, 200] and line.transport.reading


async def test_answers_that_the_caller_does_not_read() -> None:
    """Of 2,000 answers of 2.5 MB one is made. The caller reads it before the next answer is made. Reading pauses meanwhile."""
    line = dial(serving(many_flags(2_600, 910)), takes=65_536).send(get() * 2_000)
    await turns()
    assert line.transport.writes == 1 and len(line.transport.data) > 2_400_000
    assert not line.transport.reading
    for taken in range(2, 5):
        line.transport.take()
        await turns()
        assert line.transport.writes == taken
    assert not line.transport.reading
    line.lose()
    await turns()
    assert line.transport.writes == 4


async def test_many_requests_take_turns() -> None:
    """Of many requests in one read, a few are answered at once, and a few in each later turn of the loop."""
    line, made = dial(serving()).send(HEALTH * 100), 0
    assert not line.transport.reading
    while (now := line.transport.data.count(b"HTTP/1.1 200")) < 100:
        assert 0 < now < made + 20
        made = now
        await asyncio.sleep(0)
    await turns()
    assert line.answers(*["GET"] * 100) == [200] * 100 and line.transport.reading


async def test_a_body_over_the_limit() -> None:
    """413 as soon as it is over, and the connection is closed when some more of it was thrown away."""
    line = dial(serving(), ConnectionLimits(lingered=50_000))
    line.send(CHUNKED)
    for _ in range(11):
        assert line.transport.data == b""
        line.send(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
    status, fields, _, rest = parse_answer(bytes(line.transport.data))
    assert (status, rest) == (413, b"") and ("connection", "close") in fields
    assert line.transport.ended and not line.transport.closed
    for _ in range(5):
        line.send(b"x" * 10_000)
    assert not line.transport.closed
    line.send(b"x")
    assert line.transport.closed


async def test_a_body_nobody_wants() -> None:
    """The answer comes before it, it is thrown away, and the next request is answered; not for ever."""
    line = dial(serving(), ConnectionLimits(discarded=30_000))
    line.send(head("PUT /proxy HTTP/1.1", "Content-Length: 20000"))
    assert line.answers("PUT") == [405]
    line.send(b"x" * 20_000 + HEALTH)
    assert line.answers("PUT", "GET") == [405, 200]
    line.send(head("PUT /proxy HTTP/1.1", "Content-Length: 40000"), b"x" * 30_000)
    assert not line.transport.over
    line.send(b"x")
    assert line.transport.over and line.answers("PUT", "GET", "PUT") == [405, 200, 405]  # type: ignore[unreachable]


async def test_a_huge_body() -> None:
    """A body that is too large to be read to its end closes the connection with its answer."""
    line = dial(serving()).send(head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 99999999"))
    status, fields, _, _ = parse_answer(bytes(line.transport.data))
    assert status == 413 and ("connection", "close") in fields and line.transport.ended


async def test_expecting_to_go_on() -> None:
    """A wanted body is asked for; an answer before an unwanted one closes; HTTP/1.0 knows no such word."""
    going = b"HTTP/1.1 100 Continue\r\n\r\n"
    line = dial(serving()).send(head("POST /proxy HTTP/1.1", KEYED, "Expect: 100-Continue", "Content-Length: 2"))
    assert line.transport.data == going
    assert line.send(b"{}").answers("POST") == [200]
    refused = dial(serving()).send(head("POST /proxy HTTP/1.1", "Expect: 100-continue", "Content-Length: 2"))
    assert refused.answers("POST") == [401] and refused.transport.ended
    old = dial(serving()).send(head("POST /proxy HTTP/1.0", KEYED, "Expect: 100-continue", "Content-Length: 2"))
    assert old.transport.data == b""
    assert dial(serving()).send(get("/proxy", "Expect: 100-continue")).answers() == [200]


async def test_http_1_0() -> None:
    """The connection ends with the answer, unless it is asked to be kept, which the answer then confirms."""
    line = dial(serving()).send(head("GET /proxy HTTP/1.0", KEYED, "Connection: keep-alive"))
    _, fields, _, _ = parse_answer(bytes(line.transport.data))
    assert ("connection", "keep-alive") in fields and not line.transport.over
    line.send(head("GET /proxy HTTP/1.0", KEYED))
    assert line.answers("GET", "GET") == [200, 200] and line.transport.closed


@pytest.mark.parametrize("framing", [b"content-length: 2\r\n\r\n{}", b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"])
async def test_an_upgrade_is_passed_over(framing: bytes) -> None:
    """A request that wants another protocol is answered as if it did not, its body read, and what follows it answered."""
    post = b"POST /proxy HTTP/1.1\r\nHost: proxy\r\n" + KEYED.encode() + b"\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n" + framing
    upgrade = get("/proxy/health", "Connection: Upgrade", "Upgrade: websocket")
    stream = upgrade + HEALTH + post + upgrade + post + HEALTH
    wanted = [200] * 6
    methods = ["GET", "GET", "POST", "GET", "POST", "GET"]
    assert dial(serving()).send(stream).answers(*methods) == wanted
    assert dial(serving()).send(*[stream[at : at + 1] for at in range(len(stream))]).answers(*methods) == wanted


async def test_half_closed() -> None:
    """A caller that sends no more still gets every answer; then the connection is closed."""
    slow = serving(slow=True)
    line = dial(slow).send(get() + HEALTH * 20)
    assert line.connection.eof_received() is True
    slow.gate.set()
    await turns()
    assert line.answers(*["GET"] * 21) == [200] * 21 and line.transport.closed
    last = dial(other := serving(slow=True)).send(get("/proxy", "Connection: close") + HEALTH)
    assert last.connection.eof_received() is True
    other.gate.set()
    await turns()
    assert last.answers() == [200] and last.transport.closed, "there is nothing to linger for"
    idle = dial(serving()).send(HEALTH, HEALTH[:9])
    assert idle.connection.eof_received() is False and idle.transport.closed
    secure = dial(serving(slow=True), secure=True).send(get())
    await turns()
    assert secure.connection.eof_received() is False


async def test_gone_at_any_point() -> None:
    """Wherever a caller leaves, nothing is written any more, nothing is raised and nothing is left."""
    stream = get() + head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 2") + b"{}" + HEALTH
    for at in range(len(stream) + 1):
        slow = serving(slow=True)
        line = dial(slow).send(stream[:at])
        line.lose()
        slow.gate.set()
        await turns()
        assert line.transport.data == b"" and slow.log.lines == []
        state: Any = line.connection.shared.server
        assert not state.connections and not state.tasks


async def test_no_http() -> None:
    """Bytes that are not HTTP get a 400 with the application's text. A request with an answer gets no second one."""
    line = dial(serving()).send(HEALTH + b"\x16\x03\x01")
    assert line.answers("GET", "GET") == [200, 400] and line.transport.ended
    body = dial(serving()).send(head("PUT /proxy HTTP/1.1", "Transfer-Encoding: chunked"), b"x\r\n")
    assert body.answers("PUT") == [405] and body.transport.ended
    tls = dial(serving()).send(head("PUT /proxy HTTP/1.1", "Transfer-Encoding: chunked"), b"\x16\x03\x01")
    assert tls.answers("PUT") == [405] and tls.transport.ended
    authority = dial(serving()).send(b"CONNECT proxy:443 HTTP/1.1\r\n\r\n" + HEALTH)
    assert authority.answers() == [400] and authority.transport.ended


def client_hello() -> bytes:
    """Return the first bytes of a TLS client."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="proxy")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


async def test_tls_on_a_port_of_plain_http() -> None:
    """The caller gets a plain 400 that names it; the log says so once in a while, with how many there were."""
    given, hello = serving(), client_hello()
    line, other, third = open_connections(given, 3)
    assert line.send(hello).answers() == [400] and line.transport.ended
    assert b"speaks plain HTTP" in bytes(line.transport.data) and b"TLS" in bytes(line.transport.data)
    other.send(hello)
    [said] = given.log.lines
    assert said.level == "warn" and "speak TLS" in said.event and said.fields == {"connections": 1}
    line.connection.shared.next_tls_warning = 0.0
    third.send(hello)
    assert [line.fields["connections"] for line in given.log.lines] == [1, 2]


@pytest.mark.parametrize("sent", [b"\x16", b"\x00\x16\x03\x01", b"SSH-2.0-x\r\n"])
async def test_what_is_no_tls_either(sent: bytes) -> None:
    """Other bytes that are no HTTP are refused as before, and the log is silent."""
    given = serving()
    line = dial(given).send(sent)
    assert line.answers() == [400] and given.log.lines == [] and b"not an HTTP request" in bytes(line.transport.data)


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /proxy HTTP/1.1\r\nA: ",
        b"GET /",
        CHUNKED + b"0\r\nTrailer: ",
        b"\r\n" * 2_000,
        b"GET /proxy HTTP/1.1\r\n" + b"Ab: c\r\n" * 90,
    ],
    ids=["a header", "a path", "trailers", "line ends", "headers"],
)
async def test_heads_without_end(begun: bytes) -> None:
    """A head without an end is refused, and the connection closes."""
    line = dial(serving())
    line.send(begun)
    for _ in range(200):
        if line.transport.over:
            break
        line.send(begun[:10] * 100 if begun[:2] == b"\r\n" else b"x" * 1_000)
    assert line.answers() == [431] and line.transport.ended


async def test_a_whole_head_is_the_services() -> None:
    """The service judges a head that comes at once and breaks only a limit of the service; that ends the connection too."""
    line = dial(serving(header_limit=10_000), quiet=True).send(get("/proxy", *["X: " + "y" * 9_000] * 2) + HEALTH)
    await turns()
    assert line.answers("GET") == [431] and line.transport.over


async def test_an_answer_that_is_cancelled_or_fails() -> None:
    """The connection ends at once, and a failure is logged by its place."""
    slow = serving(slow=True)
    cancelled = dial(slow).send(get())
    await turns()
    for task in list(cancelled.connection.shared.server.tasks):
        task.cancel()
    await turns()
    assert cancelled.transport.aborted

    async def fails() -> Any:
        raise ValueError("somebody's name")

    failing = dial(slow)
    failing.connection.wait(fails())
    await turns()
    assert failing.transport.aborted
    assert "ValueError" in str(slow.log.lines) and "somebody" not in str(slow.log.lines)


async def test_who_calls() -> None:
    """The peer's address and whether the line is secure are the requests'; a Unix socket has no address."""
    for given, wanted in (({"peer": "192.0.2.1", "secure": True}, ("192.0.2.1", "https")), ({"peer": None}, ("", "http"))):
        line = dial(serving(), **given).send(CHUNKED)
        request = line.connection.parser.call.request
        assert (request.peer, request.scheme) == wanted


async def test_requests_that_are_traced() -> None:
    """A span has route, status and port, and continues the trace of the caller, unless the caller does not trace. It ends with the
    answer, or when the caller leaves."""
    given, trace = serving(slow=True), "0af7651916cd43dd8448eb211c80319c"
    tracer = Tracer(Random(1), 1.0, follows_parent=True, room=9, batch=9, on_batch=lambda: None)
    given.service.traffic.tracer = tracer
    health = [get("/proxy/health", f"traceparent: 00-{trace}-b7ad6b7169203331-{flags}") for flags in ("01", "00")]
    for line in [dial(given, secure=True), dial(given, peer=None)]:
        line.send(b"".join(health), head("PROPFIND /proxy HTTP/1.1", KEYED), get())
        await turns()
        line.lose()
    first, odd, gone, _, without_port, _ = tracer.take()
    assert [(each.name, each.error) for each in (first, odd, gone)] == [
        ("GET /proxy/health", ""),
        ("HTTP", ""),
        ("HTTP", "abandoned"),
    ]
    assert f"{first.trace:032x}" == trace != f"{odd.trace:032x}" and first.is_remote
    named = {"http.request.method": "GET", "http.route": "/proxy/health", "http.response.status_code": 200}
    assert first.attributes == {**named, "url.scheme": "https", "server.port": 3000}
    assert without_port.attributes == {"http.request.method": "_OTHER", "http.response.status_code": 405, "url.scheme": "http"}


async def test_nothing_of_a_request_is_kept_behind_it() -> None:
    """A connection that waits for its next request holds neither the head nor the body of the last one, however they came."""
    long = get("/proxy", f"X-Forwarded-For: {'1' * 5000}")
    post = head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 5002") + b"{" + b" " * 5000 + b"}"
    slow = serving(slow=True)
    for given, pieces in ((serving(), [long]), (serving(), [post]), (serving(), [post[:999], post[999:]]), (slow, [post])):
        line = dial(given).send(*pieces)
        assert (line.connection.state == ANSWERING) is (given is slow)
        parser = line.connection.parser
        assert (parser.body, parser.parts, parser.url, parser.held) == (b"", None, b"", b"")
        assert parser.call.forwarded is None and parser.call.request.path == b""
    slow.gate.set()
    await turns()
    assert line.answers("POST") == [200]
