"""Laws of delta: for any sequence of documents, a caller with any of them gets to the newest document (dialects: Delta and
streaming).
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.delta import EVENT_ID_BITS, Changes, Told, digest_content, make_id, split_content
from support.deltas import Twin

Json = dict[str, Any]

NAMES = st.sampled_from(("a", "b", 'c "quoted"', "d\n", "ä", "shop.e"))
PROJECTS = st.sampled_from((None, "default", "shop"))
FEATURES = st.lists(
    st.builds(
        lambda name, enabled, project: {"name": name, "enabled": enabled} | ({} if project is None else {"project": project}),
        *(NAMES, st.booleans(), PROJECTS),
    ),
    max_size=6,
    unique_by=lambda each: each["name"],
)
SEGMENTS = st.lists(
    st.builds(lambda number, value: {"id": number, "constraints": [value]}, st.integers(1, 4), st.integers(0, 2)),
    max_size=3,
    unique_by=lambda each: each["id"],
)
DOCUMENTS = st.lists(st.tuples(FEATURES, SEGMENTS, st.sampled_from((None, 2))), min_size=1, max_size=12)


def content_of(features: list[Json], segments: list[Json]) -> str:
    """Return the content without its order."""
    by_name = sorted(features, key=lambda each: str(each["name"]))
    return json.dumps([by_name, sorted(segments, key=lambda each: int(each["id"]))], sort_keys=True)


def take(changes: Changes, features: list[Json], segments: list[Json], indent: int | None) -> None:
    body = json.dumps({"version": 2, "features": features, "segments": segments}, indent=indent).encode()
    changes.take(make_id(sha256(content_of(features, segments).encode()).hexdigest()), *split_content(body))


@given(documents=DOCUMENTS, max_known=st.integers(1, 12), max_gone=st.integers(0, 12))
def test_every_caller_gets_to_the_newest_document(documents: list[Any], max_known: int, max_gone: int) -> None:
    """The events since any document give the newest content, one by one as well as merged, also from a forgotten document.

    A caller of the newest content is told nothing, and every event has the newest id in a form that SDKs read.
    """
    changes = Changes(max_known, max_gone)
    stepwise, known = Twin(), ""
    callers: dict[str, Twin] = {}
    for features, segments, indent in documents:
        take(changes, features, segments, indent)
        wanted = Twin(features, segments)
        told = changes.tell(known)
        assert (told is None) == (stepwise == wanted and known != "")
        known = apply(stepwise, told, changes)
        assert stepwise == wanted
        for since, content in callers.items():
            caller = content.copy()
            assert apply(caller, changes.tell(since), changes) == changes.identity and caller == wanted
        callers[changes.identity] = wanted
        fresh = Twin()
        assert apply(fresh, changes.tell(), changes) == known and fresh == wanted


def apply(twin: Twin, told: Told | None, changes: Changes) -> str:
    """Let a caller apply what it is told; return the id that it has then."""
    if told is not None:
        assert told.identity == changes.identity
        body = json.loads(told.body)
        assert {each["eventId"] for each in body["events"]} == {int(told.identity) % 2**EVENT_ID_BITS}
        head, data = told.event.decode().split("data: ")
        assert head.endswith(f"\nid: {told.identity}\n") and json.loads(data) == body
        assert data.endswith("}\n\n") and data.count("\n") == 2
        twin.apply(told.body)
    return changes.identity


@given(first=st.tuples(FEATURES, SEGMENTS), second=st.tuples(FEATURES, SEGMENTS))
def test_a_digest_is_of_the_content(first: tuple[list[Json], list[Json]], second: tuple[list[Json], list[Json]]) -> None:
    """Documents without a digest of their own have the same id if and only if features and segments are the same."""
    ids = [
        make_id(digest_content(*split_content(json.dumps({"features": features, "segments": segments}).encode())))
        for features, segments in (first, second)
    ]
    assert (ids[0] == ids[1]) == (first == second)
