"""Each rule of a batch alone, with given facts about the database (import validation 4.1; 4.2; 4.3)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch import rules
from flagsvc.server.store.batch.database_facts import (
    DatabaseFacts,
    KnownContextField,
    KnownSegment,
    StoredFeature,
    TargetProject,
)
from flagsvc.server.store.batch.dataset import DataSet, clean_data_set, find_repeated, read_data_set
from flagsvc.server.store.batch.verify import REQUIRED_PERMISSIONS, missing_permissions
from support.batch_scene import ADMIN, EDITOR, VIEWER, Json, body, depends, feature, place, strategy, variant

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
KNOWN: dict[str, Any] = {
    "project": TargetProject("default"),
    "environment": True,
    "features": {},
    "strategy_types": {"default": False, "flexibleRollout": False, "mine": True, "yours": True},
    "context_fields": {},
    "segments": {},
    "tag_types": frozenset({"simple"}),
    "has_strategies": False,
}


def known(**more: Any) -> DatabaseFacts:
    """Return facts about a database."""
    return DatabaseFacts(**KNOWN | more)


def data(**lists: Any) -> DataSet:
    """Return a data set."""
    return read_data_set(body(**lists))


def test_unknown_strategies_are_told_each_time() -> None:
    """An unknown strategy is listed once for each use, also without a feature. Names are case-sensitive."""
    used = [strategy("a", "gone"), strategy("a", "Default"), {"name": "gone"}, strategy("a", "mine")]
    assert rules.unknown_strategies(data(featureStrategies=used), known()) == ["gone", "Default", "gone"]


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
    found = rules.conflicting_context_fields(
        data(contextFields=[{"name": "f", **field}] * 2), known(context_fields=held)
    )
    assert found == (["f", "f"] if unfit else [])


def test_features_of_other_projects_are_told_with_them() -> None:
    """A feature of another project, active or archived, is listed with its project. Parent features are not checked."""
    held = {
        "a": StoredFeature("other"),
        "b": StoredFeature("third", LONG_AGO),
        "c": StoredFeature("default"),
        "p": StoredFeature("other"),
    }
    found = data(features=[feature(name) for name in "cba"], dependencies=[depends("c", "p")])
    assert rules.foreign_features(found, known(features=held)) == ["a (in project other)", "b (in project third)"]


def test_repeated_features_come_once() -> None:
    """A repeated name is listed once, in the order of the second occurrences."""
    assert rules.repeated_features(data(features=[feature(name) for name in "abcbbaa"]), known()) == ["b", "a"]
    assert find_repeated([]) == []


def test_misnamed_features_are_sorted_by_utf16() -> None:
    """Names that do not match are listed once each, sorted by UTF-16 code units: U+1F600 comes before U+FB01."""
    names = ["ok", "ﬁ", "😀", "Z", "é", "Z"]
    found = rules.misnamed_features(
        data(features=[feature(name) for name in names]), known(project=TargetProject("default", pattern="[a-z]+"))
    )
    assert found == ["Z", "é", "😀", "ﬁ"]


def test_without_a_pattern_every_name_is_fine() -> None:
    """Names are not checked without a pattern or with an unknown project."""
    for project in (None, TargetProject("default")):
        assert rules.misnamed_features(data(features=[feature("a b")]), known(project=project)) == []


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
    (found,) = rules.apply(rules.ERRORS, data(features=[feature("a")]), known(project=project))
    assert words in found["message"]
    assert found["affectedItems"] == ["a"]


@pytest.mark.parametrize(
    ("limit", "active", "told"),
    [(None, 9, None), (3, 1, None), (2, 1, (2, 1, 2)), (0, 0, (2, 0, 0)), (4, 5, (2, 5, 4))],
)
def test_the_limit_of_a_project(limit: int | None, active: int, told: tuple[int, int, int] | None) -> None:
    """The number of features must not exceed the limit. Each new name counts once; archived features and those of other
    projects count as new."""
    held = {
        "here": StoredFeature("default"),
        "shelved": StoredFeature("default", LONG_AGO),
        "there": StoredFeature("other"),
    }
    names = ["here", "shelved", "there", "there"]
    project = TargetProject("default", limit=limit, active=active)
    found = rules.apply(
        rules.ERRORS[6:7], data(features=[feature(name) for name in names]), known(features=held, project=project)
    )
    assert [each["affectedItems"] for each in found] == ([] if told is None else [[]])
    if told is not None:
        new, current, most = told
        assert found[0]["message"] == (
            f"We detected you want to create {new} new features to a project that already has {current} existing features, "
            f"exceeding the maximum limit of {most}."
        )


def test_a_project_over_its_limit_is_told_without_new_features() -> None:
    """A project over its limit is reported even if no feature is new."""
    assert rules.too_many_features(data(), known(project=TargetProject("default", limit=1, active=2))) == []


def test_segments_are_found_by_name() -> None:
    """A segment must exist with its exact name, and be global or of the project. Its id is ignored."""
    held = {"free": KnownSegment(1, None), "ours": KnownSegment(2, "default"), "theirs": KnownSegment(3, "other")}
    wanted = [{"id": 9, "name": name} for name in ("free", "ours", "theirs", "Free", "theirs")]
    assert rules.missing_segments(data(segments=wanted), known(segments=held)) == ["theirs", "Free", "theirs"]


def test_parents_must_be_somewhere() -> None:
    """A parent must be in the data set or stored. Archived parents and other projects are fine. Repeats are kept."""
    held = {"stored": StoredFeature("other", LONG_AGO)}
    wanted = [depends("nobody", "gone", "in", "stored", "gone")]
    found = data(features=[feature("in")], dependencies=wanted)
    assert rules.missing_parents(found, known(features=held)) == ["gone", "gone"]


def test_custom_strategies_are_told_once() -> None:
    """Custom strategies are listed once, in the order of their first use."""
    used = [strategy("a", name) for name in ("yours", "default", "mine", "yours", "gone")]
    assert rules.custom_strategies(data(featureStrategies=used), known()) == ["yours", "mine"]


def test_archived_and_overwritten_features() -> None:
    """Archived features of any project are reported, and active ones of this project."""
    held = {
        "a": StoredFeature("other", LONG_AGO),
        "b": StoredFeature("default"),
        "c": StoredFeature("other"),
        "d": StoredFeature("default", LONG_AGO),
    }
    found = data(features=[feature(name) for name in "abcde"])
    assert rules.archived_features(found, known(features=held)) == ["a", "d"]
    assert rules.overwritten_features(found, known(features=held)) == ["b"]


def test_rules_speak_in_their_order() -> None:
    """All eight errors come in the order of the table. A correct data set has none."""
    project = TargetProject("default", pattern="[A-Z]", limit=0)
    held = known(
        features={"a": StoredFeature("other")},
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
    found = rules.apply(rules.ERRORS, wanted, held)
    assert [each["affectedItems"] for each in found] == [
        ["gone"],
        ["f"],
        ["a (in project other)"],
        ["a"],
        ["a"],
        [],
        ["s"],
        ["p"],
    ]
    assert rules.apply(rules.ERRORS, data(), known()) == rules.apply(rules.WARNINGS, data(), known()) == []


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
    found = missing_permissions(data(**lists), known(**held), VIEWER)
    order = [asked.name for asked in REQUIRED_PERMISSIONS]
    assert found == sorted(["Update feature flags", name], key=order.index)


def test_a_repeated_feature_that_exists_asks_to_create() -> None:
    """Entries are counted, not names: two entries of one stored feature are more than the stored features."""
    held = known(features={"a": StoredFeature("default"), "p": StoredFeature("default")})
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
