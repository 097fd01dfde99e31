"""A malformed feature affects only itself, and its problem has its place. A document of the wrong shape is refused."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.core.errors import DocumentError
from flagsvc.engine.compile import Compiled, CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.parse import parse_strategy
from flagsvc.engine.reading import Oddities, read_key
from flagsvc.engine.source import split
from support.evaluating import constraint, feature, strategy, toggles


def compiled(*features: object, segments: object = None) -> Compiled:
    """Compile a document of these features."""
    return compile_document({"features": list(features), "segments": segments}, CompileOptions())


def flag(**more: Any) -> dict[str, Any]:
    """Return a feature named `bad`."""
    return feature("bad") | more


def of_strategy(**more: Any) -> dict[str, Any]:
    """Return a feature with one strategy."""
    return flag(strategies=[strategy() | more])


def of_constraint(**more: Any) -> dict[str, Any]:
    """Return a feature with one constraint."""
    return of_strategy(constraints=[constraint("IN") | more])


def of_variant(**more: Any) -> dict[str, Any]:
    """Return a feature with one variant."""
    return flag(variants=[{"name": "v", "weight": 1} | more])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "must be an object, is missing"),
        ([], "must be an object, is a list"),
        ("text", "must be an object, is a text"),
        ({}, "features: must be a list, is missing"),
        ({"features": {}}, "features: must be a list, is an object"),
        ({"features": [], "segments": {}}, "segments: must be a list, is an object"),
        (
            {"features": [], "featureStrategies": []},
            "it is a data set, as `flagsvc export` writes it, and no client-features document",
        ),
    ],
)
def test_a_document_of_the_wrong_shape_is_refused(document: object, message: str) -> None:
    """The error has the expected and the actual kind."""
    with pytest.raises(DocumentError) as caught:
        compile_document(document, CompileOptions())
    assert str(caught.value) == message


def test_a_text_is_no_document_of_pieces_if_it_is_a_data_set() -> None:
    """It is decoded as a whole then, and refused."""
    assert split(b'{"features":[],"featureStrategies":[]}') is None
    assert split(b'{"features":[]}') is not None


@pytest.mark.parametrize(
    ("bad", "path", "message"),
    [
        (5, "features[1]", "must be an object, is a number"),
        (None, "features[1]", "must be an object, is missing"),
        ({"enabled": True}, "features[1].name", "must be a text, is missing"),
        ({"name": ""}, "features[1].name", "must be a text, is a text"),
    ],
)  # fmt: skip
def test_a_malformed_feature_is_left_out(bad: object, path: str, message: str) -> None:
    """It has no name; its place is named, and the features around it are served."""
    made = compiled(feature("before"), bad, feature("after"))
    assert [(problem.path, problem.message, problem.served) for problem in made.problems] == [(path, message, False)]
    assert made.problems[0].toggle == ("" if isinstance(bad, dict) and "name" in bad else None)
    assert made.problems[0].toggle == "" or str(made.problems[0]) == f"{path}: {message}"
    assert list(made.snapshot.toggles) == ["before", "after"]


@pytest.mark.parametrize(
    ("bad", "path", "message"),
    [
        (flag(enabled="yes"), "features[1].enabled", "must be true or false, is a text"),
        (flag(impressionData=1), "features[1].impressionData", "must be true or false, is a number"),
        (flag(strategies={}), "features[1].strategies", "must be a list, is an object"),
        (flag(strategies=[5]), "features[1].strategies[0]", "must be an object, is a number"),
        (flag(variants="x"), "features[1].variants", "must be a list, is a text"),
        (flag(variants=[None]), "features[1].variants[0]", "must be an object, is missing"),
        (flag(dependencies="parent"), "features[1].dependencies", "must be a list, is a text"),
        (flag(dependencies=5), "features[1].dependencies", "must be a list, is a number"),
        (flag(dependencies=[5]), "features[1].dependencies[0]", "must be an object, is a number"),
        (flag(dependencies=[{"feature": "p", "variants": [{}]}]), "features[1].dependencies[0].variants[0]",
         "must be a text, a number, true or false, is an object"),
        (of_strategy(name={}), "features[1].strategies[0].name", "must be a text, is an object"),
        (of_strategy(parameters=[]), "features[1].strategies[0].parameters", "must be an object, is a list"),
        (of_strategy(parameters={"a": []}), "features[1].strategies[0].parameters.a",
         "must be a text, a number, true or false, is a list"),
        (of_strategy(constraints={}), "features[1].strategies[0].constraints", "must be a list, is an object"),
        (of_strategy(constraints=[1]), "features[1].strategies[0].constraints[0]", "must be an object, is a number"),
        (of_strategy(segments="1"), "features[1].strategies[0].segments", "must be a list, is a text"),
        (of_strategy(segments=[None]), "features[1].strategies[0].segments[0]", "must be a number or a text, is missing"),
        (of_strategy(segments=[True]), "features[1].strategies[0].segments[0]", "must be a number or a text, is true or false"),
        (of_constraint(values="eu"), "features[1].strategies[0].constraints[0].values", "must be a list, is a text"),
        (of_constraint(values=[{"a": 1}]), "features[1].strategies[0].constraints[0].values[0]",
         "must be a text, a number, true or false, is an object"),
        (of_constraint(value=[]), "features[1].strategies[0].constraints[0].value",
         "must be a text, a number, true or false, is a list"),
        (of_constraint(operator=[]), "features[1].strategies[0].constraints[0].operator", "must be a text, is a list"),
        (of_variant(name=None), "features[1].variants[0].name", "must be a text, is missing"),
        (of_variant(weight=None), "features[1].variants[0].weight", "must be a whole number, is missing"),
        (of_variant(weight="5"), "features[1].variants[0].weight", "must be a whole number, is a text"),
        (of_variant(weight=True), "features[1].variants[0].weight", "must be a whole number, is true or false"),
        (of_variant(weight=0.5), "features[1].variants[0].weight", "must be a whole number, is a number"),
        (of_variant(weight=float("inf")), "features[1].variants[0].weight", "must be a whole number, is a number"),
        (of_variant(weight=float("nan")), "features[1].variants[0].weight", "must be a whole number, is a number"),
        (of_variant(weight=10**12), "features[1].variants[0].weight", "must be a whole number, is a number"),
        (of_variant(payload="x"), "features[1].variants[0].payload", "must be an object, is a text"),
        (of_variant(overrides=[5]), "features[1].variants[0].overrides[0]", "must be an object, is a number"),
        (of_variant(overrides=[{"values": 5}]), "features[1].variants[0].overrides[0].values", "must be a list, is a number"),
    ],
)  # fmt: skip
def test_an_odd_feature_is_served(bad: object, path: str, message: str) -> None:
    """It is served, and a problem has the path of its odd value."""
    made = compiled(feature("before"), bad, feature("after"))
    assert [(problem.path, problem.message, problem.served) for problem in made.problems] == [(path, message, True)]
    assert made.problems[0].toggle == "bad"
    assert list(made.snapshot.toggles) == ["before", "bad", "after"]


def test_a_number_as_a_name_is_a_text() -> None:
    """The feature is found by the text of the number."""
    made = compiled({"name": 5, "enabled": True, "strategies": []})
    assert toggles(made.snapshot.all(Context()))["5"]["enabled"] is True
    assert [str(problem) for problem in made.problems] == ["features[0].name of toggle `5`: must be a text, is a number"]


def test_parameters_of_a_custom_strategy_are_texts() -> None:
    """Null is absent, and a list or an object is its JSON; what the built-in strategies read is as they read it."""
    given = {"a": None, "b": [1], "c": {"d": True}, "e": 0, "rollout": True, "percentage": None, "userIds": [1, "2"], "IPs": 0}
    parsed = parse_strategy({"name": "mine", "parameters": given}, "strategy")
    expected = {"b": "[1]", "c": '{"d":true}', "e": "0", "rollout": "1", "userIds": "1,2"}
    assert parsed.parameters == expected


def test_only_the_first_odd_value_of_a_feature_is_named() -> None:
    """A feature with many odd values is one problem, so that the list is as long as the document."""
    made = compiled(flag(enabled=1, variants=[{"name": "v", "weight": "1"}, {"name": 7}]))
    assert [problem.path for problem in made.problems] == ["features[0].enabled"]


@pytest.mark.parametrize(
    ("segment", "path"),
    [(5, "segments[0]"), ({"id": None}, "segments[0].id"), ({"id": 1, "constraints": 5}, "segments[0].constraints")],
)
def test_a_malformed_segment_is_as_good_as_missing(segment: object, path: str) -> None:
    """Strategies that name it are false; others still count."""
    made = compiled(feature("a", strategy(segments=[1])), feature("b"), segments=[segment])
    assert [problem.path for problem in made.problems] == [path]
    assert list(toggles(made.snapshot.enabled(Context()))) == ["b"]


@pytest.mark.parametrize("strategies", [None, "absent"])
def test_a_feature_without_a_list_of_strategies_is_off(strategies: object) -> None:
    """null or nothing at all is off, as the reference has it; an empty list is on when enabled."""
    bare = feature("a")
    if strategies is None:
        bare["strategies"] = None
    else:
        del bare["strategies"]
    made = compiled(bare, feature("b"))
    assert made.problems == []
    assert list(toggles(made.snapshot.enabled(Context()))) == ["b"]
    assert list(toggles(made.snapshot.all(Context()))) == ["a", "b"]


def test_null_counts_as_absent() -> None:
    """Every optional part may be null."""
    nulls = dict.fromkeys(["impressionData", "variants", "dependencies", "description"])
    parts = dict.fromkeys(["parameters", "constraints", "segments", "variants"])
    made = compiled(feature("a", {"name": "default", **parts}) | nulls)
    assert made.problems == []
    assert list(toggles(made.snapshot.enabled(Context()))) == ["a"]


def test_a_weight_may_be_written_as_a_fraction() -> None:
    """`5.0` is a whole number, as JSON has no other."""
    made = compiled(feature("a", variants=[{"name": "v", "weight": 5.0}, {"name": "w", "weight": 0}]))
    assert made.problems == []
    assert made.snapshot.decide(Context(), "a") == (True, "v")


def test_a_document_nested_too_deeply_is_refused() -> None:
    """This also holds if the depth is in a part that nothing else reads."""
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(DocumentError, match="nested too deeply"):
        compile_document({"features": [{"name": "a", "more": nested}]}, CompileOptions())


def test_a_huge_number_is_infinite() -> None:
    """An integer that no double can hold reads as JavaScript reads it."""
    huge = compiled(feature("a", strategy("default", constraint("NUM_GT", value=10**400, inverted=True))))
    small = compiled(feature("a", strategy("default", constraint("NUM_GT", value=-(10**400)))))
    for made in (huge, small):
        assert list(toggles(made.snapshot.enabled(Context(properties={"region": "5"})))) == ["a"]


@pytest.mark.parametrize(
    ("constraints", "expected"), [(None, True), ([], True), ("", True), (0, False), (False, False), ({}, False), (5, False)]
)
def test_constraints_of_a_segment_that_are_no_list(constraints: object, expected: bool) -> None:
    """As in the reference, null and an empty text are none. On other values the reference fails, and they never hold."""
    segments: list[object] = [{"id": 1, "constraints": constraints}]
    made = compiled(feature("f", strategy("default", segments=[1])), segments=segments).snapshot
    assert made.decide(Context(), "f")[0] is expected


@pytest.mark.parametrize(
    ("owner", "name", "is_odd"),
    [({"key": "a"}, "a", False), ({}, "undefined", False), ({"key": ["a"]}, "a", True), ({"key": {}}, "[object Object]", True)],
)
def test_a_name_is_a_key_of_javascript(owner: dict[str, object], name: str, is_odd: bool) -> None:
    """Any value becomes a text; a list or an object is odd, and its place is noted."""
    odd = Oddities()
    assert read_key(owner, "key", "part", odd) == name
    assert (odd.first is not None and odd.first.path == "part.key") is is_odd
