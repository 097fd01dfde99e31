"""From the bytes of a document to the served configuration."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import sys
from collections.abc import Awaitable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.core.errors import DocumentError
from flagsvc.engine.compile import CompileOptions, Compiler, compile_document
from flagsvc.engine.context import Context
from flagsvc.proxy.configuration.prepare import HASHED_BYTES, SLICE_BYTES, Preparer, decode, filter_features
from support.polling import PREPARE, document


def only_a(feature: object) -> bool:
    """Return whether a feature's name begins with a. Values that are not features stay, so that the engine reports them."""
    return not isinstance(feature, dict) or str(feature["name"]).startswith("a")


ONLY_A = Preparer(Compiler(CompileOptions(name_prefix="a")), only_a)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1,2", b"\xff", b"<html>", b"nan", b'{"features":[]}x', b"[" * 200_000, b'{"features":[{"name":"\xc3']
)
def test_what_is_not_json_is_a_document_error(body: bytes) -> None:
    """Truncated, other formats, wrong UTF-8, nesting without end."""
    with pytest.raises(DocumentError, match="not JSON"):
        decode(body)


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_a_document_error(body: bytes) -> None:
    """Nothing else may come out of decoding."""
    try:
        decode(body)
    except DocumentError:
        return


@pytest.mark.parametrize(
    ("body", "decoded"), [(rb'{"a": "\ud800"}', {"a": "\ud800"}), (b"[1e999]", [float("inf")]), (b"[-1E400]", [float("-inf")])]
)
def test_what_the_strict_decoder_alone_refuses_is_still_json(body: bytes, decoded: object) -> None:
    """A lone surrogate or a huge number in one toggle does not affect the others. Text that is not JSON is still refused."""
    assert decode(body) == decoded
    with pytest.raises(DocumentError, match="not JSON"):
        decode(body[:-1])
    with pytest.raises(DocumentError, match="not JSON"):
        decode(b"[1e999, NaN]")


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_whole_number_of_any_length_is_json(digits: int) -> None:
    """An integer with thousands of digits is read as in JavaScript, despite the interpreter's limit. The rest is unchanged."""
    read = decode(b'[7, "\\ud800", -' + b"9" * digits + b"]")
    assert read == [7, "\ud800", float("-inf")]
    assert type(read[0]) is int


async def test_a_document_that_utf_8_cannot_say_is_passed_on_escaped() -> None:
    """A filter that leaves features out writes the rest again, lone surrogates included."""
    body = rb'{"features":[{"name":"a\ud800","enabled":true,"strategies":[]},{"name":"b"}]}'
    prepared = await ONLY_A(body, None)
    assert json.loads(prepared.document.body)["features"] == [{"name": "a\ud800", "enabled": True, "strategies": []}]


@pytest.mark.parametrize("name", [r"a\ud800", "ab"])
@pytest.mark.parametrize(("other", "members"), [("b", {"features", "query"}), ("abc", {"features", "query", "meta"})])
async def test_a_part_of_a_document_does_not_have_the_digest_of_all(name: str, other: str, members: set[str]) -> None:
    """Where a filter leaves features out, `meta` is left out as well, however the document was read."""
    features = ",".join(f'{{"name":"{each}","enabled":true,"strategies":[]}}' for each in (name, other))
    prepared = await ONLY_A(f'{{"features":[{features}],"query":{{}},"meta":{{"queryHash":"x"}}}}'.encode(), None)
    assert set(json.loads(prepared.document.body)) == members


async def test_without_a_filter_the_document_is_passed_on_byte_for_byte() -> None:
    """Its ETag is strong and depends only on the bytes."""
    body = b'{ "features" : [ {"name":"a"} ] }'
    prepared = await PREPARE(body, None)
    assert prepared.raw is body and prepared.document.body is body
    assert prepared.document.etag == (await PREPARE(bytes(bytearray(body)), None)).document.etag
    assert prepared.document.etag != (await PREPARE(body + b" ", None)).document.etag
    assert prepared.document.etag.startswith('"') and prepared.document.etag.endswith('"')


@pytest.mark.parametrize("body", [b"[]", b'{"features":{}}', b"{}"])
def test_a_filter_leaves_what_it_does_not_understand_to_the_engine(body: bytes) -> None:
    """The filter passes a document of another shape on unchanged."""
    assert filter_features(body, json.loads(body), only_a) is body


async def turns_during(work: Awaitable[object]) -> int:
    """Return how often the event loop had its turn while something was done."""
    task = asyncio.ensure_future(work)
    turns = 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    await task
    return turns


async def test_a_large_document_is_compiled_in_slices() -> None:
    """The event loop has its turn after every slice; a small document is compiled on the spot."""
    assert await turns_during(PREPARE(document("a"), None)) <= 2
    many = document(*[f"flag-{at}-{'x' * 100}" for at in range(2000)])
    assert await turns_during(PREPARE(many, None)) > len(many) / SLICE_BYTES


async def test_a_compilation_that_is_given_up_releases_its_document() -> None:
    """An environment may go in the middle of a refresh. Nothing waits for the collector, which would come much later."""
    body = document(*[f"flag-{at}-{'x' * 100}" for at in range(2000)])
    before = sys.getrefcount(body)
    gc.disable()
    try:
        task = asyncio.ensure_future(PREPARE(body, None))
        for _ in range(5):
            await asyncio.sleep(0)
        assert sys.getrefcount(body) > before
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        del task
        assert sys.getrefcount(body) == before
    finally:
        gc.enable()


async def test_a_long_document_is_hashed_in_slices() -> None:
    """The tag is the same as from hashing at once."""
    body = document("a", filler="x" * (2 * HASHED_BYTES))
    prepared = await PREPARE(body, None)
    assert prepared.document.etag == f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    assert await turns_during(PREPARE(body, None)) > 2


async def test_what_did_not_change_is_taken_over() -> None:
    """A toggle whose bytes are the same is the same object in the next snapshot; one whose bytes changed is not."""
    first = (await PREPARE(document("a", "b"), None)).snapshot
    second = (await PREPARE(document("a", "c"), first)).snapshot
    assert second.toggles["a"] is first.toggles["a"]
    assert list(second.names) == ["a", "c"]
    assert (await PREPARE(document("a", "c"), second)).snapshot is second


ODD = [
    rb'{"features":[{"name":"\ud800","enabled":true,"strategies":[]}]}',
    b'{"features":[{"name":"a","enabled":true,"strategies":[],"x":1e999}]}',
    b'{"features":[{"name":"a","enabled":true,"strategies":[]}],"segments":[{"id":1,"x":1e999}]}',
    b'{"features":[{"name":"a","x":' + b"9" * 5000 + b"}]}",
    b'\xef\xbb\xbf{"features":[{"name":"a","enabled":true,"strategies":[]}]}',
    b'{"features":[{"name":"a"}],"features":[{"name":"b"}]}',
    b'{"features":[7, null, {"name":""}],"segments":null}',
    '{"features":[{"name":"Ω","enabled":true,"strategies":[]}]}'.encode(),
]


async def test_a_document_that_only_a_patient_decoder_takes_gives_the_same_in_slices() -> None:
    """Lone surrogates, huge numbers, a byte order mark, a key that comes twice, features that are none."""
    for body in ODD:
        sliced, whole = await PREPARE(body, None), compile_document(decode(body), CompileOptions())
        assert sliced.snapshot.revision == whole.snapshot.revision
        assert sliced.snapshot.all(Context()) == whole.snapshot.all(Context())
        assert [str(each) for each in sliced.problems] == [str(each) for each in whole.problems]


async def test_what_is_refused_at_once_is_refused_in_slices() -> None:
    """Text that is not JSON or not UTF-8, a wrong shape and deep nesting are refused in slices too."""
    nested = b'{"features":[{"name":"a","x":' + b"[" * 50_000 + b"]" * 50_000 + b"}]}"
    for body in (b"{", b'{"features":[],"x":"\xff"}', b"[]", b'{"features":{}}', b'{"features":[],"segments":{}}', nested):
        with pytest.raises(DocumentError) as at_once:
            compile_document(decode(body), CompileOptions())
        with pytest.raises(DocumentError) as in_slices:
            await PREPARE(body, None)
        assert str(in_slices.value) == str(at_once.value)


async def test_with_a_filter_only_what_is_wanted_is_passed_on() -> None:
    """The filter holds for server-side SDKs, too. The kept features are unchanged; if all are kept, so are the document's bytes."""
    body = document("apple", "berry", "avocado", segments=[], more=1)
    prepared = await ONLY_A(body, None)
    assert json.loads(prepared.document.body) == json.loads(document("apple", "avocado", segments=[], more=1))
    assert list(prepared.snapshot.names) == ["apple", "avocado"] and prepared.raw is body
    again = document("apple", "avocado")
    assert (await ONLY_A(again, prepared.snapshot)).document.body is again
