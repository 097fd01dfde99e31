"""Odd requests, one row for each part of a request that is odd. What must hold of every answer is in `answers`."""

from __future__ import annotations

from http import HTTPMethod
from typing import Any

from hypothesis import strategies as st

from fuzzing import words
from fuzzing.answers import Sent
from fuzzing.proxy import KEY, TOKEN, Fuzzed
from fuzzing.rows import Row

EVALUATING = (b"/proxy", b"/proxy/all", b"/PROXY/", b"/api/frontend", b"/api//frontend/all/", b"/api/frontend/features/on")
REPORTED = (b"/client/metrics", b"/all/client/metrics", b"/client/register")
POSTED = (*EVALUATING, *(url + path for url in (b"/proxy", b"/api/frontend") for path in REPORTED))
READ = (
    *EVALUATING,
    b"/proxy/client/features",
    b"/proxy/health",
    b"/proxy/live",
    b"/proxy/internal-backstage/prometheus",
    b"/docs/openapi",
    b"/docs/openapi/",
    b"/docs/openapi.json",
    b"/docs/openapi/page.css",
)
METHODS = (*(each.value for each in HTTPMethod), "get", "", "G" * 300, "M-SEARCH")
keys = st.sampled_from((KEY, KEY, KEY, TOKEN, b"", b"wrong", b"Bearer client-key"))


def escaped(text: str) -> bytes:
    """Return a text with every byte of it as a percent escape."""
    return b"".join(b"%%%02x" % byte for byte in text.encode("utf-8", "surrogatepass"))


QUERY_PIECES = (
    b"=", b"&", b"[", b"]", b"%", b"%5B", b"%5d", b"%zz", b"%e0%a4%a", b"%ff", b"%ed%a0%80", b"%00", b"%c0%80", b"+", b" ",
    b"#", b"?", b";", b"properties[", b"properties[a]=", b"properties%5Ba%5D=", b"userId=", b"userId[]=", b"userId[0]=",
    b"a[b][c]=", b"[]=", b"[a]=", b"a]=", b"currentTime=2026-11-20", b"properties=", b"\xff", b"\xc3\xa4", b"\0", b"region=eu",
    b"[" * 40, b"]" * 40, b"[0" * 20, b"&" * 50, b"%5B" * 20,
)  # fmt: skip

parameters = st.tuples(words.names, words.scalars.map(str)).map(
    lambda pair: escaped(pair[0]) + b"=" + escaped(pair[1]) if len(pair[1]) < 300 else b"long=" + pair[1].encode()[:300]
)
brackets = st.lists(st.sampled_from((b"[", b"]", b"a", b"%5b", b"%5D", b"0")), max_size=24).map(b"".join)
pieces = st.lists(
    st.sampled_from(QUERY_PIECES)
    | parameters.map(lambda pair: b"&" + pair)
    | brackets.map(lambda name: b"&properties" + name + b"=1&" + name + b"=2&userId" + name + b"=3"),
    max_size=12,
).map(b"".join)
too_long = st.builds(
    lambda piece, times: (piece * times)[: 17 * 1024],
    st.sampled_from(QUERY_PIECES) | parameters,
    st.sampled_from((400, 2_000, 20_000)),
)
queries = st.binary(max_size=80) | pieces | pieces | too_long

HEADER_PIECES: dict[bytes, tuple[bytes, ...]] = {
    b"if-none-match": (b"*", b'"', b'W/"', b'W/"0"', b",", b" ", b'W/"' + b"a" * 32 + b'"', b"\xff", b"w/", b'"a,b"'),
    b"accept-encoding": (b"gzip", b"*", b"identity", b"br", b";q=", b"0", b"0.5", b",", b" ", b";", b"=", b"q", b"x-gzip", b"\xff"),
    b"x-forwarded-for": (
        b"127.0.0.1", b"::1", b"::ffff:10.0.0.1", b"fe80::1%eth0", b"10.0.0.0/8", b",", b" ", b"unknown", b"[::1]:80", b"1.2.3.4:5",
        b"999.1.1.1", b"\xff", b"::" * 20, b"0x7f.1", b"2130706433", b"\xb2", b"1.2.3", b"_hidden", b'for="1.1.1.1"'
    ),
    b"origin": (b"null", b"https://", b"http://", b"a.example.com", b"*", b":443", b"\xff", b"%0d%0a", b"https://app.example.com"),
    b"access-control-request-headers": (b"authorization", b",", b" ", b"x-" + b"y" * 200, b"\xff", b";", b"<script>"),
    b"access-control-request-method": (b"GET", b"POST", b"*", b"\xff"),
    b"content-type": (b"application/json", b"text/html", b";charset=utf-8", b"\xff", b"multipart/form-data"),
    b"content-encoding": (b"gzip", b"deflate", b"br", b",", b"identity", b"\xff"),
    b"content-length": (b"0", b"5", b"-1", b"+5", b"99999999999", b"7" * 5000, b"1e3", b"\xb2", b"0x10", b" 5", b"5, 5", b""),
    b"transfer-encoding": (b"chunked", b"gzip, chunked", b"identity", b"\xff"),
    b"x-forwarded-host": (b"evil.example", b"\xff"),
    b"x-forwarded-prefix": (b"/evil", b"//evil.example"),
    b"x-forwarded-proto": (b"https", b"\xff"),
    b"authorization": (b"client-key", b"Bearer ", b"\xff", b"k" * 5000),
    b"expect": (b"100-continue",),
    b"connection": (b"close", b"upgrade"),
    b"upgrade": (b"websocket", b"h2c"),
    b"host": (b"", b"evil.example", b"\xff"),
    b"range": (b"bytes=0-1",),
    b"cookie": (b"a=b; " * 200,),
    b"x-" + b"n" * 100: (b"v" * 3_000, b"v"),
}  # fmt: skip
QUALITIES = (
    b"0", b"1", b"1.0", b"0.", b".5", b".", b"-1", b"+1", b"1e5", b"\xb2", b"\xbc", b"1\xb9", b"nan", b"inf",
    b"9" * 400, b"0" * 5000,
    b"1_0", b"0.0.0", b"", b" 1 ", b"\xa01", b'"1"', b"0x1",
)  # fmt: skip
accepted = st.lists(
    st.builds(
        lambda name, before, quality: name + before + quality,
        st.sampled_from((b"gzip", b"x-gzip", b"identity", b"*", b"br", b"")),
        st.sampled_from((b";q=", b"; q =", b";a=b;q=")),
        st.sampled_from(QUALITIES),
    ),
    min_size=1,
    max_size=3,
).map(b",".join)
"""Accept-Encoding with odd weights."""
HUGE: tuple[tuple[bytes, bytes], ...] = (
    (b"x-forwarded-for", b"127.0.0.1, " * 5_500),
    (b"accept-encoding", b"gzip;q=0.1," * 5_500),
    (b"accept-encoding", b"," * 60_000),
    (b"if-none-match", b'W/"x",' * 10_000),
    (b"content-type", b"application/json" + b";charset" * 7_000),
    (b"access-control-request-headers", b"x-a," * 15_000),
    (b"cookie", b"c" * 66_000),
)
"""Single headers near and over the limit of the whole block."""


def value_of(name: bytes) -> st.SearchStrategy[tuple[bytes, bytes]]:
    """Return values for a header of this name, as pairs with it."""
    one = st.sampled_from(HEADER_PIECES[name])
    several = st.lists(one, max_size=8).map(b"".join)
    made = accepted if name == b"accept-encoding" else one
    return (made | several | st.binary(max_size=60).map(words.printable)).map(lambda value: (name, value))


header = st.sampled_from(tuple(HEADER_PIECES)).flatmap(value_of)
headers = st.lists(header, max_size=8).map(tuple)
large = st.sampled_from(HUGE).map(lambda pair: (pair,))

PATH_PIECES = (
    b"/", b"proxy", b"all", b"client", b"metrics", b"docs", b"openapi", b".json", b"..", b"%2e%2e", b"%2f", b"%00", b"%", b"\xff",
    b"//", b"health", b"PROXY", b";x=1", b"*", b" ", b"http://evil.example/proxy", b"x" * 3_000, b"<script>", b"\xc3\xa4", b"\\",
)  # fmt: skip
paths = st.lists(st.sampled_from(PATH_PIECES) | st.binary(max_size=10), max_size=8).map(
    lambda parts: b"".join(parts).replace(b"?", b"")
)


@st.composite
def bodies(draw: st.DrawFn, value: st.SearchStrategy[Any]) -> tuple[tuple[tuple[bytes, bytes], ...], tuple[bytes, ...]]:
    """Headers that describe a body, truly or not, and the body in pieces."""
    plain = draw(words.texts(value) | words.texts(value) | st.binary(max_size=60) | st.sampled_from(words.UNUSUAL))
    coding = draw(st.sampled_from((b"", b"", b"", b"", *words.CODINGS)))
    body = words.CODINGS[coding](plain)
    if draw(st.integers(0, 3)) == 0:
        body = draw(words.damaged(st.just(body)))
    described = [(b"content-type", draw(words.CONTENT_TYPES))] if draw(st.integers(0, 5)) else []
    if coding:
        described.append((b"content-encoding", coding))
    described.append(draw(lengths(len(body))))
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=3)))
    parts = [body[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    return tuple(described), tuple(parts)


@st.composite
def lengths(draw: st.DrawFn, size: int) -> tuple[bytes, bytes]:
    """How long a body is said to be; mostly the truth."""
    if draw(st.integers(0, 4)):
        return draw(st.sampled_from(((b"content-length", b"%d" % size), (b"transfer-encoding", b"chunked"))))
    return draw(value_of(b"content-length"))


counts = st.integers(-2, 2_000_000_000) | words.scalars
usage = st.dictionaries(
    st.sampled_from(words.NAMES) | st.text(max_size=5),
    st.fixed_dictionaries(
        {}, optional={"yes": counts, "no": counts, "variants": st.dictionaries(words.names, counts) | words.values}
    )
    | words.values,
    max_size=4,
)
dates = st.sampled_from(
    ("2026-11-20T10:00:00Z", "2026-11-20T10:00:00.123456789+01:00", "2026-02-30T10:00:00Z", "2026-11-20t10:00:60z",
    "0000-00-00T00:00:00Z",
     "9999-12-31T23:59:59+99:99", "2026-11-20T10:00:00\u0660", "２０２６-11-20T10:00:00Z")
)  # fmt: skip
bucket = st.fixed_dictionaries({}, optional={"start": dates | words.scalars, "stop": dates, "toggles": usage | words.values})
samples = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(words.names, words.scalars, max_size=2) | words.values,
        "value": counts,
        "count": counts,
        "sum": counts,
        "buckets": st.lists(st.fixed_dictionaries({}, optional={"le": st.just("+Inf") | counts, "count": counts}), max_size=3),
    },
)
impact_metrics = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(("on", "Ω")), "help": st.just("h"), "type": st.sampled_from(("counter", "gauge", "histogram"))},
        optional={"samples": st.lists(samples, max_size=3) | words.values},
    )
    | words.values,
    max_size=3,
)
reports = st.fixed_dictionaries(
    {},
    optional={
        "appName": words.scalars,
        "instanceId": words.scalars,
        "bucket": bucket | words.values,
        "impactMetrics": impact_metrics | words.values,
        "interval": counts,
        "started": dates | words.scalars,
        "strategies": st.lists(words.scalars, max_size=3) | words.values,
    },
)
contexts = st.dictionaries(words.names, words.values, max_size=6)
lookups = st.fixed_dictionaries(
    {},
    optional={
        "context": contexts | words.values,
        "toggles": st.lists(st.sampled_from(words.NAMES) | words.scalars, max_size=6) | words.values,
    },
)


def head_size(*fields: tuple[bytes, bytes]) -> int:
    """Return the bytes of header fields as the service counts them."""
    return sum(len(name) + len(value) + 4 for name, value in fields)


def query_row(proxy: Fuzzed, given: tuple[bytes, bytes]) -> None:
    """A query string is answered with toggles or 400, or 414 where it is too long."""
    path, query = given
    got = proxy.ask(proxy.keyed(Sent(path=path, query=query)))
    allowed = {414} if len(query) > 16 * 1024 else {200, 400, 404, 501}
    assert got.status in allowed, (got.status, got.body)


def body_row(proxy: Fuzzed, given: Any) -> None:
    """A body is answered with 200 or one of the statuses that name what is wrong with it, a large header block with 431."""
    path, key, (described, parts) = given
    got = proxy.ask(proxy.keyed(Sent("POST", path, headers=described, body=parts), key))
    large = head_size((proxy.key_header, key), *described) > 16 * 1024
    assert got.status in ({431} if large else {200, 400, 401, 403, 404, 413, 415, 501}), (got.status, got.body)


def header_row(proxy: Fuzzed, given: Any) -> None:
    """Headers change neither what is there nor how errors look; a context is read the same with any of them."""
    method, path, key, sent = given
    got = proxy.ask(proxy.keyed(Sent(method, path, headers=sent), key))
    assert (got.status == 431) == (head_size((proxy.key_header, key), *sent) > 16 * 1024)


def path_row(proxy: Fuzzed, given: Any) -> None:
    """Any method of any path is answered, and what is no route is 404."""
    method, path, key = given
    proxy.ask(Sent(method, path, headers=((proxy.key_header, key),)))


def whole_row(proxy: Fuzzed, given: Any) -> None:
    """A request that is odd all over is answered like any other."""
    method, path, query, key, sent, (described, parts) = given
    proxy.ask(proxy.keyed(Sent(method, path, query, (*sent, *described), parts), key))


methods = st.sampled_from(METHODS) | st.text(st.characters(max_codepoint=255), max_size=5)
ROWS: tuple[Row[Fuzzed], ...] = (
    Row("query strings", st.tuples(st.sampled_from(EVALUATING), queries), query_row, 150),
    Row("bodies of a look-up", st.tuples(st.sampled_from(EVALUATING), keys, bodies(lookups)), body_row, 120),
    Row("bodies of a report", st.tuples(st.sampled_from(POSTED[3:]), keys, bodies(reports)), body_row, 80),
    Row("bodies of anything", st.tuples(st.sampled_from(POSTED), keys, bodies(words.values)), body_row, 60),
    Row("headers", st.tuples(st.sampled_from(METHODS), st.sampled_from(READ), keys, headers), header_row, 120),
    Row("large headers", st.tuples(st.sampled_from(METHODS), st.sampled_from(READ), keys, large), header_row, 40),
    Row("paths and methods", st.tuples(methods, paths, keys), path_row, 120),
    Row(
        "whole requests",
        st.tuples(st.sampled_from(METHODS), st.sampled_from(READ + POSTED) | paths, queries, keys, headers, bodies(lookups)),
        whole_row,
        80
    ),
)  # fmt: skip
