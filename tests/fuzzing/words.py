"""Pieces that odd requests are made of."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

from hypothesis import strategies as st

FIELDS = ("appName", "environment", "userId", "sessionId", "remoteAddress", "currentTime", "properties", "toggles", "context")
PROPERTIES = ("plan", "region", "appVersion", "a", "__proto__", "constructor", "toString", "", "0", "ключ", "🧦", "x" * 300)
NAMES = ("dark-mode", "banner-text", "new-checkout", "search-backend", "nowhere", "", "disabled", "\ufffd", "a\u0000b")

names = st.sampled_from(FIELDS + PROPERTIES) | st.text(max_size=8)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**330), max_value=10**330)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from((*NAMES, "2026-11-20T10:00:00Z", "1e400", "NaN", "-0", "0x10", "10.0.0.1", "1.2.3-beta", "١٢", "²"))
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(names, inner, max_size=5), max_leaves=12)
"""Any value that JSON can write."""

UNUSUAL = (
    b"",
    b" ",
    b"null",
    b"[]",
    b'""',
    b"0",
    b"NaN",
    b"[Infinity]",
    b'{"a":1,"a":2}',
    b'{"context":{"userId":"1","userId":2}}',
    b'{"context":{"userId":"\\ud800"},"toggles":["\\udfff"]}',
    b'{"\\ud83d":{"\\ude00":1}}',
    b'{"context":{"userId":1e999,"currentTime":-1e999}}',
    b'{"context":{"userId":' + b"7" * 5000 + b"}}",
    b'{"context":{"userId":-0.0,"sessionId":1e-400}}',
    b'{"context":{"currentTime":8640000000000001}}',
    b'{"context":{"properties":{"":"","__proto__":"x"}}}',
    b"\xef\xbb\xbf{}",
    b"{}\0",
    b"{} {}",
    b'{"context":{"userId":"\xff\xfe"}}',
    b'{"context":{"userId":"\xed\xa0\x80"}}',
    b"'{}'",
    b"{'a':1}",
    b"[" * 90_000,
    b"[" * 40_000 + b"]" * 40_000,
    b'{"a":' * 15_000 + b"1" + b"}" * 15_000,
    b'{"context":{"x":' + b"[" * 900 + b"]" * 900 + b"}}",
    b'{"toggles":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"toggles":[' + b'"dark-mode",' * 6_000 + b'""]}',
    b'{"context":{' + b",".join(b'"k%d":%d' % (number, number) for number in range(5_000)) + b"}}",
)
"""Bodies that parsers stumble over."""

BOMB = gzip.compress(b"[" * 60_000_000, 9)
"""60 MB in less than the limit of a body."""

CODINGS: dict[bytes, Any] = {
    b"": lambda body: body,
    b"identity": lambda body: body,
    b"gzip": gzip.compress,
    b"x-gzip": gzip.compress,
    b"GZIP ": gzip.compress,
    b"deflate": zlib.compress,
    b"gzip, gzip": lambda body: gzip.compress(gzip.compress(body)),
    b"br": lambda body: body,
}
"""Content coding → what makes it; of some the proxy knows nothing."""

CHARSETS = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "utf-7")

CONTENT_TYPES = st.sampled_from(
    (
        b"application/json",
        b"application/json; charset=utf-8",
        b'Application/JSON ; Charset="UTF-16"',
        b"application/json;charset=utf-16le",
        b"application/json;charset=utf-16be",
        b"application/json;charset=latin-1",
        b"application/json;charset=",
        b"application/json;charset=\xff",
        b"application/json;;;=;charset",
        b"application/problem+json",
        b"text/plain",
        b"multipart/form-data",
        b"",
        b";",
        b"/",
    )
) | st.binary(max_size=40).map(lambda value: printable(value))


def printable(value: bytes) -> bytes:
    """Return what a header's value may hold: no line ends, no NUL."""
    return value.translate(None, b"\r\n\0")


@st.composite
def texts(draw: st.DrawFn, value: st.SearchStrategy[Any] = values) -> bytes:
    """JSON as bytes, in one of several encodings and spellings."""
    content = json.dumps(draw(value), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from((None, None, 1))))
    return content.encode(draw(st.sampled_from(("utf-8", "utf-8", "utf-8", *CHARSETS))), "replace")


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes with a few of them cut off, changed or put in."""
    body = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(body)))
        kind = draw(st.sampled_from(("cut", "change", "insert", "drop", "double")))
        if kind == "cut":
            del body[at:]
        elif kind == "change" and at < len(body):
            body[at] = draw(st.integers(0, 255))
        elif kind == "insert":
            body[at:at] = draw(st.binary(min_size=1, max_size=4))
        elif kind == "drop":
            del body[at : at + draw(st.integers(1, 30))]
        else:
            body[at:at] = body[at : at + draw(st.integers(1, 30))]
    return bytes(body)
