"""Odd files in the storage folder, and odd delta events.

What was stored is served or ignored; an event that cannot be applied changes nothing (behaviour: First configuration).
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from flagsvc.core.errors import DocumentError, StoreError
from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.document import EVENTS, DocumentBuilder
from flagsvc.proxy.configuration.stores import FileStore, frame
from fuzzing import words
from fuzzing.documents import EDGES, VALID, assert_evaluates, patched
from fuzzing.rows import Row

KEY = "0123abc"
GENERATIONS = (b"", b"\n", b"old generation", b"new generation\n" * 40)

# ---- files

content = st.none() | words.damaged(st.sampled_from(GENERATIONS).map(frame)) | st.binary(max_size=60)


def files_row(folder: Path, given: tuple[bytes | None, bytes | None]) -> None:
    """Only complete data are found, the newest first. With any other files, the next generation is stored."""
    store = FileStore(folder)
    for name, data in zip((f"{KEY}.flags", f"{KEY}.previous"), given, strict=True):
        path = folder / name
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
    whole = [data for data in GENERATIONS for written in given if written == frame(data)]
    try:
        found = store.get(KEY)
    except StoreError:
        assert not whole and any(given_ is not None for given_ in given)
    else:
        assert found in whole if whole else found is None or frame(found) in given
    store.set(KEY, b"the next")
    assert store.get(KEY) == b"the next"


# ---- delta events

NAMES = tuple(feature["name"] for feature in VALID["features"][:6])
IDS = (0, 1, 2, 7, "1", "x", None, -1, 10**30)
odd = words.values | st.sampled_from(EDGES)
feature = (
    st.sampled_from(VALID["features"])
    | st.fixed_dictionaries({"name": st.sampled_from(NAMES) | odd, "enabled": st.booleans(), "strategies": st.just([])})
    | odd
)
segment = st.sampled_from(VALID["segments"]) | st.fixed_dictionaries({"id": st.sampled_from(IDS) | odd}) | odd
documents = patched() | odd
KINDS: dict[str, dict[str, Any]] = {
    "hydration": {"features": st.lists(feature, max_size=4) | odd, "segments": st.lists(segment, max_size=3) | odd},
    "feature-updated": {"feature": feature},
    "feature-removed": {"featureName": st.sampled_from(NAMES) | odd, "project": odd},
    "segment-updated": {"segment": segment},
    "segment-removed": {"segmentId": st.sampled_from(IDS) | odd},
}
events = st.one_of(
    *(st.fixed_dictionaries({"eventId": odd, "type": st.just(kind)}, optional=fields) for kind, fields in KINDS.items()),
    st.fixed_dictionaries({"type": odd}),
    odd,
)


def delta_row(world: object, given: list[Any]) -> None:
    """An event is applied or refused as a whole, and the resulting document evaluates like any other."""
    assert set(KINDS) == set(EVENTS)
    builder = DocumentBuilder(copy.deepcopy(VALID))
    for event in given:
        before = builder.document()
        try:
            builder.apply(event)
        except DocumentError:
            assert builder.document() == before
    document = builder.document()
    assert DocumentBuilder(copy.deepcopy(document)).document() == document
    assert_evaluates(compile_document(document, CompileOptions()).snapshot)


def whole_delta_row(world: object, document: Any) -> None:
    """A document of events, or what is none, makes a builder or a DocumentError."""
    try:
        builder = DocumentBuilder(document)
    except DocumentError:
        return
    assert_evaluates(compile_document(builder.document(), CompileOptions()).snapshot)


FILES: tuple[Row[Path], ...] = (Row("files of the storage", st.tuples(content, content), files_row, 80),)
DELTAS: tuple[Row[object], ...] = (
    Row("delta events", st.lists(events, max_size=8), delta_row, 80),
    Row("delta documents", st.fixed_dictionaries({"events": st.lists(events, max_size=4)}) | documents, whole_delta_row, 60),
)
