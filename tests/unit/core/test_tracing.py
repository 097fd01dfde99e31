"""Spans: which work is traced, what is within what, what a traceparent says, and that waiting spans are bounded."""

from __future__ import annotations

import io
import json
from random import Random

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.core.log import build_logger
from flagsvc.core.tracing import SERVER, SPANS, Tracer, begin, child, read_traceparent, running

TRACE, SPAN = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7
VALID = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def tracer(ratio: float = 1.0, *, follows_parent: bool = True, room: int = 10, batch: int = 10) -> Tracer:
    """Return a tracer whose draws are always the same."""
    return Tracer(Random(1), ratio, follows_parent=follows_parent, room=room, batch=batch, on_batch=lambda: None)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (VALID, (TRACE, SPAN, True)),
        (VALID[:-2] + b"00", (TRACE, SPAN, False)),
        (VALID[:-2] + b"03", (TRACE, SPAN, True)),
        (b"cc" + VALID[2:] + b"-more", (TRACE, SPAN, True)),
        (VALID + b"-more", None),
        (b"ff" + VALID[2:], None),
        (VALID.upper(), None),
        (VALID[:3] + b"0" * 32 + VALID[35:], None),
        (VALID[:36] + b"0" * 16 + VALID[52:], None),
        (VALID.replace(b"4bf9", b"4bg9"), None),
        (VALID.replace(b"4bf9", b"+bf9"), None),
        (VALID.replace(b"4bf9", b"4_f9"), None),
        (VALID.replace(b"4bf9", "4bé9".encode("latin-1")), None),
        (VALID[:-1], None),
        (b"", None),
    ],
)
def test_what_a_traceparent_says(value: bytes, found: object) -> None:
    """Only a valid header counts (W3C Trace Context): version, lengths, lower-case digits, ids that are not 0."""
    assert read_traceparent(value) == found


def test_the_share_of_work_that_is_traced() -> None:
    """The ratio is the share of what is traced. With the ratio 0, nothing is drawn."""
    some = tracer(0.25)
    assert 200 < sum(some.begin("work") is not None for _ in range(1000)) < 300
    none = tracer(0)
    before = none._random.getstate()
    assert none.begin("work") is None and none._random.getstate() == before


def test_work_within_work() -> None:
    """A step within traced work has that work as its parent, and a step outside has no span. A failure has a word for its kind."""
    made = tracer()
    assert child("step") is None and begin(None, "work") is None
    work = begin(made, "work")
    assert work is not None

    def fail() -> None:
        with running(work), running(child("step")) as step:
            assert step is not None and (step.trace, step.parent) == (work.trace, work.id)
            raise UpstreamError("network", "away")

    with pytest.raises(UpstreamError):
        fail()
    assert work.run(child, "late") is None
    assert [(span.name, span.error) for span in made.take()] == [("step", "network"), ("work", "network")]


def test_the_header_that_goes_on_names_the_span() -> None:
    """What a span sends is read as its own ids. For work that is not traced, the header refuses."""
    span = tracer().begin("request", SERVER, VALID)
    assert span is not None and (span.trace, span.parent, span.is_remote) == (TRACE, SPAN, True)
    assert read_traceparent(span.traceparent) == (TRACE, span.id, True)
    refusal = read_traceparent(tracer().refusal())
    assert refusal is not None and not refusal[2]


def test_spans_that_wait_are_bounded() -> None:
    """The oldest spans are kept, further ones are counted. A span ends once."""
    woken: list[int] = []
    made = Tracer(Random(1), 1.0, follows_parent=True, room=3, batch=2, on_batch=lambda: woken.append(1))
    for number in range(5):
        span = made.begin(str(number))
        assert span is not None
        span.end()
        span.end()
    assert made.dropped[SPANS] == 2 and len(woken) == 2
    assert [[span.name for span in made.take()] for _ in range(3)] == [["0", "1"], ["2"], []]


def test_the_lines_of_a_span() -> None:
    """A line of JSON has the ids of the present span, which no field of the line replaces."""
    stream = io.StringIO()
    log = build_logger(as_json=True, stream=stream)
    with running(tracer().begin("work", SERVER, VALID)) as span:
        log.warn("within", trace_id="other")
    log.warn("outside")
    within, outside = map(json.loads, stream.getvalue().splitlines())
    assert span is not None
    assert (within["trace_id"], within["span_id"]) == (f"{TRACE:032x}", f"{span.id:016x}") and "trace_id" not in outside
