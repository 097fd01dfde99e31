"""Each rule of an import alone, with given facts about a server (import validation 4; 6)."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.http.shapes import check
from flagsvc.server.shapes.batch import IMPORT
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch import rules
from flagsvc.server.store.batch.dataset import DataSet, clean_data_set, find_repeated, read_data_set
from flagsvc.server.store.batch.facts import (
    CheckedDataSet,
    Facts,
    KnownContextField,
    KnownFeature,
    KnownSegment,
    TargetProject,
)
from flagsvc.server.store.batch.rules import REQUIRED_PERMISSIONS, RULES, find_problems, list_findings
from support.batch_scene import (
    ADMIN,
    EDITOR,
    VIEWER,
    Json,
    body,
    depends,
    feature,
    linked,
    place,
    strategy,
    tag,
    variant,
)

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


def errors(wanted: DataSet, facts: Facts) -> list[Json]:
    """Return the errors of a validation."""
    return list_findings(CheckedDataSet(wanted, facts))["errors"]


def missing_permissions(wanted: DataSet, facts: Facts, actor: Actor) -> list[str]:
    """Return the permissions that an actor lacks."""
    return rules.missing_permissions(CheckedDataSet(wanted, facts, actor))


def test_unknown_strategies_are_told_each_time() -> None:
    """An unknown strategy is listed once for each use, also without a feature. Names are case-sensitive."""
    used = [strategy("a", "gone"), strategy("a", "Default"), {"name": "gone"}, strategy("a", "mine")]
    assert found("known strategy types", data(featureStrategies=used), known()) == ["gone", "Default", "gone"]


@pytest.mark.parametrize(
    ("field", "stored", "unfit"),
    [
        ({"legalValues": [{"value": "x"}]}, KnownContextField(None, frozenset({"x", "y"})), False),
        ({"legalValues": [{"value": "x"}, {"value": "z"}]}, KnownContextField(None, frozenset({"x"})), True),
        ({"legalValues": [{"value": "x"}]}, KnownContextField(None, frozenset()), True),
        ({"legalValues": []}, KnownContextField(None, frozenset({"x"})), False),
        ({}, KnownContextField(None, frozenset({"x"})), False),
        ({}, KnownContextField("default", frozenset()), False),
        ({}, KnownContextField("other", frozenset()), True),
        ({"legalValues": [{"value": "x"}]}, None, False),
    ],
)
def test_context_fields_must_agree(field: Json, stored: KnownContextField | None, unfit: bool) -> None:
    """A stored field must have the legal values, and be global or of the project. A new field is never a conflict."""
    held = {} if stored is None else {"f": stored}
    wanted = data(contextFields=[{"name": "f", **field}] * 2)
    assert found("matching context fields", wanted, known(context_fields=held)) == (["f", "f"] if unfit else [])


def test_features_of_other_projects_are_told_with_them() -> None:
    """A feature of another project, active or archived, is listed with its project. Parent features are not checked."""
    held = {
        "a": KnownFeature("other"),
        "b": KnownFeature("third", archived=True),
        "c": KnownFeature("default"),
        "p": KnownFeature("other"),
    }
    wanted = data(features=[feature(name) for name in "cba"], dependencies=[depends("c", "p")])
    assert found("features of other projects", wanted, known(features=held)) == [
        "a (in project other)",
        "b (in project third)",
    ]


def test_repeated_features_come_once() -> None:
    """A repeated name is listed once, in the order of the second occurrences."""
    assert found("repeated features", data(features=[feature(name) for name in "abcbbaa"]), known()) == ["b", "a"]
    assert find_repeated([]) == []


def test_misnamed_features_are_sorted_by_utf16() -> None:
    """Names that do not match are listed once each, sorted by UTF-16 code units: U+1F600 comes before U+FB01."""
    names = ["ok", "ﬁ", "😀", "Z", "é", "Z"]
    facts = known(project=TargetProject("default", pattern="[a-z]+"))
    assert found("naming pattern", data(features=[feature(name) for name in names]), facts) == ["Z", "é", "😀", "ﬁ"]


def test_without_a_pattern_every_name_is_fine() -> None:
    """Names are not checked without a pattern or with an unknown project."""
    for project in (None, TargetProject("default")):
        assert found("naming pattern", data(features=[feature("a b")]), known(project=project)) == []


@pytest.mark.parametrize(
    ("project", "words"),
    [
        (TargetProject("p", pattern="x"), ' pattern: "x". The following'),
        (TargetProject("p", pattern="x", example="e"), ' pattern: "x". For example: "e". The following'),
        (
            TargetProject("p", pattern="x", example="e", description="d"),
            ' pattern: "x". For example: "e". The pattern is described as follows: "d" The following',
        ),
    ],
)
def test_the_naming_message_shows_what_is_set(project: TargetProject, words: str) -> None:
    """The message has the example and the description if they are set."""
    (error,) = errors(data(features=[feature("a")]), known(project=project))
    assert words in error["message"]
    assert error["affectedItems"] == ["a"]


@pytest.mark.parametrize(
    ("limit", "active", "told"),
    [(None, 9, None), (3, 1, None), (2, 1, (2, 1, 2)), (0, 0, (2, 0, 0)), (4, 5, (2, 5, 4))],
)
def test_the_limit_of_a_project(limit: int | None, active: int, told: tuple[int, int, int] | None) -> None:
    """The number of features must not exceed the limit. Each new name counts once; archived features and those of other
    projects count as new."""
    held = {
        "here": KnownFeature("default"),
        "shelved": KnownFeature("default", archived=True),
        "there": KnownFeature("other"),
    }
    names = ["here", "shelved", "there", "there"]
    project = TargetProject("default", limit=limit, active=active)
    listed = errors(data(features=[feature(name) for name in names]), known(features=held, project=project))
    limited = [each for each in listed if "exceeding" in each["message"]]
    assert [each["affectedItems"] for each in limited] == ([] if told is None else [[]])
    if told is not None:
        new, current, most = told
        assert limited[0]["message"] == (
            f"We detected you want to create {new} new features to a project that already has {current} existing features, "
            f"exceeding the maximum limit of {most}."
        )


def test_a_project_over_its_limit_is_told_without_new_features() -> None:
    """A project over its limit is reported even if no feature is new."""
    (error,) = errors(data(), known(project=TargetProject("default", limit=1, active=2)))
    assert error["affectedItems"] == []


def test_segments_are_found_by_name() -> None:
    """A segment must exist with its exact name, and be global or of the project. Its id is ignored."""
    held = {"free": KnownSegment(1, None), "ours": KnownSegment(2, "default"), "theirs": KnownSegment(3, "other")}
    wanted = [{"id": 9, "name": name} for name in ("free", "ours", "theirs", "Free", "theirs")]
    assert found("usable segments", data(segments=wanted), known(segments=held)) == ["theirs", "Free", "theirs"]


def test_parents_must_be_somewhere() -> None:
    """A parent must be in the data set or stored. Archived parents and other projects are fine. Repeats are kept."""
    held = {"stored": KnownFeature("other", archived=True)}
    wanted = [depends("nobody", "gone", "in", "stored", "gone")]
    assert found("parents", data(features=[feature("in")], dependencies=wanted), known(features=held)) == [
        "gone",
        "gone",
    ]


def test_custom_strategies_are_told_once() -> None:
    """Custom strategies are listed once, in the order of their first use."""
    used = [strategy("a", name) for name in ("yours", "default", "mine", "yours", "gone")]
    assert found("custom strategy types", data(featureStrategies=used), known()) == ["yours", "mine"]


def test_archived_and_overwritten_features() -> None:
    """Archived features of any project are reported, and active ones of this project."""
    held = {
        "a": KnownFeature("other", archived=True),
        "b": KnownFeature("default"),
        "c": KnownFeature("other"),
        "d": KnownFeature("default", archived=True),
    }
    wanted = data(features=[feature(name) for name in "abcde"])
    assert found("archived features", wanted, known(features=held)) == ["a", "d"]
    assert found("overwritten features", wanted, known(features=held)) == ["b"]


def test_rules_speak_in_their_order() -> None:
    """All eight errors come in the order of the table. A correct data set has none."""
    project = TargetProject("default", pattern="[A-Z]", limit=0)
    held = known(
        features={"a": KnownFeature("other")},
        project=project,
        context_fields={"f": KnownContextField("other", frozenset())},
    )
    wanted = data(
        features=[feature("a"), feature("a")],
        featureStrategies=[strategy("a", "gone")],
        contextFields=[{"name": "f"}],
        segments=[{"id": 1, "name": "s"}],
        dependencies=[depends("a", "p")],
    )
    assert [each["affectedItems"] for each in errors(wanted, held)] == [
        ["gone"],
        ["f"],
        ["a (in project other)"],
        ["a"],
        ["a"],
        [],
        ["s"],
        ["p"],
    ]
    assert list_findings(CheckedDataSet(data(), known())) == {"errors": [], "warnings": [], "permissions": []}


ASKS: list[tuple[str, Json, Json]] = [
    ("Create context fields", {"contextFields": [{"name": "new"}]}, {}),
    ("Create activation strategies", {"featureStrategies": [strategy("a")]}, {}),
    ("Delete activation strategies", {}, {"has_strategies": True}),
    ("Update variants", {"featureEnvironments": [place("a", variants=[variant("v")])]}, {}),
    ("Create feature flags", {"features": [feature("a")]}, {}),
    ("Create tag types", {"tagTypes": [{"name": "new"}]}, {}),
]


@pytest.mark.parametrize(("name", "lists", "held"), ASKS, ids=[row[0] for row in ASKS])
def test_each_permission_is_asked_for_by_what_needs_it(name: str, lists: Json, held: Json) -> None:
    """A viewer lacks the permission to update, and the one that the data set needs."""
    order = [asked.name for asked in REQUIRED_PERMISSIONS]
    assert missing_permissions(data(**lists), known(**held), VIEWER) == sorted(
        ["Update feature flags", name], key=order.index
    )


def test_a_repeated_feature_that_exists_asks_to_create() -> None:
    """Entries are counted, not names: two entries of one stored feature are more than the stored features."""
    held = known(features={"a": KnownFeature("default"), "p": KnownFeature("default")})
    twice = data(features=[feature("a"), feature("a")])
    assert "Create feature flags" in missing_permissions(twice, held, VIEWER)
    once = data(features=[feature("a")], dependencies=[depends("a", "p")])
    assert missing_permissions(once, held, VIEWER) == ["Update feature flags"]


def test_empty_variants_and_known_names_ask_nothing() -> None:
    """Empty variants, known tag types and known context fields need no permission of their own."""
    lists = {
        "featureEnvironments": [place("a", variants=[])],
        "tagTypes": [{"name": "simple"}],
        "contextFields": [{"name": "f"}],
    }
    held = known(context_fields={"f": KnownContextField(None, frozenset())})
    assert missing_permissions(data(**lists), held, VIEWER) == ["Update feature flags"]


@pytest.mark.parametrize(
    ("actor", "project", "environment", "missing"),
    [
        (ADMIN, "nowhere", "nosuch", []),
        (EDITOR, "default", "development", []),
        (EDITOR, "other", "development", [asked.name for asked in REQUIRED_PERMISSIONS[1:6]]),
        (EDITOR, "default", "nosuch", [asked.name for asked in REQUIRED_PERMISSIONS[1:4]]),
        (
            Actor(3, "m", project_roles={"default": ("member",)}),
            "default",
            "development",
            [REQUIRED_PERMISSIONS[0].name, REQUIRED_PERMISSIONS[6].name],
        ),
        (
            Actor(3, "m", project_roles={"default": ("member",)}),
            "other",
            "development",
            [asked.name for asked in REQUIRED_PERMISSIONS],
        ),
    ],
)
def test_what_roles_miss(actor: Actor, project: str, environment: str, missing: list[str]) -> None:
    """A role gives permissions only in its own project and in known environments."""
    lists = {name: entries for _, more, _ in ASKS for name, entries in more.items()}
    wanted = read_data_set(body(environment, project, **lists))
    assert missing_permissions(wanted, known(has_strategies=True), actor) == missing


def test_cleaning_takes_out_what_is_not_imported() -> None:
    """Cleaning removes archived features with their entries, entries without a feature, and unused tag types.
    Links and dependencies stay."""
    everything = data(
        features=[feature("a"), feature("gone")],
        featureStrategies=[
            strategy("a"),
            strategy("gone"),
            {"name": "default"},
            {"name": "default", "featureName": ""},
        ],
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


FEATURES = {
    "here": KnownFeature("default"),
    "old": KnownFeature("default", archived=True),
    "far": KnownFeature("other"),
}
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
    wanted = data(
        featureTags=[tag("here", "red", "team")], contextFields=TWICE, links=[linked("here", {"url": "http://"})]
    )
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
