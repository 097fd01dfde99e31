"""The three forms of an answer, dependencies, folding, and the metadata of a snapshot."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.features import ON, Toggle, ToggleOutcome
from flagsvc.engine.fragments import PLAIN
from flagsvc.engine.lists import MAX_JOINED_BYTES, ListBuilder
from support.evaluating import constraint, feature, region, rollout, snapshot, strategy

EU = constraint("IN", values=["eu"])
OFF = {"name": "off", "enabled": False, "strategies": []}


def names(body: bytes) -> list[str]:
    """Return the names in an answer, in order."""
    return [toggle["name"] for toggle in json.loads(body)["toggles"]]


def test_gluing_costs_in_proportion_to_the_toggles() -> None:
    """A run of static toggles is put together once, in the end; until then nothing is copied."""
    piece = b"x" * 4096
    made = {str(at): Toggle(str(at), [ToggleOutcome(False, None, b""), ToggleOutcome(True, None, piece)]) for at in range(100)}
    list_builder = ListBuilder(PLAIN, False, [], made)
    for toggle in made.values():
        toggle.constant = ON
        list_builder.add(toggle)
        assert list_builder.static[-1] is piece
    assert (list_builder.entries, len(list_builder.static)) == ([], 100)
    list_builder.finish()
    assert [(entry.off, entry.on) for entry in list_builder.entries] == [(b"", piece * 100)]


@given(pattern=st.lists(st.sampled_from(["on", "off", "eu", "us"]), max_size=12))
def test_gluing_static_toggles_changes_nothing(pattern: list[str]) -> None:
    """For any mix of static and dynamic toggles, the answers are those without folding."""
    kinds: dict[str, Any] = {
        "on": {"strategies": []},
        "off": {"enabled": False, "strategies": []},
        "eu": {"strategies": [strategy("default", EU)]},
        "us": {"strategies": [strategy("default", constraint("IN", values=["us"]))]},
    }
    flags = [{"name": f"f{at}", "enabled": True, **kinds[kind]} for at, kind in enumerate(pattern)]
    folded, plain = snapshot(*flags), snapshot(*flags, fold=False)
    for context in (region("eu"), region("us"), region(None)):
        assert folded.enabled(context) == plain.enabled(context)
        assert folded.all(context) == plain.all(context)
        on = [f"f{at}" for at, kind in enumerate(pattern) if kind == "on" or kind == context.get("region")]
        assert names(folded.enabled(context)) == on


def test_a_long_run_of_static_toggles_is_not_copied_into_every_outcome() -> None:
    """Beyond a bound the run is a piece of its own, and the answer is the same."""
    static = [feature(f"static-{at:05d}") for at in range(900)]
    made = snapshot(*static, feature("dynamic", rollout("50", stickiness="userId")))
    assert len(static) * 80 > MAX_JOINED_BYTES
    assert len(made.view(PLAIN).listed.entries) == 2
    assert len(names(made.all(Context()))) == 901


def test_a_name_asked_twice_is_decided_once() -> None:
    """A random toggle does not contradict itself within one answer."""
    made = snapshot(feature("r", rollout("50", stickiness="random")))
    for seed in range(50):
        assert len(set(made.named(Context(entropy=seed), ["r"] * 4)[1])) == 1


def test_a_look_up_cannot_ask_for_a_huge_answer() -> None:
    """A long toggle that is named many times over gives no answer beyond the bound, and every answer within it."""
    big = [{"name": "v", "weight": 1, "payload": {"type": "string", "value": "x" * 100_000}}]
    made = snapshot(feature("a", variants=big))
    body, states = made.named(Context(), ["a"] * 150)
    assert (len(names(body)), len(states)) == (150, 150)
    assert made.named(Context(), ["a"] * 200) == (b"", [True] * 200)


def test_any_text_can_be_a_name() -> None:
    """Quotes, control characters, other scripts and lone surrogates come out as valid JSON."""
    odd = ['"', "\\", "\n\0", "</script>", "Ωé😀", "\ud800", "__proto__"]
    made = snapshot(*[feature(name) for name in odd])
    assert names(made.enabled(Context())) == odd
    assert names(made.named(Context(), [*odd, "\udfff"])[0]) == [*odd, "\udfff"]
    assert len(made.revision) == 32


def depends(*parents: object) -> dict[str, Any]:
    """Return the dependencies of a feature."""
    return {"dependencies": list(parents)}


def test_what_a_toggle_without_its_parent_would_read_does_not_count() -> None:
    """A missing parent turns it off, so that its random share makes no answer volatile. A feature that is its own parent is off."""
    child = feature("child", rollout("50", stickiness="random"), dependencies=[{"feature": "parent"}])
    assert not snapshot(child).cache_keys.volatile
    assert snapshot(child, feature("parent")).cache_keys.volatile
    assert not snapshot(feature("a", **depends({"feature": "a"}))).decide(Context(), "a")[0]


def test_a_random_parent_is_decided_once_for_all_its_children() -> None:
    """Within one answer parent and children never contradict each other."""
    flags = [feature("p", rollout("50", stickiness="random"))]
    flags += [feature(f"c{at}", **depends({"feature": "p"})) for at in range(3)]
    flags += [feature("not", **depends({"feature": "p", "enabled": False}))]
    made = snapshot(*flags)
    for seed in range(40):
        on = set(names(made.enabled(Context(entropy=seed))))
        assert on in ({"p", "c0", "c1", "c2"}, {"not"})


def test_folding_leaves_nothing_to_evaluate_where_the_configuration_decides() -> None:
    """Strategies that admit no context are removed, and all strategies behind a strategy that admits everyone."""
    never = strategy("default", constraint("UNKNOWN"))
    always = strategy("default", constraint("NUM_GT", value="x", inverted=True))
    made = snapshot(
        feature("cut", strategy("unknown"), never, strategy("default", EU), always, rollout("50")),
        feature("static", always, strategy("default", EU)),
        feature("nobody", strategy("unknown"), never),
    )
    assert [type(rule).__name__ for rule in made.toggles["cut"].strategies] == ["Everyone", "Everyone"]
    assert [made.toggles[name].constant for name in ("cut", "static", "nobody")] == [-1, 1, 0]


def test_a_static_toggle_with_a_certain_variant_is_a_constant() -> None:
    """One weighted variant without overrides is the same for everyone, the strategy's as well as the feature's."""
    one = [{"name": "v", "weight": 5}, {"name": "w", "weight": 0}]
    drawn = [{"name": "v", "weight": 5}, {"name": "w", "weight": 5}]
    made = snapshot(
        feature("own", variants=one),
        feature("of-strategy", strategy("default") | {"variants": one}),
        feature("drawn", variants=drawn),
        feature("drawn-by-strategy", strategy("default") | {"variants": drawn}),
    )
    assert [made.toggles[name].constant >= 0 for name in made.toggles] == [True, True, False, False]
    assert [made.decide(Context(user_id="7"), name)[1] for name in ("own", "of-strategy")] == ["v", "v"]


SEGMENTS: list[object] = [
    {"id": 1, "constraints": [EU]},
    {"id": 2, "constraints": []},
    {"id": 3},
    {"id": "1", "constraints": [constraint("IN", values=["us"])]},
    {"id": 4, "constraints": [constraint("UNKNOWN")]},
    {"id": 5, "constraints": [EU, constraint("NUM_GT", value="x", inverted=True)]},
]


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize(
    ("asked", "eu", "us"),
    [([1], True, False), ([2], True, True), ([3], True, True), (["1"], False, True), ([1, 2], True, False),
     ([9], False, False), ([4], False, False), ([1, 9], False, False), ([5], True, False), ([1.0], True, False)],
)  # fmt: skip
def test_segments(asked: list[object], eu: bool, us: bool, fold: bool) -> None:
    """All constraints of all segments must hold; a missing segment makes the strategy false; 1 and "1" are two."""
    made = snapshot(feature("f", strategy("default", segments=asked)), segments=SEGMENTS, fold=fold)
    assert (made.decide(region("eu"), "f")[0], made.decide(region("us"), "f")[0]) == (eu, us)


def test_a_segment_is_evaluated_once_however_many_strategies_name_it() -> None:
    """Strategies share the segment's predicate, and its place in the run's memory."""
    made = snapshot(*[feature(f"f{at}", strategy("default", segments=[1])) for at in range(4)], segments=SEGMENTS)
    shared = {id(made.toggles[f"f{at}"].strategies[0].conditions[0]) for at in range(4)}
    assert len(shared) == 1
    assert len(made.memory.predicates) == 1
    assert len(names(made.enabled(region("eu")))) == 4


def test_names_and_variants_of_a_snapshot() -> None:
    """`names` knows each toggle and its variants, the fallback included, also of a toggle that was just switched off."""
    made = snapshot(
        feature("a", strategy("default") | {"variants": [{"name": "s", "weight": 1}]}, variants=[{"name": "v", "weight": 1}]),
        OFF,
        feature("b", variants=[{"name": "v", "weight": 1}]) | {"enabled": False},
    )
    assert made.names == {"a": {"v", "s", "disabled"}, "off": {"disabled"}, "b": {"v", "disabled"}}
    assert made.decide(Context(), "nobody") == (False, "disabled")


def test_the_revision_is_a_digest() -> None:
    """Equal documents and options have one revision, with any order of keys. Any change that can change an answer changes it."""
    document = {"features": [{"name": "a", "enabled": True, "strategies": []}]}
    turned = {"features": [{"strategies": [], "enabled": True, "name": "a"}]}
    first = compile_document(document, CompileOptions()).snapshot
    assert compile_document(turned, CompileOptions()).snapshot.revision == first.revision
    assert compile_document(turned, CompileOptions(), first).snapshot is first
    others = [
        compile_document({"features": []}, CompileOptions(), first),
        compile_document(document, CompileOptions(hash_encoding="utf8"), first),
        compile_document(document, CompileOptions(variant_feature_state=True), first),
        compile_document(document, CompileOptions(code_digest="x"), first),
        compile_document(document, CompileOptions(name_prefix="a"), first),
    ]
    assert len({first.revision, *[other.snapshot.revision for other in others]}) == 6


def test_the_revision_depends_on_the_host_only_where_an_answer_does() -> None:
    """Replicas have names of their own and must agree; a strategy that asks for the host is why they may not."""
    hosts = [{"hostname": "replica-1"}, {"hostname": "replica-2"}]
    by_host = feature("f", strategy("default"), strategy("applicationHostname", parameters={"hostNames": "replica-2"}))
    assert len({snapshot(feature("f"), **host).revision for host in hosts}) == 1  # type: ignore[arg-type]
    assert len({snapshot(by_host, **host).revision for host in hosts}) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, ["a.x", "b.y", "a.z"]),
        ({"name_prefix": "a."}, ["a.x", "a.z"]),
        ({"project": "one"}, ["a.x", "a.z"]),
        ({"project": "two"}, ["b.y", "a.z"]),
        ({"project": "two", "name_prefix": "a."}, ["a.z"]),
    ],
)
def test_project_and_prefix_are_applied_locally(options: dict[str, str], left: list[str]) -> None:
    """They hold for documents from any source; a feature that names no project is not lost."""
    flags = [feature("a.x", project="one"), feature("b.y", project="two"), feature("a.z")]
    assert names(snapshot(*flags, **options).all(Context())) == left  # type: ignore[arg-type]


def test_whatever_a_node_raises_harms_only_that_toggle() -> None:
    """Evaluation cannot raise: a custom strategy whose answer has no truth value is off, the rest is served."""

    class Truthless:
        def __bool__(self) -> bool:
            raise RuntimeError("no truth")

    odd = SimpleNamespace(name="odd", is_enabled=lambda parameters, context: Truthless())
    made = snapshot(feature("f", strategy("odd")), feature("g"), custom_strategies={"odd": odd})
    assert names(made.enabled(Context())) == ["g"]
    assert [(each.kind, each.name) for each in made.take_faults()] == [("strategy", "odd")]


def test_an_unforeseen_failure_in_a_toggle_is_off_and_noted() -> None:
    """Should a node itself fail, its toggle is off, noted under the toggle's name, and the others are served."""
    failing = rollout("50", stickiness="region")
    made = snapshot(feature("f", failing), feature("g"), feature("h", failing, failing))
    broken = Context(properties={"region": 5})  # type: ignore[dict-item]
    assert names(made.enabled(broken)) == ["g"]
    assert [(each.kind, each.name) for each in made.take_faults()] == [("toggle", "f"), ("toggle", "h")]
