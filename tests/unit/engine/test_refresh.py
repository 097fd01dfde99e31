"""What the next snapshot reuses from the previous one, and what it must not reuse."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from flagsvc.engine.changes import CHANGED_IN_A_ROW, NOT_THERE, UNREAD, Matcher
from flagsvc.engine.compile import POOL_ALLOWANCE, Compilation, Compiled, CompileOptions, Compiler
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import PLAIN
from flagsvc.engine.parts import Part
from flagsvc.engine.projects import restrict
from flagsvc.engine.snapshot import Snapshot
from support.evaluating import constraint, feature, region, rollout, strategy, toggles

EU = constraint("IN", values=["eu"])
US = constraint("IN", values=["us"])


def text(*features: object, segments: object = ()) -> bytes:
    """Return the JSON of a document."""
    return json.dumps({"version": 2, "features": features, "segments": segments}).encode()


def begun(compiler: Compiler, body: bytes, previous: Snapshot | None = None) -> Compilation:
    """Return the compiling of a document's bytes."""
    building = compiler.begin_text(body, previous)
    assert building is not None
    return building


def compiled(compiler: Compiler, body: bytes, previous: Snapshot | None = None) -> Compiled:
    """Return what compiling a document's bytes gives."""
    building = begun(compiler, body, previous)
    assert building.advance(10**9)
    return building.compiled()


def reused(after: Snapshot, before: Snapshot) -> list[str]:
    """Return the names of the toggles that two snapshots share."""
    return [name for name, toggle in after.toggles.items() if before.toggles.get(name) is toggle]


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("abc", "axc", [0, -1, 2]),
        ("abc", "ac", [0, 2]),
        ("abc", "axbc", [0, -1, 1, 2]),
        ("abc", "cab", [-1, 0, 1]),
        ("abcd", "dcba", [3, 2, 1, 0]),
        ("abc", "xyz", [-1, -1, -1]),
        ("abc", "aabb", [0, -1, 1, 1]),
        ("abcdef", "afcxyb", [0, -1, 2, -1, -1, 1]),
        ("", "ab", [-1, -1]),
        ("ab", "", []),
    ],
)
def test_where_the_pieces_of_a_document_were(old: str, new: str, places: list[int]) -> None:
    """Kept, changed in place, gone, added in between, moved, repeated; a moved piece may count as new, a new piece never as old."""
    before: list[object] = [msgspec.Raw(each.encode()) for each in old]
    after: list[object] = [msgspec.Raw(each.encode()) for each in new]
    matcher = Matcher(before, after)
    found = []
    for at in range(len(after)):
        place = matcher.find(at)
        if place == UNREAD:
            assert matcher.places is None and not list(matcher.read()), "only once"
            place = matcher.find(at)
        found.append(place)
    assert found == places
    assert NOT_THERE == -1


def test_many_changes_in_a_row_need_no_look_up() -> None:
    """An unchanged neighbour shows the places of changed pieces before it. The old pieces are read in steps."""
    old: list[object] = [msgspec.Raw(b"%d" % at) for at in range(250)]
    row = [*[msgspec.Raw(b"%d" % -at) for at in range(1, CHANGED_IN_A_ROW + 1)], *old[CHANGED_IN_A_ROW:]]
    matcher = Matcher(old, row)
    assert [matcher.find(at) for at in range(10)] == [NOT_THERE] * CHANGED_IN_A_ROW + [8, 9]
    assert matcher.places is None
    turned = Matcher(old, old[::-1])
    assert turned.find(0) == UNREAD and list(turned.read()) == [100, 100] and turned.find(0) == 249


def test_what_did_not_change_is_neither_decoded_nor_compiled() -> None:
    """Only the changed feature is decoded and compiled. Toggles and list entries of the others are the same objects."""
    compiler = Compiler(CompileOptions())
    first = compiled(compiler, text(feature("a", rollout("50")), feature("b"), feature("c", rollout("7")))).snapshot
    pool = first.lineage.pool
    assert pool.compiled == 3
    second = compiled(compiler, text(feature("a", rollout("50")), feature("b"), feature("c", rollout("8"))), first).snapshot
    assert (reused(second, first), pool.compiled) == (["a", "b"], 4)
    assert second.view(PLAIN).listed.entries[0] is first.view(PLAIN).listed.entries[0]
    assert second.view(PLAIN).complete.entries[0] is first.view(PLAIN).complete.entries[0]
    assert second.lineage.pool is pool


def test_a_list_takes_over_what_is_behind_something_new() -> None:
    """Added, removed and changed toggles cost no toggle around them but the glued neighbour."""
    compiler = Compiler(CompileOptions())
    flags = [feature(name, rollout("50", groupId=name)) for name in "abcde"]
    first = compiled(compiler, text(*flags)).snapshot
    changed = [flags[0], feature("new", rollout("1")), flags[1], flags[3], feature("static"), flags[4]]
    second = compiled(compiler, text(*changed), first).snapshot
    kept = [entry in first.view(PLAIN).listed.entries for entry in second.view(PLAIN).listed.entries]
    assert kept == [True, False, True, True, False]
    turned = compiled(compiler, text(*reversed(flags[:4])), first).snapshot
    assert list(turned.names) == ["d", "c", "b", "a"]
    assert turned.view(PLAIN).complete.entries[0].toggle is first.view(PLAIN).complete.entries[3].toggle


def test_a_long_document_in_another_order_is_read_in_steps() -> None:
    """Features and segments that moved are found, some at a time, and the snapshot is that of the new document."""
    compiler = Compiler(CompileOptions())
    flags = [feature(f"f{at}", rollout("50")) for at in range(150)]
    segments = [{"id": at, "constraints": [EU]} for at in range(150)]
    first = compiled(compiler, text(*flags, segments=segments)).snapshot
    pool = first.lineage.pool
    body = text(*flags[::-1], segments=segments[::-1])
    building = begun(compiler, body, first)
    while not building.advance(1):
        pass
    second = building.compiled().snapshot
    assert pool.compiled == 150 and second.lineage.segment_parts == first.lineage.segment_parts[::-1]
    assert second.revision == compiled(Compiler(CompileOptions()), body).snapshot.revision
    assert list(second.names) == list(first.names)[::-1]


def test_an_equal_document_stays_the_same_snapshot() -> None:
    """However it is spelled; from then on it is compared with the new spelling."""
    compiler = Compiler(CompileOptions())
    first = compiled(compiler, text(feature("a"))).snapshot
    spelled = json.dumps({"features": [feature("a")], "segments": None}, indent=2).encode()
    assert compiled(compiler, spelled, first).snapshot is first
    assert first.lineage.pool.compiled == 2
    assert compiled(compiler, spelled + b" ", first).snapshot is first
    assert first.lineage.pool.compiled == 2
    assert compiler.begin(json.loads(spelled), first).advance(10**9)
    assert first.lineage.raw


def test_problems_name_the_place_in_this_document() -> None:
    """A malformed feature that moves is not compiled again, and its problem has its new place."""
    compiler = Compiler(CompileOptions())
    bad: dict[str, Any] = {"name": "bad", "strategies": 5}
    segments = [{"id": 1}, {"id": None}]
    first = compiled(compiler, text(feature("a"), bad, segments=segments))
    second = compiled(compiler, text(bad, feature("a"), segments=segments[1:]), first.snapshot)
    assert [each.path for each in first.problems] == ["segments[1].id", "features[1].strategies"]
    assert [each.path for each in second.problems] == ["segments[0].id", "features[0].strategies"]
    assert first.snapshot.lineage.pool.compiled == 2


def test_a_changed_segment_compiles_the_features_that_name_it() -> None:
    """No other features are compiled. A segment that appears or disappears counts as changed."""
    compiler = Compiler(CompileOptions())
    flags = [feature("in", strategy("default", segments=[1])), feature("out", strategy("default", segments=[2]))]
    one, two = {"id": 1, "constraints": [EU]}, {"id": 2, "constraints": [EU]}
    first = compiled(compiler, text(*flags, segments=[one, two])).snapshot
    second = compiled(compiler, text(*flags, segments=[one | {"constraints": [US]}, two]), first).snapshot
    assert reused(second, first) == ["out"]
    assert list(toggles(second.enabled(region("us")))) == ["in"]
    assert list(toggles(first.enabled(region("us")))) == []
    third = compiled(compiler, text(*flags, segments=[two]), second).snapshot
    assert (reused(third, second), list(toggles(third.enabled(region("eu"))))) == (["out"], ["out"])


def test_a_predicate_gets_its_slot_when_a_second_strategy_asks() -> None:
    """The older snapshot, whose memory has no such slot, tests the predicate each time."""
    compiler = Compiler(CompileOptions())
    first = compiled(compiler, text(feature("a", strategy("default", EU)))).snapshot
    assert len(first.memory.predicates) == 0
    second = compiled(compiler, text(feature("a", strategy("default", EU)), feature("b", strategy("default", EU))), first)
    assert len(second.snapshot.memory.predicates) == 1
    assert reused(second.snapshot, first) == ["a"]
    for snapshot, names in ((first, ["a"]), (second.snapshot, ["a", "b"])):
        assert list(toggles(snapshot.enabled(region("eu")))) == names
        assert list(toggles(snapshot.enabled(region("us")))) == []


def test_dependencies_belong_to_one_snapshot() -> None:
    """A parent that changes, goes or gets a parent itself changes its children in the new snapshot, and not in the old."""
    compiler = Compiler(CompileOptions())
    child = feature("child", dependencies=[{"feature": "p"}])
    parents = [
        (feature("p", strategy("default", EU)), True),
        (feature("p", strategy("default", US)), False),
        (feature("p") | {"enabled": False}, False),
        (feature("p"), True),
        (feature("p", dependencies=[{"feature": "q"}]), False),
        (feature("q"), False),
    ]
    made: list[tuple[Snapshot, bool]] = []
    for parent, on in parents:
        made.append((compiled(compiler, text(child, parent), made[-1][0] if made else None).snapshot, on))
    assert [snapshot.decide(region("eu"), "child")[0] for snapshot, _ in made] == [on for _, on in made]
    assert made[0][0].lineage.pool.compiled == len(parents) + 1


def test_other_options_take_nothing_over() -> None:
    """Other options change the result of compiling, so nothing is reused. A decoded document has no bytes to compare."""
    flags = text(feature("a"), feature("b"))
    first = compiled(Compiler(CompileOptions()), flags).snapshot
    other = Compiler(CompileOptions(variant_feature_state=True))
    assert reused(compiled(other, flags, first).snapshot, first) == []
    assert reused(other(json.loads(text(feature("a"))), compiled(other, flags).snapshot).snapshot, first) == []
    decoded = other(json.loads(flags)).snapshot
    assert reused(compiled(other, text(feature("a")), decoded).snapshot, decoded) == []


def test_what_is_out_of_use_does_not_pile_up() -> None:
    """After many changes everything is compiled again once, and removed features leave nothing."""
    compiler = Compiler(CompileOptions())
    snapshot: Snapshot | None = None
    pools: list[object] = []
    for at in range(POOL_ALLOWANCE + 20):
        share = feature("a", strategy("default", constraint("IN", values=[str(at)])))
        snapshot = compiled(compiler, text(share), snapshot).snapshot
        if not any(snapshot.lineage.pool is pool for pool in pools):
            pools.append(snapshot.lineage.pool)
    assert len(pools) == 2
    assert snapshot is not None
    assert len(snapshot.lineage.pool.predicates) < 20


def test_filters_keep_what_they_want_as_it_came() -> None:
    """A feature that is left out does not count for the revision, and is counted."""
    compiler = Compiler(CompileOptions(name_prefix="a"))
    building = begun(compiler, text(feature("a1"), feature("b1"), feature("a2")))
    assert building.advance(10**9)
    assert [json.loads(bytes(each))["name"] for each in building.included] == ["a1", "a2"]  # type: ignore[call-overload]
    assert building.excluded_count == 1
    alone = compiled(compiler, text(feature("a1"), feature("a2"))).snapshot
    assert building.compiled().snapshot.revision == alone.revision


def test_work_is_done_some_at_a_time() -> None:
    """The budget bounds every slice, and the last one tells."""
    building = begun(Compiler(CompileOptions()), text(*[feature(f"f{at}") for at in range(50)]))
    slices = 1
    while not building.advance(100):
        slices += 1
    assert slices > 20
    assert building.advance(100)
    assert len(building.compiled().snapshot.names) == 50


def test_numbers_beyond_all_doubles_are_not_null_in_the_revision() -> None:
    """They compare differently, so two such documents have two revisions."""
    compiler = Compiler(CompileOptions())

    def revision(value: object) -> str:
        flag = feature("a", strategy("default", constraint("NUM_GT", value=value)), more=[None, {"x": [0.5]}])
        return compiler({"features": [flag]}).snapshot.revision

    assert len({revision(value) for value in (None, float("inf"), float("-inf"), 1.5)}) == 4
    assert revision(None) == revision(None)


def test_what_a_snapshot_consists_of_can_be_given_back() -> None:
    """Each container is named once. A part of a snapshot names none of the whole one, so emptying it leaves that as it is."""
    snapshot = compiled(
        Compiler(CompileOptions()), text(feature("a", rollout("100")), feature("b", strategy("default", EU)))
    ).snapshot
    before = snapshot.all(Context())
    whole = [container for container, count in snapshot.containers() if count > 0]
    part = [container for container, _ in restrict(snapshot, frozenset({"other"})).containers()]
    assert any(isinstance(each, Part) for each in snapshot.lineage.parts) and snapshot.lineage.parts in whole
    assert len({id(each) for each in [*whole, *part]}) == len(whole) + len(part)
    for each in part:
        assert isinstance(each, (list, dict))
        each.clear()
    assert snapshot.all(Context()) == before
