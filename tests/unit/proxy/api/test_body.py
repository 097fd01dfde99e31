"""JSON bodies and the context in them. Media types, charsets and content codings of a request's body."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.media import PLAIN, Media
from flagsvc.http.messages import HttpError
from flagsvc.http.reached_limits import TOGGLES
from flagsvc.proxy.api.body import LookupBody, media, read_json, read_lenient_lookup, read_lookup
from support.serving import attempt

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=10,
)
NAMES = st.one_of(st.sampled_from(["userId", "properties", "currentTime", "appName", "a"]), st.text(max_size=4))


@given(VALUES)
def test_json_is_read_as_json(value: object) -> None:
    """The parser reads back what the standard library writes. Lone surrogates become U+FFFD."""
    raw = json.dumps(value).encode()
    found = read_json(raw, PLAIN, 10**6)
    assert json.dumps(found).encode().count(b"[") == raw.count(b"[")
    text = json.dumps(found, ensure_ascii=False)
    assert text.encode("utf-8", "replace").decode() == text


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


@pytest.mark.parametrize("read", [read_lookup, read_lenient_lookup])
def test_as_many_toggles_as_the_limit(read: Callable[[object, int], LookupBody]) -> None:
    """A list may have as many toggles as the limit, and not one more."""
    assert read({"toggles": ["a", "b"]}, 2).toggles == ["a", "b"]
    refused = attempt(read, {"toggles": ["a", "b", "c"]}, 2)
    assert isinstance(refused, HttpError) and refused.limit == TOGGLES


@given(st.binary(max_size=30), st.binary(max_size=10))
def test_any_headers_are_read_or_refused(content_type: bytes, coding: bytes) -> None:
    """415 and nothing else, the message bounded."""
    found = attempt(media, content_type, coding)
    if isinstance(found, HttpError):
        assert found.status == 415
        assert len(found.message) < 300
