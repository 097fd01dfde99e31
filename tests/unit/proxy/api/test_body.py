"""JSON bodies and the context in them.

Media types, charsets and content codings of a request's body.
"""

from __future__ import annotations

import gzip
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.media import PLAIN, Media
from flagsvc.http.messages import HttpError
from flagsvc.http.reached_limits import BODY
from flagsvc.proxy.api.body import LookupBody, media, read_json, read_lookup, read_time, unpacked
from support.serving import attempt

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=10,
)
NAMES = st.one_of(st.sampled_from(["userId", "properties", "currentTime", "appName", "a"]), st.text(max_size=4))


def is_text(value: str) -> bool:
    """Return whether a value can leave as UTF-8."""
    return value.encode("utf-8", "replace").decode() == value


@given(VALUES)
def test_json_is_read_as_json(value: object) -> None:
    """The parser reads back what the standard library writes. Lone surrogates become U+FFFD."""
    raw = json.dumps(value).encode()
    found = read_json(raw, PLAIN, 10**6)
    assert json.dumps(found).encode().count(b"[") == raw.count(b"[")
    assert is_text(json.dumps(found, ensure_ascii=False))


@given(st.binary(max_size=40), st.sampled_from(["utf-8", "utf-16"]))
def test_any_bytes_are_json_or_a_400(body: bytes, codec: str) -> None:
    """For any bytes, the only error is HttpError."""
    found = attempt(read_json, body, Media(0, codec), 1000)
    if isinstance(found, HttpError):
        assert found.status == 400
        assert found.message.startswith("the body is")


@given(st.fixed_dictionaries({}, optional={"toggles": VALUES, "context": st.dictionaries(NAMES, VALUES, max_size=5)}))
def test_any_object_is_a_lookup_or_a_400(value: dict[str, object]) -> None:
    """Every field of the resulting context is text. An error names the field by a pointer."""
    found = attempt(read_lookup, value, 5000)
    if isinstance(found, HttpError):
        ((pointer, _),) = found.problems
        assert found.status == 400
        assert pointer.startswith("/body/")
        return
    assert isinstance(found, LookupBody)
    assert all(isinstance(name, str) for name in found.toggles)
    assert all(isinstance(each, str) for each in found.context.properties.values())
    assert found.context.user_id is None or found.context.user_id


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, None), (math.inf, None), (1.5, 1.0), (-1.5, -1.0), (True, 1.0), ("1970-01-01T00:00:01Z", 1000.0), ("", None)],
)
def test_times(value: object, expected: float | None) -> None:
    """Epoch milliseconds, cut to whole ones, or a text."""
    assert read_time(value) == expected


def test_what_headers_say() -> None:
    """The window of the coding and the codec of the charset."""
    assert media(None, None) == Media(0, "utf-8")
    assert media(b"application/json; charset=utf-16", b"gzip") == Media(31, "utf-16")
    assert media(b"application/json", b" Deflate ") == Media(15, "utf-8")


@given(st.binary(max_size=30), st.binary(max_size=10))
def test_any_headers_are_read_or_refused(content_type: bytes, coding: bytes) -> None:
    """415 and nothing else, the message bounded."""
    found = attempt(media, content_type, coding)
    if isinstance(found, HttpError):
        assert found.status == 415
        assert len(found.message) < 300


@pytest.mark.parametrize(
    ("body", "status", "limit"),
    [(gzip.compress(b"12345"), 413, BODY), (b"\x00", 400, ""), (gzip.compress(b"1") + b"x", 400, "")],
)
def test_what_cannot_be_unpacked_is_refused(body: bytes, status: int, limit: str) -> None:
    """413 with the limit that was reached, else 400."""
    with pytest.raises(HttpError) as caught:
        unpacked(body, 31, 4)
    assert (caught.value.status, caught.value.limit) == (status, limit)
