"""All faults of an upstream, one row each, for the scripted server of `loopback`.

No fault may change what a proxy serves. A complete document in them is `WORSE`, which must never be served.
"""

from __future__ import annotations

import asyncio
import functools
import gzip
import json
import zlib
from dataclasses import dataclass

from support.loopback import Answer, Behave, Request, Writer, drip, reply, silence, then_close, then_reset

TYPE = "application/json"


@dataclass(frozen=True)
class Fault:
    """One fault: the answer in place of a document. `slow` ones end only with the proxy's own timeout."""

    name: str
    answer: Answer
    slow: bool = False

    def __repr__(self) -> str:
        return self.name


WORSE = json.dumps({"version": 2, "features": [{"name": "never", "enabled": True, "strategies": []}]}).encode()
"""A document that must never be used for an answer."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
TOO_MUCH = 65 * 1024 * 1024
"""Bytes of a document that is larger than any the proxy takes."""


def document(body: bytes, **headers: str) -> bytes:
    """Return a 200 with this body."""
    return reply(200, body, **{"content_type": TYPE, "etag": '"worse"', **headers})


def refusals() -> list[Fault]:
    """Statuses without success, with a document that must be ignored, and unusual Retry-After values."""
    plain = [
        Fault(f"status {status}", reply(status, WORSE, content_type=TYPE, etag='"worse"'))
        for status in (*(201, 202, 203, 204, 206, 226, 300, 304, 400, 401, 403, 404, 405, 406, 408, 410, 413, 418, 422, 429), 451)
    ]
    plain += [Fault(f"status {status}", reply(status, WORSE)) for status in (500, 501, 502, 503, 504, 511, 599, 600, 999)]
    wishes = (
        *("0", "1", "120", "-5", "1e999", "nan", "9" * 400, "soon", "Wed, 21 Oct 2015 07:28:00 GMT"),
        "Fri, 31 Dec 9999 23:59:59 GMT",
    )
    return plain + [
        Fault(f"{status}, retry after {wish[:24]}", reply(status, retry_after=wish)) for status in (429, 503) for wish in wishes
    ]  # fmt: skip


def redirects() -> list[Fault]:
    """Redirects to nowhere, to oneself, to other hosts, to other schemes."""
    places = {
        "itself": "/api/client/features",
        "a stranger": "http://127.0.0.2:9/api/client/features",
        "a file": "file:///etc/passwd",
        "no address": "http://[",
        "nothing": "-",
        "a long address": "/" + "x" * 9_000 + "/features",
    }
    return [
        Fault(f"{status} to {name}", reply(status, WORSE, location=place))
        for status in (301, 302, 307, 308)
        for name, place in places.items()
    ]


def bodies() -> list[Fault]:
    """A 200 whose body is no document: of another kind, of another shape, cut off, wrongly packed, too large."""
    shapes: dict[str, bytes] = {
        "nothing": b"",
        "blanks": b"  \n",
        "null": b"null",
        "a number": b"7",
        "a text": b'"features"',
        "a list": b"[]",
        "no features": b"{}",
        "features that are an object": b'{"version":2,"features":{"never":true}}',
        "features that are null": b'{"version":2,"features":null}',
        "segments that are a text": WORSE[:-1] + b',"segments":"all"}',
        "half a document": WORSE[: len(WORSE) // 2],
        "all but the last byte": WORSE[:-1],
        "two documents": WORSE + WORSE,
        "rubbish behind it": WORSE + b"x",
        "NaN": b'{"version":NaN,"features":[]}',
        "UTF-16": WORSE.decode().encode("utf-16"),
        "broken UTF-8": WORSE.replace(b"never", b"nev\xff\xfe"),
        "depth": b'{"features":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "a page": b"<!doctype html><title>Sign in</title>",
        "text": b"upstream connect error or disconnect/reset before headers",
    }
    return [Fault(f"200 with {name}", document(body)) for name, body in shapes.items()] + [
        Fault("a page as HTML", reply(200, b"<!doctype html>", content_type="text/html", etag='"worse"')),
        Fault("a document as HTML", reply(200, WORSE, content_type="text/html; charset=utf-8", etag='"worse"')),
    ]


def packings() -> list[Fault]:
    """A 200 whose body is packed in a way that cannot be undone, or not within bounds."""
    packed = gzip.compress(WORSE)
    return [
        Fault("gzip that is none", document(WORSE, content_encoding="gzip")),
        Fault("gzip cut off", document(packed[:-9], content_encoding="gzip")),
        Fault("gzip with a wrong checksum", document(packed[:-8] + bytes(8), content_encoding="gzip")),
        Fault("gzip with rubbish behind it", document(packed + b"rubbish", content_encoding="gzip")),
        Fault("gzip in gzip", document(gzip.compress(packed), content_encoding="gzip, gzip")),
        Fault("empty gzip", document(b"", content_encoding="gzip")),
        Fault("deflate", document(zlib.compress(WORSE), content_encoding="deflate")),
        Fault("brotli", document(WORSE, content_encoding="br")),
        Fault("a bomb", bomb),
    ]


def framings() -> list[Fault]:
    """Answers with another end than their head says, or that are not HTTP."""
    size = len(WORSE)
    twice = HEAD + b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n" % (size, size - 1) + WORSE
    both = HEAD + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % size + WORSE
    return [
        Fault("a length that is too long", then_close(document(WORSE, content_length=str(size + 10)))),
        Fault("a length that is too short", document(WORSE, content_length=str(size - 1))),
        Fault("a negative length", then_close(HEAD + b"Content-Length: -1\r\n\r\n" + WORSE)),
        Fault("a length of words", then_close(HEAD + b"Content-Length: all\r\n\r\n" + WORSE)),
        Fault("an endless length", then_close(HEAD + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n" + WORSE)),
        Fault("two lengths", then_close(twice)),
        Fault("a length and chunks", then_close(both)),
        Fault("chunks cut off", then_close(CHUNKED + b"%x\r\n%b\r\n" % (size, WORSE))),
        Fault("half a chunk", then_close(CHUNKED + b"%x\r\n%b" % (size + 5, WORSE))),
        Fault("a chunk of words", then_close(CHUNKED + b"all\r\n%b\r\n0\r\n\r\n" % WORSE)),
        Fault("a chunk of eternity", then_close(CHUNKED + b"f" * 40 + b"\r\n" + WORSE)),
        Fault("an endless head", then_close(HEAD + b"X: " + b"y" * 70_000)),
        Fault("many heads", then_close(HEAD + b"X: y\r\n" * 20_000 + b"\r\n")),
        Fault("half a head", then_close(HEAD)),
        Fault("half a status", then_close(b"HTTP/1.1 20")),
        Fault("another version", then_close(b"HTTP/3.7 200 OK\r\n\r\n" + WORSE)),
        Fault("TLS", then_close(b"\x15\x03\x01\x00\x02\x02\x28")),
        Fault("HTTP/2", then_close(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18))),
        Fault("a greeting", then_close(b"220 mail.example.com ESMTP ready\r\n")),
        Fault("noughts", then_close(bytes(4096))),
        Fault("another protocol", then_close(b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n" + WORSE)),
        Fault("only a word to go on", then_close(b"HTTP/1.1 100 Continue\r\n\r\n")),
    ]


def connections() -> list[Fault]:
    """Connections that end, break, stay silent or are very slow."""
    whole = document(WORSE)
    half = whole[: -len(WORSE) // 2]
    return [
        Fault("closed at once", then_close(b"")),
        Fault("reset at once", then_reset()),
        Fault("reset in the head", then_reset(HEAD)),
        Fault("reset in the body", then_reset(half)),
        Fault("closed in the body", then_close(half)),
        Fault("silence", silence, slow=True),
        Fault("silence after the head", then_silence(whole[: -len(WORSE)]), slow=True),
        Fault("silence in the body", then_silence(half), slow=True),
        Fault("drips", drip(whole[:-1], 0.05), slow=True),  # the last byte never comes
        Fault("an endless body", endless, slow=True),
    ]


def then_silence(content: bytes) -> Behave:
    """Write, and say nothing more until the other side gives up."""

    async def behave(request: Request, reader: asyncio.StreamReader, writer: Writer) -> None:
        writer.write(content)
        await writer.drain()
        await silence(request, reader, writer)

    return behave


async def endless(_: Request, __: asyncio.StreamReader, writer: Writer) -> None:
    """Write chunks slowly and for ever."""
    writer.write(CHUNKED)
    while not writer.is_closing():
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(0.02)  # the pace of the chunks


async def bomb(_: Request, __: asyncio.StreamReader, writer: Writer) -> None:
    """Write a small body that decompresses to more than the limit of a document."""
    writer.write(document(packed_bomb(), content_encoding="gzip"))
    await writer.drain()


@functools.cache
def packed_bomb() -> bytes:
    """Return a compressed document of blanks before its end."""
    return gzip.compress(b" " * TOO_MUCH + WORSE, 1)


FAULTS: tuple[Fault, ...] = (*refusals(), *redirects(), *bodies(), *packings(), *framings(), *connections())
QUICK = tuple(fault for fault in FAULTS if not fault.slow and fault.answer is not bomb)
"""Those that cost next to nothing."""
