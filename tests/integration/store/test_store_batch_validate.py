"""Batch validation on a database: what it answers, and that it writes nothing (import validation 4)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flagsvc.server.store.errors import CallerError
from support.batch_scene import VIEWER, Scene, body, depends, feature, scene_of, strategy


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Give a database with something in it."""
    with scene_of(database_url) as found:
        found.seed(
            projects=[
                {"id": "default", "name": "Default", "featureLimit": 3, "featureNaming": {"pattern": "[a-z]+"}},
                {"id": "frozen", "name": "Frozen", "featureNaming": {"pattern": "(?=a)(a|aa)+[bc]"}},
                {"id": "other", "name": "Other"},
                {"id": "shelved", "name": "Shelved", "archived": True},
            ],
            features=[
                {"name": "here", "project": "default"},
                {"name": "gone", "project": "default", "archived": True},
                {"name": "there", "project": "other"},
                {"name": "buried", "project": "other", "archived": True},
            ],
            strategies=[{"feature": "here", "environment": "development", "name": "default"}],
            contextFields=[{"name": "tier", "legalValues": [{"value": "free"}]}, {"name": "theirs", "project": "other"}],
            segments=[{"name": "all", "constraints": []}, {"name": "theirs", "constraints": [], "project": "other"}],
            strategyTypes=[{"name": "mine", "description": "", "parameters": []}],
            tagTypes=[{"name": "team", "description": "", "icon": ""}],
        )
        yield found


EVERYTHING = body(
    features=[feature(name) for name in ("here", "gone", "there", "buried", "NEW", "NEW")],
    featureStrategies=[strategy("here", name) for name in ("mine", "unknown", "flexibleRollout")],
    contextFields=[{"name": "tier", "legalValues": [{"value": "paid"}]}, {"name": "theirs"}, {"name": "new"}],
    segments=[{"id": 1, "name": "all"}, {"id": 2, "name": "theirs"}],
    tagTypes=[{"name": "team"}, {"name": "new"}],
    dependencies=[depends("here", "buried", "nobody")],
)


def test_everything_at_once(scene: Scene) -> None:
    """Every rule takes the content of the database into account. A validation changes no row and no revision."""
    before = scene.dump()
    found = scene.validate(EVERYTHING, VIEWER)
    assert scene.dump() == before
    assert [sorted(each["affectedItems"]) for each in found["errors"]] == [
        ["unknown"],
        ["theirs", "tier"],
        ["buried (in project other)", "there (in project other)"],
        ["NEW"],
        ["NEW"],
        [],
        ["theirs"],
        ["nobody"],
    ]
    assert "4 new features to a project that already has 1 existing" in found["errors"][5]["message"]
    assert [sorted(each["affectedItems"]) for each in found["warnings"]] == [["mine"], ["buried", "gone"], ["here"]]
    assert [each["affectedItems"] for each in found["permissions"]] == [
        [
            "Create context fields",
            "Create activation strategies",
            "Delete activation strategies",
            "Create feature flags",
            "Update feature flags",
            "Create tag types",
        ]
    ]


def test_there_must_be_a_target(scene: Scene) -> None:
    """A missing project or environment is a 404 that names it, with any data set."""
    for project, environment, message in (
        ("nowhere", "development", "Could not find project with id nowhere"),
        ("shelved", "development", "Active project with id shelved does not exist"),
        ("default", "nosuch", "Could not find environment with name nosuch"),
    ):
        with pytest.raises(CallerError) as found:
            scene.validate(EVERYTHING | {"project": project, "environment": environment})
        assert (found.value.name, found.value.status, found.value.message) == ("NotFoundError", 404, message)


def test_delete_is_asked_for_by_strategies_here(scene: Scene) -> None:
    """Strategies of other environments do not count for the permission; a data set without features always needs it."""
    one = body("production", features=[feature("here")])
    assert scene.validate(one, VIEWER)["permissions"][0]["affectedItems"] == ["Update feature flags"]
    assert scene.validate(body(), VIEWER)["permissions"][0]["affectedItems"] == [
        "Delete activation strategies",
        "Update feature flags",
    ]


def test_statements_grow_with_chunks_alone(scene: Scene) -> None:
    """Four hundred features need as many statements as ten, and two thousand need a few more."""

    def asked(count: int) -> int:
        names = [f"new{number}" for number in range(count)]
        request = body(features=[feature(name) for name in names], featureStrategies=[strategy(name) for name in names])
        return scene.counted(lambda: scene.validate(request))

    few = asked(10)
    assert few <= 15
    assert asked(400) == few
    assert asked(2000) <= few + 8


def test_a_pattern_that_would_not_end_is_told(scene: Scene) -> None:
    """Names whose check takes too long are reported separately from names that do not match; other names pass."""
    names = ["a" * 62, "b", "ab", "a" * 60]
    found = scene.validate(body(project="frozen", features=[feature(name) for name in names]), VIEWER)
    mismatch, unchecked = found["errors"]
    assert mismatch["affectedItems"] == ["b"]
    assert unchecked == {
        "message": 'The project\'s feature naming pattern "(?=a)(a|aa)+[bc]" cannot be checked for all features: '
        "it takes too long. To import them, use shorter names or fewer features at once, or have the pattern made "
        "simpler: it has repetition within repetition, look-ahead, look-behind or large counts. "
        "The following features were not checked:",
        "affectedItems": ["a" * 60, "a" * 62],
    }
