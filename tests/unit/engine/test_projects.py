"""A part of a snapshot: what it answers is what the toggles of its projects alone would answer."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flagsvc.engine.compile import CompileOptions, Compiler, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import PLAIN, AnswerShape
from flagsvc.engine.projects import restrict
from flagsvc.engine.snapshot import Snapshot
from support.evaluating import constraint, feature, region, rollout, snapshot, strategy, toggles
from support.same_inputs import examples
from support.tagged import FieldReadingStrategy, asks, custom, documents, neighbours

EU = constraint("IN", values=["eu"])
NAMES = ["flag-0", "flag-1", "flag-2", "nobody"]
PROJECTS = st.frozensets(st.sampled_from(["p", "q", "r"]), max_size=2)
PURE = {name: FieldReadingStrategy(name, True, each.reads, 0) for name, each in custom(0).items()}
"""Custom strategies that answer equally in every snapshot."""
CONTEXTS = [
    Context(entropy=7),
    Context(user_id="1", entropy=3, properties={"region": "eu"}),
    Context(session_id="2", entropy=5, remote_address="192.0.2.1", app_name="1", properties={"plan": "2"}),
    Context(user_id="2", now=2e12, entropy=9),
]


class OddShape(AnswerShape):
    """A shape that a snapshot has not made before somebody asks for it."""

    def __init__(self) -> None:
        super().__init__(b"odd", b"<", b">")


def owned(document: dict[str, Any], owners: list[str | None]) -> dict[str, Any]:
    """Return a document whose features belong to these projects. A child with a parent elsewhere has none."""
    features = []
    for made, owner in zip(document["features"], itertools.cycle(owners), strict=False):
        own = {} if owner is None else {"project": owner}
        elsewhere = made["dependencies"] and owners[0] not in (None, owner)
        features.append(made | own | ({"dependencies": []} if elsewhere else {}))
    return document | {"features": features}


def part_of(document: dict[str, Any], projects: frozenset[str]) -> dict[str, Any]:
    """Return a document without the features of other projects."""
    kept = [each for each in document["features"] if each.get("project") in (None, *projects)]
    return document | {"features": kept}


def compiled(document: dict[str, Any], **options: Any) -> Snapshot:
    """Return the snapshot of a document."""
    return compile_document(document, CompileOptions(custom_strategies=PURE, **options)).snapshot


def answers(made: Snapshot, context: Context, shape: AnswerShape = PLAIN) -> list[object]:
    """Return every form of the answer to a context."""
    decided = [made.decide(context, name) for name in NAMES]
    return [made.enabled(context, shape), made.all(context, shape), made.named(context, NAMES, shape), decided]


@given(
    documents(),
    st.lists(st.sampled_from([None, "p", "q", "r"]), min_size=3, max_size=3),
    PROJECTS,
    st.fixed_dictionaries({"fold": st.booleans(), "variant_feature_state": st.booleans()}),
)
@settings(max_examples=examples(150))
def test_a_part_is_a_smaller_document(
    document: dict[str, Any], owners: list[str | None], projects: frozenset[str], options: dict[str, bool]
) -> None:
    """For any document and projects: the same bytes in every form and shape, names, order, and unknown names included."""
    document = owned(document, owners)
    part = restrict(compiled(document, **options), projects)
    alone = compiled(part_of(document, projects), **options)
    assert list(part.names.items()) == list(alone.names.items())
    for context in CONTEXTS:
        assert answers(part, context) == answers(alone, context)
        assert answers(part, context, OddShape()) == answers(alone, context, OddShape())


@given(documents(), st.lists(st.sampled_from([None, "p", "q"]), min_size=3, max_size=3), st.data())
@settings(max_examples=examples(100))
def test_equal_keys_mean_equal_answers(document: dict[str, Any], owners: list[str | None], data: st.DataObject) -> None:
    """What a part's answer may be kept under tells all that decides it, also what parents in other projects read."""
    for made, owner in zip(document["features"], owners, strict=False):
        made |= {} if owner is None else {"project": owner}
    part = restrict(compiled(document), frozenset("p"))
    first = data.draw(asks())
    known: dict[bytes, bytes] = {}
    for ask in [first, *neighbours(first)]:
        context = context_of(dict(ask.context), ask.now)
        key = part.cache_keys.key(context, "a", [])
        if key is not None:
            assert known.setdefault(key, part.all(context)) == part.all(context)


def context_of(fields: dict[str, str], now: float) -> Context:
    """Return the context of a request."""
    own = {"userId": "user_id", "sessionId": "session_id", "appName": "app_name", "environment": "environment"}
    given: dict[str, Any] = {own[name]: text for name, text in fields.items() if name in own}
    properties = {name.removeprefix("p:"): text for name, text in fields.items() if name.startswith("p:")}
    return Context(**given, remote_address=fields.get("remoteAddress", "192.0.2.1"), properties=properties, now=now * 1000)


@given(st.lists(PROJECTS, min_size=2, max_size=4, unique=True))
def test_revisions(sets: list[frozenset[str]]) -> None:
    """A part always has the same revision. The whole and every other part have other revisions."""
    whole = snapshot(feature("a", project="p"), feature("b", project="q"))
    found = [restrict(whole, projects).revision for projects in sets]
    assert len({whole.revision, *found}) == len(sets) + 1
    assert [restrict(whole, projects).revision for projects in sets] == found
    other = snapshot(feature("a", project="p"), feature("c", project="q"))
    assert not {restrict(other, projects).revision for projects in sets} & set(found)


def test_names_of_projects_are_not_run_together() -> None:
    """Projects whose joined names look alike are different parts."""
    whole = snapshot(feature("a", project="p"))
    sets = [frozenset(each) for each in (["ab", "c"], ["a", "bc"], ["abc"], ["a", "b", "c"], [])]
    assert len({restrict(whole, projects).revision for projects in sets}) == len(sets)


def test_a_toggle_without_a_project_belongs_to_all() -> None:
    """An empty name and one that is no text count as none, as in the document for server-side SDKs."""
    whole = snapshot(feature("none"), feature("empty", project=""), feature("p", project="p"), feature("q", project="q"))
    repeated = snapshot(feature("a", project="p"), feature("a", strategy("default", EU), project="q"))
    assert list(restrict(repeated, frozenset("p")).names) == []
    assert list(restrict(repeated, frozenset("q")).names) == ["a"]
    left = snapshot({"name": "bad", "project": "p", "strategies": 7}, feature("x", project="p"), name_prefix="y")
    assert list(restrict(left, frozenset("p")).names) == []
    assert list(restrict(whole, frozenset("p")).names) == ["none", "empty", "p"]
    assert list(restrict(whole, frozenset()).names) == ["none", "empty"]
    assert list(restrict(whole, frozenset("pq")).names) == list(whole.names)


def test_a_parent_in_another_project() -> None:
    """It decides as in the whole snapshot, but is not shown; what it reads counts for what an answer may be kept under."""
    child = feature("child", project="p", dependencies=[{"feature": "parent"}])
    whole = snapshot(feature("parent", strategy("default", EU), project="q"), child)
    part = restrict(whole, frozenset("p"))
    assert list(toggles(part.enabled(region("eu")))) == ["child"]
    assert list(toggles(part.enabled(region("us")))) == []
    assert part.cache_keys.key(region("eu"), "e", []) != part.cache_keys.key(region("us"), "e", [])
    assert restrict(whole, frozenset("r")).cache_keys.names == []
    orphan = feature("orphan", strategy("default", EU), project="p", dependencies=[{"feature": "nobody"}])
    assert restrict(snapshot(orphan), frozenset("p")).cache_keys.names == [], "it is always off"


def test_a_volatile_toggle_of_another_project() -> None:
    """It keeps no answer of this project from being kept."""
    chance = feature("chance", rollout("50", stickiness="random"), project="q")
    whole = snapshot(chance, feature("p", strategy("default", EU), project="p"))
    assert whole.cache_keys.volatile and not restrict(whole, frozenset("p")).cache_keys.volatile
    assert restrict(whole, frozenset("q")).cache_keys.volatile


def test_a_part_of_a_snapshot_whose_parts_were_reused() -> None:
    """A feature that moves to another project is in the part of that one in the next snapshot."""
    compiler = Compiler(CompileOptions())
    first = compiler({"features": [feature("a", project="p"), feature("b", project="q")]}).snapshot
    second = compiler({"features": [feature("a", project="q"), feature("b", project="q")]}, first).snapshot
    assert list(restrict(first, frozenset("q")).names) == ["b"]
    assert list(restrict(second, frozenset("q")).names) == ["a", "b"]


def test_nothing_is_compiled_for_a_part() -> None:
    """A part shares the toggles of the whole, and its list entries where nothing else is between them."""
    whole = snapshot(feature("a", strategy("default", EU), project="p"), feature("b", project="q"))
    part = restrict(whole, frozenset("p"))
    assert part.toggles["a"] is whole.toggles["a"] and part.memory is whole.memory
    whole.view(OddShape())
    assert restrict(whole, frozenset("p")).views.keys() == whole.views.keys()
