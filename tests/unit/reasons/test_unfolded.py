"""An unfolded document has the features of the snapshot, and nothing of it is in the snapshot."""

from __future__ import annotations

from flagsvc.engine.context import Context
from flagsvc.reasons.whole import explain_whole
from support.evaluating import constraint, feature, rollout, strategy
from support.whole import check_whole, unfolded


def test_the_features_are_those_of_the_snapshot() -> None:
    """Filters, malformed features and equal names count as for the compiler."""
    made = unfolded(
        {**feature("a.one", strategy()), "project": "shop"},
        {**feature("a.one", strategy("userWithId")), "project": "shop"},
        {**feature("a.one"), "name": ""},
        {**feature("a.two"), "project": "other"},
        feature("b.three"),
        {"name": "a.four", "strategies": [7, {"name": "default"}], "enabled": 1},
        "no feature",
        project="shop",
        name_prefix="a.",
    )
    assert made.names == ["a.one", "a.four"]
    odd = made.feature("a.four")
    assert odd is not None and [each.spec.name for each in odd.strategies] == ["", "default"]
    found = made.feature("a.one")
    assert found is not None and [each.spec.name for each in found.strategies] == ["userWithId"]
    assert made.feature("a.one") is found
    assert made.feature("a.two") is None and made.feature("b.three") is None
    assert [problem.served for problem in made.compiled.problems] == [True, False]


def test_segments_are_those_of_the_snapshot() -> None:
    """A segment without an id is missing, and of equal ids the last one counts."""
    eu, us = ({"id": 1, "constraints": [constraint("IN", values=[value])]} for value in ("eu", "us"))
    made = unfolded(feature("f", strategy(segments=[1, 2])), segments=[eu, us, {"id": [2]}])
    check_whole(made, Context(properties={"region": "us"}))
    assert list(made.segments) == ["1"]
    [found] = explain_whole(made, Context(properties={"region": "us"}))
    assert found.strategies()[0].failing == ("segments[1]",)


def test_ids_and_titles_are_texts() -> None:
    """Other values, which no flag server sends, are left out."""
    made = unfolded(feature("f", strategy(id=7, title=["x"], disabled="yes"), strategy(id="7", title="x", disabled=True)))
    found = made.feature("f")
    assert found is not None
    assert [(each.identity, each.title, each.disabled) for each in found.strategies] == [(None, None, False), ("7", "x", True)]


def test_the_snapshot_is_folded_as_asked() -> None:
    """The nodes for explanations are not the nodes for answers."""
    flag = feature("f", strategy("unknown"), rollout("50", stickiness="userId"))
    folded = unfolded(flag)
    assert len(folded.compiled.snapshot.toggles["f"].strategies) == 1
    assert len(unfolded(flag, fold=False).compiled.snapshot.toggles["f"].strategies) == 2
    found = folded.feature("f")
    assert found is not None and len(found.strategies) == 2


def test_a_flag_that_is_left_out_has_no_nodes() -> None:
    """Its variants would repeat its long name too often."""
    variants = [{"name": str(number), "weight": 1} for number in range(100)]
    made = unfolded(feature("n" * 50_000, strategy()) | {"variants": variants})
    assert made.feature("n" * 50_000) is None and not made.compiled.snapshot.names
