"""Streams of bytes to an HTTP server: good requests, odd requests, broken requests, and where they are cut."""

from __future__ import annotations

from hypothesis import strategies as st

from support.frontkit import KEYED, head

CODED = head("POST /proxy HTTP/1.1", KEYED, "Transfer-Encoding: chunked")
UPGRADING = head("GET /proxy/health HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket")
GOOD = (
    head("GET /proxy?userId=7 HTTP/1.1", KEYED),
    head("GET /proxy?userId=7 HTTP/1.1", KEYED, "Connection: keep-alive", "Accept-Encoding: gzip, br", "Accept: */*"),
    head("GET /proxy HTTP/1.1"),
    head("HEAD /proxy HTTP/1.1", KEYED),
    head("GET /proxy/all?a=1&a=2 HTTP/1.1", KEYED),
    head("GET /proxy/health HTTP/1.1"),
    head("GET /nowhere HTTP/1.1"),
    head("OPTIONS /proxy HTTP/1.1", "Origin: https://a.example", "Access-Control-Request-Headers: x-a, x-b"),
    head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 2") + b"{}",
    head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 30") + b'{"context":{"userId":"7"}}    ',
    CODED + b"1\r\n{\r\n1;x=y\r\n}\r\n0\r\nTrailer: 1\r\n\r\n",
    CODED + b"6\r\n{\r\n\r\n}\r\n0\r\n\r\n",
    head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 10") + b"{\r\n\r\n\r\n\r\n}",
    head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 3") + b"[1]",
    head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 0"),
    head("POST /proxy/client/metrics HTTP/1.1", KEYED, "Content-Length: 2") + b"{}",
)
EARLY = (
    head("POST /proxy HTTP/1.1", "Content-Length: 5") + b"hello",
    head("PUT /proxy HTTP/1.1", KEYED, "Content-Length: 5") + b"hello",
    head("POST /proxy HTTP/1.1", KEYED, "Content-Type: a/b", "Content-Length: 2") + b"{}",
    head("POST /proxy HTTP/1.1", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n",
    head("GET /proxy HTTP/1.1", KEYED, "Content-Length: 5") + b"hello",
    head("GET /proxy/health HTTP/1.1", "Transfer-Encoding: chunked") + b"4\r\n\r\n\r\n\r\n0\r\n\r\n",
    head("GET /proxy/all?" + "q" * 17_000 + " HTTP/1.1", KEYED),
    head("GET /proxy HTTP/1.1", KEYED, *["X: " + "y" * 5_000] * 14),
)
ODD = (
    head("GET /proxy HTTP/1.0", KEYED),
    head("GET /proxy HTTP/1.0", KEYED, "Connection: keep-alive"),
    head("GET /proxy HTTP/1.1", KEYED, "Connection: close"),
    head("POST /proxy HTTP/1.1", KEYED, "Connection: close", "Content-Length: 2") + b"{}",
    head("GET http://proxy/proxy?userId=7 HTTP/1.1", KEYED),
    head("GET http://proxy HTTP/1.1", KEYED),
    head("GET //proxy HTTP/1.1", KEYED),
    head("GET /proxy?a#b?c HTTP/1.1", KEYED),
    head("OPTIONS * HTTP/1.1"),
    head("CONNECT proxy:443 HTTP/1.1"),
    head("CONNECT /proxy HTTP/1.1", KEYED),
    UPGRADING,
    head("GET /proxy/health HTTP/1.1", "Upgrade: h2c"),
    head("POST /proxy HTTP/1.1", KEYED, "Connection: Upgrade", "Upgrade: h2c", "Content-Length: 2") + b"{}",
    head("POST /proxy HTTP/1.1", KEYED, "Connection: Upgrade", "Upgrade: h2c", "Transfer-Encoding: chunked")
    + b"2\r\n{}\r\n0\r\n\r\n",
    head("POST /proxy HTTP/1.1", KEYED, "Expect: 100-continue", "Content-Length: 2") + b"{}",
    head("POST /proxy HTTP/1.1", "Expect: 100-continue", "Content-Length: 2") + b"{}",
    head("GET /proxy HTTP/1.1", KEYED, "Expect: 100-continue"),
    head("GET /proxy HTTP/1.1", KEYED, "X-Empty:", "X-Folded: a\r\n b", "X-Twice: 1", "X-Twice: 2"),
    head("POST /proxy HTTP/1.0", KEYED, "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n",
    head("POST /proxy HTTP/1.1", KEYED, "Transfer-Encoding: chunked, chunked") + b"2\r\n{}\r\n0\r\n\r\n",
    head("POST /proxy HTTP/1.1", KEYED, "Transfer-Encoding: gzip", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    b"\r\n\r\n" + head("GET /proxy/health HTTP/1.1"),
    CODED + b"5000\r\n%b\r\n" % (b"x" * 0x5000) * 6 + b"0\r\n\r\n",
)
BROKEN = (
    b"\r\n", b"\n", b"\r", b" ", b"\0", b"GET ", b"POST /proxy HTTP/1.1\r\n", b"GET /proxy HTTP/1.1\r\n",
    b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n", b" HTTP/1.1\r\n", b"Host: a\r\n\r\n",
    b"GET /proxy HTTP/1.1\n\n", b"GET /proxy HTTP/1.1\r\nA: b\n\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"BREW / HTTP/1.1\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", b"GET / HTTP/1.1\r\n: no name\r\n\r\n",
    b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"GET / HTTP/1.1\r\n folded\r\n\r\n", b"\x16\x03\x01\x02\0",
    b"GET http:///x HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n"
)  # fmt: skip

whole = st.lists(st.sampled_from(GOOD + EARLY + ODD), min_size=1, max_size=6).map(b"".join)
broken = st.lists(st.sampled_from(BROKEN) | st.binary(max_size=20), min_size=1, max_size=3).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Give requests with a few bytes lost, doubled or replaced."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data) - 1))
        upto = at + draw(st.integers(0, 4))
        data[at:upto] = draw(st.sampled_from((b"", bytes(data[at:upto]) * 2, b"\r\n", b"\n", b"\0", b"0", b" ")))
    return bytes(data)


streams = whole | st.tuples(whole, broken).map(b"".join) | broken | damaged() | st.tuples(broken, whole).map(b"".join)
cuts = st.lists(st.integers(0, 150_000), max_size=6) | st.just([-1])
"""Where a stream is cut, modulo its length; -1 stands for after every byte of its first thousand."""


def cut_up(data: bytes, where: list[int]) -> list[bytes]:
    if where == [-1]:
        return [data[at : at + 1] for at in range(min(len(data), 1000))] + ([data[1000:]] if len(data) > 1000 else [])
    places = sorted({at % (len(data) + 1) for at in where})
    return [data[begin:end] for begin, end in zip([0, *places], [*places, len(data)], strict=True) if begin < end]
