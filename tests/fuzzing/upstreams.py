"""Odd answers of an upstream, and odd records in storage: both end in a document or in an error that the poller knows.

The last good configuration is served all the time (behaviour: Failures).
"""

from __future__ import annotations

import asyncio
import gzip

from hypothesis import strategies as st

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.configuration.stream_notes import StreamNotes
from flagsvc.proxy.upstream import Fetched
from flagsvc.testing import MemoryStore
from fuzzing import words
from fuzzing.documents import GOOD, VALID, assert_evaluates, dumped, rounds
from fuzzing.rows import Row
from support.aio import until
from support.loopback import then_close
from support.polling import DOWN, PollerScene, running
from support.streams import STREAM_HEAD, following
from support.upstream_session import TOKEN, session

KINDS = {"network", "unauthorized", "not-found", "throttled", "server", "document", "unexpected"}

STATUS_LINES = (
    b"HTTP/1.1 200 OK", b"HTTP/1.1 304 Not Modified", b"HTTP/1.1 401 No", b"HTTP/1.1 403 No", b"HTTP/1.1 404 No",
    b"HTTP/1.1 429 Slow", b"HTTP/1.1 500 Oh", b"HTTP/1.1 503 Oh", b"HTTP/1.1 302 Found", b"HTTP/1.1 307 There",
    b"HTTP/1.1 204 Nothing", b"HTTP/1.1 100 Continue", b"HTTP/1.1 999 What", b"HTTP/1.0 200 OK", b"HTTP/9.9 200 OK",
    b"HTTP/1.1 20x", b"HTTP/1.1  200", b"ICY 200 OK", b""
)  # fmt: skip
FIELDS = (
    b"content-type: application/json", b"content-type: text/html", b"content-type: \xff", b"content-encoding: gzip",
    b"content-encoding: br", b"content-encoding: gzip, gzip", b"transfer-encoding: chunked", b"content-length: 5",
    b"content-length: -1", b"content-length: 99999999", b"content-length: " + b"9" * 5000, b"etag: \"a\"", b"etag: W/\"\xff\"",
    b"etag:", b"etag: " + b"e" * 20_000, b"retry-after: 7", b"retry-after: -7", b"retry-after: 1e999", b"retry-after: nan",
    b"retry-after: \xb2", b"retry-after: Sat, 99 Nov 99999999 99:99:99 GMT", b"retry-after: Sat", b"retry-after: 0 0 0 0",
    b"retry-after: Sat, 21 Nov 2026 02:00:00 +9999999999", b"location: /there", b"location: http://127.0.0.1:1/",
    b"location: http://[", b"location: \xff", b"location:", b"location: //evil.example", b"location: ?" + b"x" * 9_000,
    b"connection: close", b"set-cookie: a=b", b"x: " + b"y" * 70_000, b": nameless", b"no colon", b" folded",
)  # fmt: skip


@st.composite
def replies(draw: st.DrawFn) -> bytes:
    """An answer as bytes: a status line, some headers, a body; any part of it odd."""
    body = draw(st.sampled_from((GOOD, GOOD, gzip.compress(GOOD), dumped(VALID), b"", b"<html>", words.BOMB)) | words.texts())
    fields = draw(st.lists(st.sampled_from(FIELDS), max_size=4, unique=True))
    if draw(st.booleans()):
        fields.append(b"content-length: %d" % len(body))
    if b"transfer-encoding: chunked" in fields and draw(st.booleans()):
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return b"\r\n".join([draw(st.sampled_from(STATUS_LINES)), *fields, b"", body])


async def fetched(reply: bytes) -> Fetched | UpstreamError:
    """Return what fetching the document comes to when the upstream answers with these bytes and hangs up."""
    async with session() as (server, upstream):
        server.script(then_close(reply))
        try:
            return await upstream.get_features('"served"')
        except UpstreamError as error:
            return error


def reply_row(runner: asyncio.Runner, reply: bytes) -> None:
    """Any answer is a document, "not modified", or an error of a known kind that does not hold the token."""
    outcome = runner.run(fetched(reply))
    if isinstance(outcome, Fetched):
        assert outcome.body is None or isinstance(outcome.body, bytes)
        return
    assert outcome.kind in KINDS
    assert outcome.retry_after is None or 0 <= outcome.retry_after < float("inf")
    assert TOKEN not in str(outcome)


LINES = (
    b"event: unleash-updated", b"event: unleash-connected", b"event: fetch-mode", b"data: polling", b"data: {}", b"data", b"id: 7",
    b"id: \0", b"id: " + b"9" * 5000, b"retry: 10", b"retry: " + b"9" * 5000, b"retry: -1", b": comment", b"", b"", b"\xff: \xfe",
    b"data: " + b"x" * 40_000
)  # fmt: skip


@st.composite
def stream_replies(draw: st.DrawFn) -> bytes:
    """The answer to a request for a stream: odd lines in chunks of any size, and any end."""
    body = draw(st.sampled_from((b"\n", b"\r\n", b"\r"))).join(draw(st.lists(st.sampled_from(LINES), max_size=12)))
    cut = draw(st.integers(0, len(body)))
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:cut], body[cut:]) if piece)
    return STREAM_HEAD + chunks + draw(st.sampled_from((b"", b"0\r\n\r\n", b"7\r\n", b"what")))


async def followed(reply: bytes) -> tuple[StreamNotes, list[str]]:
    """Return what a proxy notes of a stream that is answered with these bytes and a hang-up, and what was logged."""
    async with following(then_close(reply)) as scene:
        await until(lambda: any(scene.notes.ends.values()))
        return scene.notes, [str(line) for line in scene.log.lines]


def stream_row(runner: asyncio.Runner, reply: bytes) -> None:
    """Any answer to a request for a stream ends in one of the known ways, without the token in the log; `following` checks more."""
    notes, log = runner.run(followed(reply))
    assert sum(notes.ends.values()) >= 1 and notes.opened >= notes.fallbacks
    assert TOKEN not in str(log)


async def restored(data: bytes) -> PollerScene:
    """Return the world after a start with this record in storage and an upstream that is away."""
    store = MemoryStore()
    store.data["key"] = data
    async with running(DOWN, store=store) as world:
        await rounds(world, 2)
    return world


def record_row(runner: asyncio.Runner, data: bytes) -> None:
    """Any record in storage is served, or passed over with a warning."""
    world = runner.run(restored(data))
    if world.holder.current is None:
        assert any(event.startswith("the stored configuration") for event in world.log.at("warn")), world.log.lines
    else:
        assert_evaluates(world.holder.current)


records = st.sampled_from(
    (StoredDocument(GOOD, '"e"').pack(), StoredDocument(dumped(VALID)).pack(), StoredDocument(b"", "").pack())
)
heads = words.texts().map(lambda head: head.replace(b"\n", b" ") + b"\n" + GOOD)
ROWS: tuple[Row[asyncio.Runner], ...] = (
    Row("answers of the upstream", replies() | words.damaged(replies()) | st.binary(max_size=60), reply_row, 150),
    Row("streams of the upstream", stream_replies() | words.damaged(stream_replies()) | replies(), stream_row, 100),
    Row("records in storage", words.damaged(records) | heads | st.binary(max_size=40), record_row, 80),
)
