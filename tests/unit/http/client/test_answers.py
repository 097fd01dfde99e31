"""The meaning of an upstream response."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.core.errors import UpstreamError
from flagsvc.http.client.answers import Answer, Body, Fetched, failure, kind_of, retry_after

NOW = 1_750_000_000.0


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "unauthorized"),
        (403, "unauthorized"),
        (404, "not-found"),
        (429, "throttled"),
        (500, "server"),
        (599, "server"),
        (600, "unexpected"),
        (400, "unexpected"),
        (304, "unexpected"),
    ],
)
def test_every_status_has_a_kind(status: int, kind: str) -> None:
    """Every status has an error kind, and the message has the address and the status."""
    assert kind_of(status) == kind
    error = failure(Answer(status, {"retry-after": "7"}), "http://flags.example/api", NOW)
    assert (error.kind, error.status, error.retry_after) == (kind, status, 7.0)
    assert str(status) in str(error) and "`http://flags.example/api`" in str(error)


def test_a_web_page_is_not_a_document() -> None:
    """HTML with a success status is a document error. With an error status, the status decides."""
    page = {"content-type": "Text/HTML; charset=utf-8"}
    assert failure(Answer(200, page), "u", NOW).kind == "document"
    assert failure(Answer(502, page), "u", NOW).kind == "server"
    assert Answer(200, page).astray and Answer(404, {}).astray
    assert not Answer(502, page).astray and not Answer(200, {"content-type": "application/json"}).astray


@pytest.mark.parametrize(
    ("status", "headers", "worked"),
    [(200, {}, True), (202, {}, True), (304, {}, True), (200, {"content-type": "text/html"}, False), (302, {}, False)],
)
def test_what_counts_as_success(status: int, headers: dict[str, str], worked: bool) -> None:
    """2xx and 304 are success, unless the response is HTML."""
    assert Answer(status, headers).worked is worked


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("30", 30.0),
        (" 30 ", 30.0),
        ("0", 0.0),
        ("-5", 0.0),
        ("1.5", 1.5),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("٣", None),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        ("Wed, 99 Oct 2999 07:28:00 GMT", None),
    ],
)
def test_retry_after_in_both_forms(value: str | None, seconds: float | None) -> None:
    """Retry-After is a number of seconds or an HTTP date. A past time is 0, and an invalid value is None."""
    assert retry_after(value, NOW) == seconds


@given(st.text(max_size=40))
def test_no_retry_after_breaks_anything(value: str) -> None:
    """For any text the result is None or a finite number of seconds."""
    seconds = retry_after(value, NOW)
    assert seconds is None or 0 <= seconds < float("inf")


def collect(coding: str, chunks: list[bytes], limit: int = 1000) -> bytes:
    """Return the decoded body of the chunks."""
    body = Body(coding, limit, "http://flags.example")
    for chunk in chunks:
        body.feed(chunk)
    return body.finish()


@given(st.binary(max_size=300), st.integers(1, 50), st.sampled_from(["", "identity", "gzip", "x-gzip"]))
def test_a_body_in_any_pieces_is_the_body(data: bytes, size: int, coding: str) -> None:
    """A body, plain or gzip, is complete for any split into chunks."""
    sent = gzip.compress(data) if coding.endswith("gzip") else data
    assert collect(coding, [sent[at : at + size] for at in range(0, len(sent), size)]) == data


def test_a_packed_body_may_have_several_members() -> None:
    """Several gzip members make one body, in one chunk or in several."""
    one, two = gzip.compress(b"one"), gzip.compress(b"two")
    assert collect("gzip", [one + two]) == collect("gzip", [one, two]) == b"onetwo"


@pytest.mark.parametrize(
    ("coding", "chunks", "words"),
    [
        ("gzip", [gzip.compress(b"x" * 50)[:-1]], "ended early"),
        ("gzip", [gzip.compress(b"x" * 50)[:20]], "ended early"),
        ("gzip", [b"not gzip at all"], "wrong"),
        ("gzip", [gzip.compress(b"x")[:-8] + b"12345678"], "wrong"),
        ("gzip", [gzip.compress(b"x") + b"rubbish behind it"], "wrong"),
        ("gzip", [zlib.compress(b"x")], "wrong"),
        ("gzip", [gzip.compress(b"x" * 1001)], "larger than 1000 bytes"),
        ("gzip", [gzip.compress(bytes(10_000_000))], "larger than 1000 bytes"),
        ("", [b"x" * 600, b"x" * 401], "larger than 1000 bytes"),
        ("br", [], "content coding `br`"),
        ("gzip", [gzip.compress(b"") * 1000] * 3, "too many members"),
    ],
)
def test_a_body_that_is_no_good_is_a_document_error(coding: str, chunks: list[bytes], words: str) -> None:
    """A truncated, damaged or too large body, or one in an unexpected coding, raises a document error."""
    with pytest.raises(UpstreamError, match=words) as caught:
        collect(coding, chunks)
    assert caught.value.kind == "document"


def test_a_bomb_is_not_unpacked() -> None:
    """A gzip bomb of 50 MB raises an error and uses less than a megabyte."""
    bomb = gzip.compress(bytes(50_000_000), 1)
    tracemalloc.start()
    try:
        with pytest.raises(UpstreamError, match="larger than 1000 bytes"):
            collect("gzip", [bomb])
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_body_of_exactly_the_limit_is_taken() -> None:
    """A body of exactly the limit is accepted."""
    assert len(collect("gzip", [gzip.compress(b"x" * 1000)])) == len(collect("", [b"x" * 1000])) == 1000


def test_no_bytes_are_no_truncated_stream() -> None:
    """A response without a body may have a content coding."""
    assert collect("gzip", []) == b""


def test_documents_are_not_in_any_repr() -> None:
    """No repr shows a document or a header value."""
    assert "secret" not in repr(Fetched(b"secret")) + repr(Answer(200, {"x": "secret"}, b"secret"))


def test_a_body_in_single_bytes_takes_its_own_size() -> None:
    """An upstream that sends each byte alone does not take sixty times as much memory."""
    body = Body("", 1_000_000, "http://u")
    tracemalloc.start()
    try:
        for number in range(60_000):
            body.feed(b"%d" % (number % 1_000))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 400_000
    assert len(body.finish()) < 1_000_000
