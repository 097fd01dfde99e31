"""Rules of an import alone, with given facts about a server, as far as no recorded validation has them (import validation 4; 6)."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.http.shapes import check
from flagsvc.server.shapes.batch import IMPORT
from flagsvc.server.store.batch import rules
from flagsvc.server.store.batch.dataset import DataSet, clean_data_set, find_repeated, read_data_set
from flagsvc.server.store.batch.facts import CheckedDataSet, Facts, KnownFeature, TargetProject
from flagsvc.server.store.batch.rules import RULES, find_problems, list_findings
from support.batch_scene import body, depends, feature, linked, place, strategy, tag, variant

KNOWN: dict[str, Any] = {
    "features": {},
    "project": TargetProject("default"),
    "strategy_types": {"default": False, "flexibleRollout": False, "mine": True, "yours": True},
    "tag_types": frozenset({"simple"}),
}


def known(**more: Any) -> Facts:
    """Return facts about a server."""
    return Facts(**KNOWN | more)


def data(**lists: Any) -> DataSet:
    """Return a data set."""
    return read_data_set(body(**lists))


def found(name: str, wanted: DataSet, facts: Facts) -> list[Any]:
    """Return the findings of a rule."""
    [rule] = [each for each in RULES if each.name == name]
    return list(rule.find(CheckedDataSet(wanted, facts)))


def test_repeated_features_come_once() -> None:
    """A repeated name is listed once, in the order of the second occurrences."""
    assert found("repeated features", data(features=[feature(name) for name in "abcbbaa"]), known()) == ["b", "a"]
    assert find_repeated([]) == []


def test_misnamed_features_are_sorted_by_utf16() -> None:
    """Names that do not match are listed once each, sorted by UTF-16 code units: U+1F600 comes before U+FB01."""
    names = ["ok", "ﬁ", "😀", "Z", "é", "Z"]
    facts = known(project=TargetProject("default", pattern="[a-z]+"))
    assert found("naming pattern", data(features=[feature(name) for name in names]), facts) == ["Z", "é", "😀", "ﬁ"]


@pytest.mark.parametrize("example", ["e", ""])
def test_the_naming_message_shows_what_is_set(example: str) -> None:
    """The message has the example and the description if they are set."""
    project = TargetProject("p", pattern="x", example=example, description="d" if example else "")
    [error] = list_findings(CheckedDataSet(data(features=[feature("a")]), known(project=project)))["errors"]
    more = ' For example: "e". The pattern is described as follows: "d"' if example else ""
    assert f' pattern: "x".{more} The following' in error["message"] and error["affectedItems"] == ["a"]


def test_cleaning_takes_out_what_is_not_imported() -> None:
    """Cleaning removes archived features with their entries, entries without a feature, and unused tag types.
    Links and dependencies stay."""
    everything = data(
        features=[feature("a"), feature("gone")],
        featureStrategies=[strategy("a"), strategy("gone"), {"name": "default"}, {"name": "default", "featureName": ""}],
        featureEnvironments=[place("a"), place("gone"), {"name": "a", "enabled": True}],
        featureTags=[
            {"featureName": "a", "tagType": "used", "tagValue": "xx"},
            {"featureName": "gone", "tagType": "unused", "tagValue": "xx"},
            {"featureName": "a", "tagValue": "xx"},
        ],
        tagTypes=[{"name": "used"}, {"name": "unused"}],
        links=[{"feature": "gone", "links": []}],
        dependencies=[depends("gone", "a")],
    )
    clean = clean_data_set(everything, {"gone"})
    assert clean.names == ["a"]
    assert [each["featureName"] for each in clean.strategies] == ["a"]
    assert [each["featureName"] for each in clean.environments] == ["a"]
    assert [each.get("tagType") for each in clean.tags] == ["used", None]
    assert clean.tag_types == [{"name": "used"}]
    assert clean.links == everything.links and clean.dependencies == everything.dependencies


FEATURES = {"here": KnownFeature("default"), "old": KnownFeature("default", archived=True), "far": KnownFeature("other")}
FACTS = known(features=FEATURES, environments=("development",), limited_storage=True)
TWICE = [{"name": "size", "legalValues": [{"value": "1"}, {"value": "1"}]}]


def problems(facts: Facts = FACTS, **data: Any) -> list[tuple[str, str]]:
    """Return rule and flag of each problem of a data set."""
    found, _ = find_problems(read_data_set(check(IMPORT, body(**data))), facts)  # type: ignore[arg-type]
    return [(problem.rule, problem.flag) for problem in found]


CASES: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"features": [feature("here")], "featureStrategies": [strategy("here")]}, []),
    ({"featureStrategies": [strategy("far")]}, [("unknown-flag", "far")]),
    ({"featureStrategies": [strategy("here", sortOrder=1.5)]}, [("sort-order", "here")]),
    ({"featureStrategies": [strategy("here", parameters={"x": "\ud800"})]}, [("text", "here")]),
    ({"featureTags": [tag("here", "a\0b")]}, [("text", "here")]),
    ({"featureTags": [tag("gone", "red")]}, [("unknown-flag", "gone")]),
    ({"featureTags": [tag("here", "x")]}, [("tag", "here")]),
    ({"contextFields": TWICE}, [("context-field", "")]),
    ({"contextFields": [{"name": "size"}] * 2}, [("context-field", "")]),
    ({"featureEnvironments": [place("old")]}, [("archived-flag", "old")]),
    ({"features": [feature("here", archived=True)], "featureEnvironments": [place("here")]}, [("archived-flag", "here")]),
    ({"links": [linked("old", {"url": "e.com"})]}, [("unknown-flag", "old")]),
    ({"links": [linked("here", *[{"url": "e.com"}] * 11)]}, [("link", "here")]),
    ({"links": [linked("here", {"url": "javascript:alert(1)"})]}, [("link", "here")]),
    ({"featureStrategies": [strategy("here", variants=[variant("v", weightType="fix")])]}, [("variants", "here")]),
    ({"features": [feature("here", project="x")], "dependencies": [depends("here", "far")]}, [("dependency", "here")]),
    ({"features": [feature("here")], "dependencies": [depends("here", "here")]}, []),
]


@pytest.mark.parametrize(("wanted", "expected"), CASES)
def test_problems_of_an_import(wanted: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    """Each problem has a rule and the flag that it concerns. Entries that an import ignores are no problem."""
    assert problems(**wanted) == expected


def test_a_flag_that_the_environment_does_not_have() -> None:
    """A new flag has the environments of the project. An existing flag has its own environments."""
    elsewhere = Facts(FEATURES | {"here": KnownFeature("default", in_environment=False)}, environments=("production",))
    wanted = {"features": [feature("new")], "featureEnvironments": [place("here"), place("new")]}
    assert problems(elsewhere, **wanted) == [("environment", "here"), ("environment", "new")]


def test_what_is_not_known_is_not_checked() -> None:
    """Without tag types and context fields, the other rules are checked, and the two skipped checks are named."""
    wanted = data(featureTags=[tag("here", "red", "team")], contextFields=TWICE, links=[linked("here", {"url": "http://"})])
    found, unchecked = find_problems(wanted, Facts(FEATURES, unknown={"tag_types", "context_fields"}))
    assert [each.rule for each in found] == ["link"]
    assert len(unchecked) == 2


def test_wider_columns_are_not_complained_of() -> None:
    """A flagsvc server accepts any sort order, and replaces half a surrogate pair."""
    wide = Facts(FEATURES)
    assert problems(wide, featureStrategies=[strategy("here", sortOrder=1.5, parameters={"x": "\ud800"})]) == []


def test_many_context_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem of a context field has the flags that use the field, and each strategy is looked at once for all fields."""
    looked: list[object] = []
    real = rules.constrained_fields

    def look(strategy: dict[str, Any]) -> set[str]:
        looked.append(strategy)
        return real(strategy)

    monkeypatch.setattr(rules, "constrained_fields", look)
    uses = [{"contextName": "size", "operator": "IN", "values": ["1"]}]
    strategies = [strategy("here", constraints=uses), strategy("here"), strategy("far", constraints=uses)]
    found = problems(contextFields=TWICE * 20, featureStrategies=strategies)
    assert found.count(("context-field", "here, far")) == 2
    assert len(looked) == len(strategies)
