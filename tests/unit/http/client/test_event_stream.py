"""Server-sent events: what the HTML standard says of each line, for bytes in any pieces."""

from __future__ import annotations

import collections
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flagsvc.core.errors import UpstreamError
from flagsvc.http.client.event_stream import KEPT_BYTES, KEPT_DATA, LONGEST_RETRY_MS, EventReader, ServerEvent, is_event_stream
from support.same_inputs import examples

MANY = 64 * 1024 * 1024


def read(*pieces: bytes, longest: int = MANY) -> tuple[list[ServerEvent], int | None]:
    """Return the events of these pieces, and the last `retry`."""
    reader = EventReader(longest)
    return [event for piece in pieces for event in reader.feed(piece)], reader.retry_ms


ROWS: dict[str, tuple[bytes, list[tuple[str, str, str]]]] = {
    "an event": (b"event: unleash-updated\nid: 7\ndata: {}\n\n", [("unleash-updated", "7", "{}")]),
    "without a name": (b"data: x\n\n", [("message", "", "x")]),
    "an empty name": (b"event: a\nevent\ndata: x\n\n", [("message", "", "x")]),
    "CR LF": (b"event: a\r\ndata: x\r\n\r\n", [("a", "", "x")]),
    "CR": (b"event: a\rdata: x\r\r", [("a", "", "x")]),
    "all three": (b"event: a\rdata: x\r\n\ndata: y\n\r\n", [("a", "", "x"), ("message", "", "y")]),
    "a BOM": (b"\xef\xbb\xbfdata: x\n\n", [("message", "", "x")]),
    "a BOM that is not the first": (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [("message", "", "x")]),
    "comments": (b": heartbeat\n\n:\n:data: y\n\n", []),
    "no blank, and two": (b"data:x\n\ndata:  y\n\n", [("message", "", "x"), ("message", "", " y")]),
    "colons": (b"data: a:b: c\n\n", [("message", "", "a:b: c")]),
    "several lines": (b"data: a\ndata\ndata: b\n\n", [("message", "", "a\n\nb")]),
    "empty data are data": (b"event: a\ndata:\n\n", [("a", "", "")]),
    "no data": (b"event: a\nid: 5\n\ndata: x\n\n", [("message", "5", "x")]),
    "the id stays": (
        b"id: 5\ndata: x\n\ndata: y\n\nid\ndata: z\n\n",
        [("message", "5", "x"), ("message", "5", "y"), ("message", "", "z")],
    ),
    "an id with NUL": (b"id: 5\ndata: x\n\nid: 6\0\ndata: y\n\n", [("message", "5", "x"), ("message", "5", "y")]),
    "an id that is too long": (b"id: " + b"9" * KEPT_BYTES + b"\ndata: x\n\n", [("message", "", "x")]),
    "unknown fields": (b"Event: a\nevents: b\n event: c\ndata: x\n\n", [("message", "", "x")]),
    "no UTF-8": (b"data: \xff\xfe\n\n", [("message", "", "\ufffd\ufffd")]),
    "without an end": (b"data: x\n\nevent: a\ndata: y\n", [("message", "", "x")]),
    "long data": (b"data: " + b"x" * 9000 + b"\ndata: y\n\n", [("message", "", "x" * KEPT_DATA)]),
}


@pytest.mark.parametrize(("sent", "expected"), ROWS.values(), ids=ROWS)
def test_the_standard(sent: bytes, expected: list[tuple[str, str, str]]) -> None:
    """Each row is a rule of the standard, in one piece and byte by byte."""
    assert read(sent)[0] == expected
    assert read(*(bytes([byte]) for byte in sent))[0] == expected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"retry: 2500\n", 2500),
        (b"retry: " + b"9" * 900 + b"\n", LONGEST_RETRY_MS),
        (b"retry: 1\nretry: -2\nretry: 3s\nretry: \nretry\n", 1),
        ("retry: ²\n".encode(), None),
    ],
)
def test_retry(sent: bytes, expected: int | None) -> None:
    """Only ASCII digits count."""
    assert read(sent)[1] == expected


def test_a_line_has_a_limit_and_next_to_nothing_of_it_is_kept() -> None:
    """A hydration of megabytes passes, an endless line ends the stream."""
    reader = EventReader(10_000_000)
    assert reader.feed(b"event: unleash-connected\ndata: ") == []
    for _ in range(600):
        assert reader.feed(b"x" * 16_384) == []
        assert len(reader._line) <= KEPT_BYTES
    assert reader.feed(b"\nid: 9\n\n") == [("unleash-connected", "9", "x" * KEPT_DATA)]
    with pytest.raises(UpstreamError, match="longer than 10000000 bytes") as caught:
        collections.deque(map(reader.feed, [b"x" * 16_384] * 700), maxlen=0)
    assert caught.value.kind == "document"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"content-type": "text/event-stream"}, True),
        ({"content-type": "Text/Event-Stream ; charset=utf-8", "content-encoding": "identity"}, True),
        ({"content-type": "text/event-stream", "content-encoding": "gzip"}, False),
        ({"content-type": "text/event-streams"}, False),
        ({"content-type": "application/json"}, False),
        ({}, False),
    ],
)
def test_what_is_an_event_stream(headers: dict[str, str], expected: bool) -> None:
    """The type decides, without its parameters; a compressed stream was not asked for."""
    assert is_event_stream(headers) is expected


# ---- any bytes in any pieces

TOKENS = (
    *(b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b":", b" ", b"event", b"data", b"id", b"retry", b"\0", b"\xff"),
    *(b"event: a\n", b"id: 5\r\n", b"data: x\r", b"retry: 10\n", b"y" * 100, b"z" * KEPT_BYTES),
)


def by_the_standard(sent: bytes) -> tuple[list[ServerEvent], int | None]:
    """Return what the standard makes of a whole stream, as plainly as it can be written."""
    events: list[ServerEvent] = []
    name, last, data, retry = "", "", None, None
    *lines, _ = re.split(rb"\r\n|\r|\n", sent.removeprefix(b"\xef\xbb\xbf"))
    for line in lines:
        field, _, value = (text.decode("utf-8", "replace") for text in line.partition(b":"))
        value = value.removeprefix(" ")
        if not line:
            if data is not None:
                events.append(ServerEvent(name or "message", last, "\n".join(data)[:KEPT_DATA]))
            name, data = "", None
        elif field == "event":
            name = value
        elif field == "data":
            data = [*(data or []), value]
        elif field == "id" and "\0" not in value and len(line) <= KEPT_BYTES:
            last = value
        elif field == "retry" and re.fullmatch(r"[0-9]+", value):
            retry = int(value)
    return events, retry


@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from(TOKENS), max_size=40).map(b"".join), st.lists(st.integers(0, 2000), max_size=20))
def test_any_split_gives_the_events_of_the_standard(sent: bytes, cuts: list[int]) -> None:
    """Where the bytes are cut means nothing."""
    places = sorted({min(cut, len(sent)) for cut in cuts} | {0, len(sent)})
    pieces = [sent[start:end] for start, end in pairwise(places)]
    found, retry = read(*pieces)
    expected, expected_retry = by_the_standard(sent)
    names = [(each.name[:900], each.id, each.data) for each in found]
    assert (names, retry) == ([(each.name[:900], each.id, each.data) for each in expected], expected_retry)
