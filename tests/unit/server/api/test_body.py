"""Bodies, also damaged ones, are parsed as the real server parses them (import validation 1.1)."""

from __future__ import annotations

import gzip
import zlib

import pytest

from flagsvc.http.call import HEADERS, Call
from flagsvc.http.messages import HttpError, Request
from flagsvc.server.api.body import Parsed, is_json, parse, reading
from flagsvc.server.api.errors import ApiError, in_form

LIMIT = 512_000


def head(**headers: str) -> Call:
    """Return the head of a request with these headers."""
    pairs = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    made = Call(Request(b"POST", b"/", b"", pairs))
    made.read(HEADERS)
    return made


def read(body: bytes, media: str = "application/json", limit: int = LIMIT, **headers: str) -> Parsed:
    """Return a parsed body."""
    how = reading(head(content_type=media, content_length=str(len(body)), **headers), limit)
    assert how is not None
    return parse(how, body)


MEDIA = {
    "application/json": True,
    "Application/JSON ; charset=utf-8": True,
    "application/json;": True,
    "application/json; ;;garbage": True,
    "application/jsonx": False,
    "application/json, text/plain": False,
    "text/json": False,
    "application/problem+json": False,
    "nonsense": False,
    "": False,
}


@pytest.mark.parametrize("media", MEDIA, ids=str)
def test_only_what_calls_itself_json_is_read(media: str) -> None:
    """The media type decides, in any letter case and with any parameters. A body of another type is not read."""
    made = head(content_type=media, content_length="1")
    assert is_json(made) is MEDIA[media]
    assert (reading(made, LIMIT) is not None) is MEDIA[media]


def test_without_a_body_nothing_is_read() -> None:
    """Without a length or chunks there is no body, so an unknown charset is no error."""
    assert reading(head(content_type="application/json; charset=xx"), LIMIT) is None
    assert reading(head(content_type="application/json", transfer_encoding="chunked"), LIMIT) is not None


VALUES = [
    (b"", {}),
    (b"{}", {}),
    (b"null", None),
    (b'"x"', "x"),
    (b"[1, 2.5]", [1, 2.5]),
    (b"\xef\xbb\xbf{}", {}),
    (b'{"a":"\xff"}', {"a": "�"}),
    (b'{"a":1,"a":2}', {"a": 2}),
    (b'{"__proto__":1}', {"__proto__": 1}),
    (b'{"a":"\\ud800"}', {"a": "\ud800"}),
    (b'{"a":1e999}', {"a": float("inf")}),
]


@pytest.mark.parametrize(("body", "value"), VALUES, ids=repr)
def test_what_a_body_is_read_as(body: bytes, value: object) -> None:
    """An empty body is `{}`, a byte order mark is ignored, invalid bytes become U+FFFD, and the last of equal keys wins."""
    assert read(body).value == value


def test_half_a_surrogate_pair_is_read_as_sent_and_stored_as_a_replacement() -> None:
    """A whole pair is one character. Half a pair, in a key or a value, becomes U+FFFD when it is stored."""
    parsed = read(b'{"\\uD83D\\ude00":["\\uDEAD x"]}')
    assert parsed.value == {"😀": ["\udead x"]}
    assert parsed.stored(parsed.value) == {"😀": ["� x"]}
    assert not read(b'{"a":"\\u00e9"}').may_hold_halves


CHARSETS = {
    "utf-8": "utf-8",
    "UTF-8": "utf-8",
    '"utf-8"': "utf-8",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "utf-16": "utf-16-le",
    "": "utf-8",
}


@pytest.mark.parametrize("label", CHARSETS, ids=repr)
def test_charsets_that_are_read(label: str) -> None:
    """The charset decides how bytes become text."""
    assert read('{"ä":1}'.encode(CHARSETS[label]), f"application/json; charset={label}").value == {"ä": 1}


REFUSED = [
    (b"{", {}, 400, None),
    (b" ", {}, 400, None),
    (b"NaN", {}, 400, None),
    (b'{"a":01}', {}, 400, None),
    (b'{"a":1}x', {}, 400, None),
    (b"[" * 100_000, {}, 400, None),
    (b"[" * 100_000 + b"]" * 100_000, {}, 400, "the body is nested too deeply"),
    (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, {}, 400, "the body is nested too deeply"),
    (b"{}", {"media": "application/json; charset=iso-8859-1"}, 415, 'unsupported charset "ISO-8859-1"'),
    (b"{}", {"media": "application/json; charset=utf8"}, 415, 'unsupported charset "UTF8"'),
    (b"{}", {"content_encoding": "ZSTD"}, 415, 'unsupported content encoding "zstd"'),
    (b"{}", {"content_encoding": "br"}, 415, 'unsupported content encoding "br"'),
    (b"{}", {"content_encoding": "gzip, gzip"}, 415, 'unsupported content encoding "gzip, gzip"'),
    (b"{}", {"content_encoding": "gzip"}, 400, "incorrect header check"),
    (b"{}", {"content_encoding": "deflate"}, 400, "incorrect header check"),
    (gzip.compress(b'{"a":1}' * 100, mtime=0)[:-9], {"content_encoding": "gzip"}, 400, "unexpected end of file"),
    (b"", {"content_encoding": "gzip"}, 400, "unexpected end of file"),
    (gzip.compress(b"{}", mtime=0) + b"junk", {"content_encoding": "gzip"}, 400, "incorrect header check"),
    (gzip.compress(b" " * LIMIT + b"{}", mtime=0), {"content_encoding": "gzip"}, 413, "request entity too large"),
    (b" " * (LIMIT - 1) + b"{}", {}, 413, "request entity too large"),
]


@pytest.mark.parametrize(("body", "given", "status", "message"), REFUSED, ids=lambda each: repr(each)[:40])
def test_bodies_that_are_refused(body: bytes, given: dict[str, str], status: int, message: str | None) -> None:
    """The error has a status and a message and nothing else. Parser errors have our own text."""
    with pytest.raises(HttpError) as caught:
        read(body, **given)  # type: ignore[arg-type]
    failure = in_form(caught.value)
    assert failure.status == status
    assert list(failure.body) == ["message"]
    assert message is None or failure.body["message"] == message


def test_the_limit_counts_what_is_unpacked() -> None:
    """A body of exactly the limit is accepted, plain and compressed. All members of a gzip together are one body."""
    body = b" " * (LIMIT - 2) + b"{}"
    assert read(body).value == {}
    assert read(gzip.compress(body, mtime=0), content_encoding="gzip").value == {}
    assert read(zlib.compress(body), content_encoding="DEFLATE").value == {}
    assert read(gzip.compress(b'{"a"', mtime=0) + gzip.compress(b":1}"), content_encoding="gzip").value == {"a": 1}


def test_a_body_that_announces_too_much_is_not_read() -> None:
    """A Content-Length over the limit is a 413 before the body is read, also one of hundreds of digits."""
    for length in (str(LIMIT + 1), "9" * 400):
        with pytest.raises(ApiError) as caught:
            reading(head(content_type="application/json", content_length=length), LIMIT)
        assert caught.value.status == 413


def test_whether_a_nul_may_be_in_it() -> None:
    """In UTF-8 only the escape `\\u0000` produces a NUL. In other encodings a NUL is always possible."""
    assert read(b'{"a":"\\u0000"}').may_hold_nul
    assert not read(b'{"a":"0000"}').may_hold_nul
    assert read("{}".encode("utf-16-le"), "application/json; charset=utf-16le").may_hold_nul
