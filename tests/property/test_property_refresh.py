"""Compiling what changed gives what compiling everything gives: revision, problems, answers, for any course of documents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flagsvc.core.errors import DocumentError
from flagsvc.engine.compile import Compilation, Compiled, CompileOptions, Compiler, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.configuration import Preparer
from flagsvc.proxy.configuration.prepare import PreparedDocument, decode
from support.same_inputs import examples
from support.tagged import constraints, mixed, simple

NAMES = ["a", "b", "c", "d", "e", "Ω"]
CONTEXTS = [
    Context(user_id="1", properties={"region": "eu"}),
    Context(user_id="2", properties={"region": "1", "plan": "2"}, now=1.9e12),
    Context(session_id="3", entropy=12345),
    Context(entropy=99, current_time=0.0),
]

parent = {"feature": st.sampled_from(NAMES), "enabled": st.booleans()}
common = st.fixed_dictionaries(
    {
        "name": st.sampled_from(NAMES),
        "enabled": st.booleans(),
        "dependencies": st.lists(st.fixed_dictionaries(parent, optional={"variants": st.just(["v"])}), max_size=2),
        "project": st.sampled_from(["p", "q"]),
    }
)
decides = st.booleans().flatmap(lambda several: mixed() if several else simple)
sound = st.builds(lambda own, more: own | more, common, decides)
malformed = st.sampled_from([7, None, {}, {"name": "a", "strategies": 5}, {"name": "b", "variants": [{"name": "v"}]}])
features = st.one_of(sound, sound, sound, malformed)
segments = st.one_of(
    st.builds(lambda key, parts: {"id": key, "constraints": parts}, st.integers(1, 3), st.lists(constraints, max_size=2)),
    st.just({"name": "no id"}),
)
Document = dict[str, Any]


@st.composite
def courses(draw: st.DrawFn) -> list[Document]:
    """Return documents that follow each other: things are added, taken away, moved, repeated and changed."""
    document: Document = {
        "version": 2,
        "features": draw(st.lists(features, max_size=8)),
        "segments": draw(st.lists(segments, max_size=3)),
    }
    course = [document]
    for _ in range(draw(st.integers(1, 5))):
        document = json.loads(json.dumps(document))
        for _ in range(draw(st.integers(0, 3))):
            alter(draw, document["features"], features)
        if draw(st.booleans()):
            alter(draw, document["segments"], segments)
        course.append(document)
    return course


def alter(draw: st.DrawFn, items: list[Any], fresh: st.SearchStrategy[Any]) -> None:
    """Change a list in one way."""
    place = draw(st.integers(0, len(items)))
    kind = draw(st.sampled_from(["insert", "remove", "replace", "move", "repeat"]))
    if kind == "insert" or not items:
        items.insert(place, draw(fresh))
        return
    old = items.pop(min(place, len(items) - 1))
    if kind == "replace":
        items.insert(place, draw(fresh))
    elif kind != "remove":
        items.insert(draw(st.integers(0, len(items))), old)
        if kind == "repeat":
            items.insert(place, old)


def built(compiler: Compiler, document: Document, previous: Snapshot | None, budget: int) -> Compiled:
    """Return what compiling a document's bytes gives, some of the work at a time."""
    building = compiler.begin_text(json.dumps(document).encode(), previous)
    assert isinstance(building, Compilation)
    while not building.advance(budget):
        pass
    return building.compiled()


def answers(snapshot: Snapshot) -> list[object]:
    """Return every answer to every context, and which contexts have equal ones for certain."""
    found: list[object] = [list(snapshot.names.items())]
    for context in CONTEXTS:
        found += [snapshot.enabled(context), snapshot.all(context), snapshot.named(context, [*NAMES, "nobody"])]
        found.append(snapshot.cache_keys.key(context, "a", []))
    return found


@given(course=courses(), budget=st.sampled_from([1, 500, 10**9]), fold=st.booleans(), project=st.sampled_from([None, "p"]))
@settings(max_examples=examples(150))
def test_compiling_what_changed_is_compiling_everything(
    course: list[Document], budget: int, fold: bool, project: str | None
) -> None:
    """A snapshot gives the same answers while the next one is made of its parts, and after that."""
    options = CompileOptions(hostname="here", fold=fold, project=project)
    compiler = Compiler(options)
    previous: Snapshot | None = None
    served: list[tuple[Snapshot, list[object]]] = []
    for document in course:
        one = built(compiler, document, previous, budget)
        other = Compiler(options)(document)
        assert one.snapshot.revision == other.snapshot.revision
        assert [str(each) for each in one.problems] == [str(each) for each in other.problems]
        assert answers(one.snapshot) == answers(other.snapshot)
        for snapshot, before in served:
            assert answers(snapshot) == before
        previous = one.snapshot
        served.append((previous, answers(previous)))


@given(course=courses(), turns=st.lists(st.integers(0, 2), max_size=60))
@settings(max_examples=examples(60))
def test_two_documents_can_be_compiled_at_the_same_time(course: list[Document], turns: list[int]) -> None:
    """A bootstrap document may arrive while the upstream answers: each document compiles as it would alone."""
    compiler = Compiler(CompileOptions())
    base = built(compiler, course[0], None, 10**9).snapshot
    texts = [json.dumps(document).encode() for document in (course[-1], course[len(course) // 2])]
    buildings = [compiler.begin_text(text, base) for text in texts]
    for turn in turns:
        building = buildings[turn % 2]
        assert building is not None
        building.advance(100)
    for text, building in zip(texts, buildings, strict=True):
        assert building is not None
        building.advance(10**9)
        alone = compiler(json.loads(text)).snapshot
        assert answers(building.compiled().snapshot) == answers(alone)


SPELLINGS = [
    b'{"version":2,"features":[{"name":"a","enabled":true,"strategies":[{"name":"default"}]},{"name":"b","x":"\\u00e9\\n"}],'
    b'"segments":[{"id":1,"constraints":[]}],"query":{"p":[1.5e3,null,-0]}}',
    '{"features" : [ {"name":"Ω","enabled":false} , 7 ] ,\n"x":"é"}'.encode(),
    b'{"segments":null,"features":[],"features":[{"name":"twice"}]}',
]
BITS = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\xff",
    b"\xed\xa0\x80",
    b"\x00",
    b"1e999",
    b"\\ud800",
    b"NaN",
    b"0",
    b"-",
    b" ",
]
cuts = st.tuples(st.floats(0, 1), st.integers(0, 4), st.sampled_from([b"", *BITS]))


def outcome(compiled: Callable[[], Compiled | PreparedDocument]) -> object:
    """Return what compiling a document gives, as something to compare; or why it is refused."""
    try:
        made = compiled()
    except DocumentError as error:
        return str(error)
    return (made.snapshot.revision, made.snapshot.all(Context()), [str(each) for each in made.problems])


@given(text=st.sampled_from(SPELLINGS), cuts=st.lists(cuts, max_size=3))
@settings(max_examples=examples(400))
def test_any_bytes_come_out_the_same_in_slices_and_as_a_whole(text: bytes, cuts: list[tuple[float, int, bytes]]) -> None:
    """A damaged document is refused for the same reason, or read in the same way."""
    for share, gone, put in cuts:
        at = int(share * len(text))
        text = text[:at] + put + text[at + gone :]
    in_slices = outcome(lambda: asyncio.run(as_served(text)))
    assert in_slices == outcome(lambda: compile_document(decode(text), CompileOptions()))


async def as_served(text: bytes) -> PreparedDocument:
    """Prepare a document as the poller does."""
    return await Preparer(Compiler(CompileOptions()))(text, None)
