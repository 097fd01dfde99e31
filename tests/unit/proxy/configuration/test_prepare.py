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
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.engine.context import Context
from flagsvc.proxy.configuration.prepare import HASHED_BYTES, SLICE_BYTES, Preparer, decode
from support.aio import asynchronous
from support.tiny_engine import TinyCompiled, TinySnapshot, document, tiny_compile


def only_a(feature: object) -> bool:
    """Return whether a feature's name begins with a. Values that are not features stay, so that the engine reports them."""
    return not isinstance(feature, dict) or str(feature["name"]).startswith("a")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1,2",
        b"\xff",
        b"<html>",
        b"nan",
        b'{"features":[]}x',
        b"[" * 200_000,
        b'{"features":[{"name":"\xc3',
    ],
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
    ("body", "decoded"),
    [(rb'{"a": "\ud800"}', {"a": "\ud800"}), (b"[1e999]", [float("inf")]), (b"[-1E400]", [float("-inf")])],
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


def test_a_document_that_utf_8_cannot_say_is_passed_on_escaped() -> None:
    """A filter that leaves features out writes the rest again, lone surrogates included."""
    body = (
        rb'{"features":[{"name":"a\ud800","enabled":true,"strategies":[]},{"name":"b","enabled":true,"strategies":[]}]}'
    )
    prepared = Preparer(tiny_compile, only_a).prepare(body, None)
    assert json.loads(prepared.document.body)["features"] == [{"name": "a\ud800", "enabled": True, "strategies": []}]


def test_a_byte_order_mark_is_skipped() -> None:
    """Editors on some systems write one."""
    assert decode(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


def test_json_of_the_wrong_shape_is_a_document_error() -> None:
    """The engine decides about the shape."""
    with pytest.raises(DocumentError, match="features"):
        Preparer(tiny_compile).prepare(b"[]", None)


def test_without_a_filter_the_document_is_passed_on_byte_for_byte() -> None:
    """Its ETag is strong and depends only on the bytes."""
    body = b'{ "features" : [ {"name":"a"} ] }'
    prepared = Preparer(tiny_compile).prepare(body, None)
    assert prepared.raw is body and prepared.document.body is body
    assert prepared.document.etag == Preparer(tiny_compile).prepare(bytes(bytearray(body)), None).document.etag
    assert prepared.document.etag != Preparer(tiny_compile).prepare(body + b" ", None).document.etag
    assert prepared.document.etag.startswith('"') and prepared.document.etag.endswith('"')


def test_with_a_filter_only_what_is_wanted_is_passed_on() -> None:
    """Project and name prefix hold for server-side SDKs too; everything but the features stays."""
    body = document("apple", "berry", segments=[{"id": 1}])
    prepared = Preparer(tiny_compile, only_a).prepare(body, None)
    assert json.loads(prepared.document.body) == {
        "version": 2,
        "features": [{"name": "apple"}],
        "segments": [{"id": 1}],
    }
    assert prepared.raw is body


def test_a_filter_that_keeps_everything_changes_nothing() -> None:
    """Byte for byte."""
    body = document("apple", "avocado")
    assert Preparer(tiny_compile, only_a).prepare(body, None).document.body is body


@pytest.mark.parametrize("body", [b"[]", b'{"features":{}}', b"{}"])
def test_a_filter_leaves_what_it_does_not_understand_to_the_engine(body: bytes) -> None:
    """A compile function may be more lenient than ours."""
    lenient = Preparer(lambda *_: TinyCompiled(TinySnapshot("", {})), only_a)
    assert lenient.prepare(body, None).document.body == body


async def turns_during(work: Awaitable[object]) -> int:
    """Return how often the event loop had its turn while something was done."""
    task = asyncio.ensure_future(work)
    turns = 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    await task
    return turns


@asynchronous
async def test_a_large_document_is_compiled_in_slices() -> None:
    """The event loop has its turn after every slice; a small document is compiled on the spot."""
    prepare = Preparer(Compiler(CompileOptions()))
    assert await turns_during(prepare(document("a"), None)) <= 2
    many = document(*[f"flag-{at}-{'x' * 100}" for at in range(2000)])
    assert await turns_during(prepare(many, None)) > len(many) / SLICE_BYTES


@asynchronous
async def test_a_compilation_that_is_given_up_releases_its_document() -> None:
    """An environment may go in the middle of a refresh. Nothing waits for the collector, which would come much later."""
    prepare = Preparer(Compiler(CompileOptions()))
    body = document(*[f"flag-{at}-{'x' * 100}" for at in range(2000)])
    before = sys.getrefcount(body)
    gc.disable()
    try:
        task = asyncio.ensure_future(prepare(body, None))
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


@asynchronous
async def test_a_long_document_is_hashed_in_slices() -> None:
    """The tag is the same as from hashing at once."""
    prepare = Preparer(Compiler(CompileOptions()))
    body = document("a", filler="x" * (2 * HASHED_BYTES))
    prepared = await prepare(body, None)
    assert prepared.document.etag == f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    assert await turns_during(prepare(body, None)) > 2


@asynchronous
async def test_what_did_not_change_is_taken_over() -> None:
    """A toggle whose bytes are the same is the same object in the next snapshot; one whose bytes changed is not."""
    prepare = Preparer(Compiler(CompileOptions()))
    first = (await prepare(document("a", "b"), None)).snapshot
    second = (await prepare(document("a", "c"), first)).snapshot
    assert second.toggles["a"] is first.toggles["a"]
    assert list(second.names) == ["a", "c"]


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


@asynchronous
async def test_a_document_that_only_a_patient_decoder_takes_gives_the_same_in_slices() -> None:
    """Lone surrogates, huge numbers, a byte order mark, a key that comes twice, features that are none."""
    compiler = Compiler(CompileOptions())
    for body in ODD:
        sliced, whole = await Preparer(compiler)(body, None), Preparer(compiler).prepare(body, None)
        assert sliced.document == whole.document
        assert sliced.snapshot.revision == whole.snapshot.revision
        assert sliced.snapshot.all(Context()) == whole.snapshot.all(Context())
        assert [str(each) for each in sliced.problems] == [str(each) for each in whole.problems]


@asynchronous
async def test_what_is_refused_at_once_is_refused_in_slices() -> None:
    """Text that is not JSON or not UTF-8, a wrong shape and deep nesting are refused in slices too."""
    nested = b'{"features":[{"name":"a","x":' + b"[" * 50_000 + b"]" * 50_000 + b"}]}"
    for body in (
        b"{",
        b'{"features":[],"x":"\xff"}',
        b"[]",
        b'{"features":{}}',
        b'{"features":[],"segments":{}}',
        nested,
    ):
        with pytest.raises(DocumentError) as at_once:
            Preparer(Compiler(CompileOptions())).prepare(body, None)
        with pytest.raises(DocumentError) as compile_in_slices:
            await Preparer(Compiler(CompileOptions()))(body, None)
        assert str(compile_in_slices.value) == str(at_once.value)


@asynchronous
async def test_a_filter_in_slices_passes_on_what_was_kept() -> None:
    """The kept features are unchanged; if all are kept, so are the bytes of the document."""
    prepare = Preparer(Compiler(CompileOptions(name_prefix="a")), only_a)
    body = document("apple", "berry", "avocado", segments=[], more=1)
    prepared = await prepare(body, None)
    assert json.loads(prepared.document.body) == json.loads(document("apple", "avocado", segments=[], more=1))
    assert list(prepared.snapshot.names) == ["apple", "avocado"]
    again = document("apple", "avocado")
    assert (await prepare(again, prepared.snapshot)).document.body is again


@asynchronous
async def test_compiling_is_told_what_it_replaces() -> None:
    """The compiler gets the previous snapshot, so that an equal configuration keeps it."""
    seen = []

    def compile_noting(raw: object, previous: TinySnapshot | None) -> TinyCompiled:
        seen.append(previous)
        return tiny_compile(raw, previous)

    old = TinySnapshot("old", {})
    await Preparer(compile_noting)(document("a"), old)
    assert seen == [old]
