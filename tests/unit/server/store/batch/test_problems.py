"""The problems that make an import fail, found without a database (import validation 6.3)."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.http.shapes import check
from flagsvc.server.shapes.batch import IMPORT
from flagsvc.server.store.batch import problems as module
from flagsvc.server.store.batch.dataset import read_data_set
from flagsvc.server.store.batch.problems import find_problems
from flagsvc.server.store.batch.server_facts import ServerFacts, ServerFlag
from support.batch_scene import body, depends, feature, linked, place, strategy, tag, variant

FLAGS = {"here": ServerFlag("default"), "old": ServerFlag("default", archived=True), "far": ServerFlag("other")}
FACTS = ServerFacts(FLAGS, frozenset({"development"}), frozenset({"simple"}), {"userId": []}, limited_storage=True)
TWICE = [{"name": "size", "legalValues": [{"value": "1"}, {"value": "1"}]}]


def found(facts: ServerFacts = FACTS, **data: Any) -> list[tuple[str, str]]:
    """Return rule and flag of each problem of a data set."""
    problems, _ = find_problems(read_data_set(check(IMPORT, body(**data))), facts)  # type: ignore[arg-type]
    return [(problem.rule, problem.flag) for problem in problems]


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
    (
        {"features": [feature("here", archived=True)], "featureEnvironments": [place("here")]},
        [("archived-flag", "here")],
    ),
    ({"links": [linked("old", {"url": "e.com"})]}, [("unknown-flag", "old")]),
    ({"links": [linked("here", *[{"url": "e.com"}] * 11)]}, [("link", "here")]),
    ({"links": [linked("here", {"url": "javascript:alert(1)"})]}, [("link", "here")]),
    ({"featureStrategies": [strategy("here", variants=[variant("v", weightType="fix")])]}, [("variants", "here")]),
    ({"features": [feature("here", project="x")], "dependencies": [depends("here", "far")]}, [("dependency", "here")]),
    ({"features": [feature("here")], "dependencies": [depends("here", "here")]}, []),
]


@pytest.mark.parametrize(("data", "problems"), CASES)
def test_what_is_found(data: dict[str, Any], problems: list[tuple[str, str]]) -> None:
    """Each problem has a rule and the flag that it concerns. Entries that an import ignores are no problem."""
    assert found(**data) == problems


def test_a_flag_that_the_environment_does_not_have() -> None:
    """A new flag has the environments of the project. An existing flag has its own environments."""
    elsewhere = ServerFacts(FLAGS | {"here": ServerFlag("default", in_environment=False)}, frozenset({"production"}))
    wanted = {"features": [feature("new")], "featureEnvironments": [place("here"), place("new")]}
    assert found(elsewhere, **wanted) == [("environment", "here"), ("environment", "new")]


def test_what_is_not_known_is_not_checked() -> None:
    """Without tag types and context fields, the other rules are checked, and the two skipped checks are named."""
    data = body(
        featureTags=[tag("here", "red", "team")], contextFields=TWICE, links=[linked("here", {"url": "http://"})]
    )
    problems, unchecked = find_problems(read_data_set(check(IMPORT, data)), ServerFacts(FLAGS))  # type: ignore[arg-type]
    assert [each.rule for each in problems] == ["link"]
    assert len(unchecked) == 2


def test_wider_columns_are_not_complained_of() -> None:
    """A flagsvc server accepts any sort order, and replaces half a surrogate pair."""
    wide = ServerFacts(FLAGS)
    assert found(wide, featureStrategies=[strategy("here", sortOrder=1.5, parameters={"x": "\ud800"})]) == []


def test_many_context_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem of a context field has the flags that use the field, and each strategy is looked at once for all fields."""
    looked: list[object] = []
    real = module.constrained_fields

    def look(strategy: dict[str, Any]) -> set[str]:
        looked.append(strategy)
        return real(strategy)

    monkeypatch.setattr(module, "constrained_fields", look)
    uses = [{"contextName": "size", "operator": "IN", "values": ["1"]}]
    strategies = [strategy("here", constraints=uses), strategy("here"), strategy("far", constraints=uses)]
    problems = found(contextFields=TWICE * 20, featureStrategies=strategies)
    assert problems.count(("context-field", "here, far")) == 2
    assert len(looked) == len(strategies)
