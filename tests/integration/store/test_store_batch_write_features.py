"""Import, step 1: features are changed or created (import validation 6.3, step 1)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import select

from flagsvc.server.store.schema import features
from support.batch_scene import EDITOR, Json, Scene, body, feature, scene_of

NAMING = {"pattern": "[a-z-]+", "example": "dark-mode", "description": "small letters"}


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Give a database with some features and projects."""
    with scene_of(database_url) as found:
        found.seed(
            projects=[
                {"id": "default", "name": "Default"},
                {"id": "named", "name": "Named", "featureNaming": NAMING},
                {"id": "frozen", "name": "Frozen", "featureNaming": {"pattern": "(?=a)(a|aa)+[bc]"}},
                {"id": "deep", "name": "Deep", "featureNaming": {"pattern": "(" * 5_000}},
                {"id": "small", "name": "Small", "featureLimit": 2},
                {"id": "narrow", "name": "Narrow", "environments": ["production"]},
                {"id": "shelved", "name": "Shelved", "archived": True},
            ],
            features=[{"name": "here", "project": "default"}, {"name": "OLD", "project": "named"}],
        )
        yield found


def shown(scene: Scene, name: str) -> Json:
    """Return a feature in the form of an export."""
    found: Json
    (found,) = scene.export(features=[name])["features"]
    return found


RICH = {"type": "experiment", "description": "words", "stale": True, "impressionData": True}
PLAIN = {"type": "release", "description": None, "stale": False, "impressionData": False, "archived": False}


def test_a_feature_is_created_in_the_target(scene: Scene) -> None:
    """The feature is created in the target project, not in the entry's; it is in every environment of the project, and off."""
    ignored = {
        "project": "other",
        "createdAt": "2020-01-01T00:00:00Z",
        "environments": [{"name": "production", "enabled": True}],
    }
    scene.load(body(features=[feature("new", **RICH, **ignored)]), EDITOR)
    assert shown(scene, "new") == {"name": "new", "project": "default", **RICH, "archived": False}
    states = scene.export(features=["new"], environment="")["featureEnvironments"]
    assert [(each["environment"], each["enabled"]) for each in states] == [
        ("development", False),
        ("production", False),
    ]
    with scene.store.reading() as tx:
        row = tx.db.execute(select(features).where(features.c.name == "new")).one()
        assert row.created_by == "writer"
        assert row.created_at.year > 2020


def test_a_project_may_have_some_environments(scene: Scene) -> None:
    """A new feature is in the environments of its project alone."""
    scene.load(body("production", "narrow", features=[feature("new")]))
    states = scene.export(features=["new"], environment="")["featureEnvironments"]
    assert [each["environment"] for each in states] == ["production"]


def test_what_is_absent_is_set_back(scene: Scene) -> None:
    """An entry with only a name resets all other members; an empty description becomes null."""
    scene.load(body(features=[feature("here", **RICH)]))
    assert shown(scene, "here") == {"name": "here", "project": "default", **RICH, "archived": False}
    scene.load(body(features=[feature("here")]))
    assert shown(scene, "here") == {"name": "here", "project": "default", **PLAIN}
    scene.load(body(features=[feature("here", description="")]))
    assert shown(scene, "here")["description"] is None


@pytest.mark.parametrize("name", ["here", "new"])
def test_archived_entries_archive(scene: Scene, name: str) -> None:
    """The entry archives an existing feature, or creates an archived one; a later import does not change the feature."""
    scene.load(body(features=[feature(name, archived=True)]))
    assert shown(scene, name)["archived"] is True
    scene.load(body(features=[feature(name, description="x")]))
    assert shown(scene, name)["description"] is None


def test_of_an_existing_feature_the_last_entry_counts(scene: Scene) -> None:
    """Two entries for one stored feature are allowed, and the last one is used."""
    scene.load(body(features=[feature("here", description="first"), feature("here", type="experiment")]))
    assert shown(scene, "here") == {"name": "here", "project": "default"} | PLAIN | {"type": "experiment"}
    assert scene.events() == [("feature-metadata-updated", "here"), ("features-imported", None)]


def test_others_stay(scene: Scene) -> None:
    """Other features do not change, and unchanged features write no events."""
    before = shown(scene, "OLD")
    scene.load(body(features=[feature("here"), feature("new")]))
    assert shown(scene, "OLD") == before
    assert scene.events() == [("feature-created", "new"), ("features-imported", None)]


def test_existing_names_need_not_match_the_pattern(scene: Scene) -> None:
    """Only the names of new features must match the naming pattern."""
    scene.load(body(project="named", features=[feature("OLD", description="x"), feature("new")]))
    assert shown(scene, "OLD")["description"] == "x"


TAKEN = "A flag with that name already exists"
FULL = "You have reached the maximum number of feature flags for this project."
PATTERN = (
    'The feature flag name "New" does not match the project\'s naming pattern: "[a-z-]+". Here\'s an example of a name that '
    'does match the pattern: "dark-mode"." The pattern\'s description is: "small letters"'
)
REFUSED: list[tuple[str, list[Json], int, str, str]] = [
    ("default", [feature("has space")], 400, "BadDataError", '"name" must be URL friendly. You provided "has space".'),
    ("default", [feature("new", type="")], 400, "BadDataError", '"type" is not allowed to be empty.'),
    ("default", [feature("here", type="")], 400, "BadDataError", '"type" is not allowed to be empty.'),
    ("default", [feature("ok"), feature("new"), feature("new")], 409, "NameExistsError", TAKEN),
    (
        "default",
        [feature("new", archived=True), feature("new")],
        409,
        "NameExistsError",
        "An archived flag with that name already exists",
    ),
    ("named", [feature("fine"), feature("New")], 400, "PatternError", "The flag name does not match the pattern."),
    ("small", [feature("one"), feature("two"), feature("three")], 403, "InvalidOperationError", FULL),
    ("nowhere", [feature("new")], 404, "NotFoundError", "Active project with id nowhere does not exist"),
    ("shelved", [feature("new")], 404, "NotFoundError", "Active project with id shelved does not exist"),
]


def test_what_cannot_be_created(scene: Scene) -> None:
    """Each failure has its status, name and message, and stores nothing."""
    for project, wanted, status, name, message in REFUSED:
        found = scene.refusal(body(project=project, features=wanted))
        assert (found.status, found.name, found.details) == (status, name, [{"message": message}]), wanted


def test_the_pattern_is_told_with_its_example(scene: Scene) -> None:
    """The main message names the pattern."""
    assert scene.refusal(body(project="named", features=[feature("New")])).message == PATTERN


def test_archived_features_do_not_count_for_the_limit(scene: Scene) -> None:
    """Features up to the limit are accepted, and archived ones do not count."""
    scene.load(body(project="small", features=[feature("gone", archived=True), feature("one"), feature("two")]))
    assert scene.refusal(body(project="small", features=[feature("three")])).message == FULL
    scene.load(body(project="small", features=[feature("one", archived=True), feature("three")]))
    assert [each["name"] for each in scene.export(project="small")["features"]] == ["three", "two"]


def test_nothing_is_checked_without_new_features(scene: Scene) -> None:
    """Empty data is imported, even for a project that is archived or missing."""
    for project in ("nowhere", "shelved"):
        scene.load(body(project=project))


def test_a_pattern_that_would_not_end_refuses_the_import(scene: Scene) -> None:
    """A name that cannot be checked is not imported. The answer says why and what to do; the time counts for the whole request."""
    names = [f"a{'a' * size}" for size in range(60, 90)]
    refusal = scene.refusal(body(project="frozen", features=[feature(name) for name in names]))
    assert (refusal.name, refusal.status) == ("PatternError", 400)
    assert refusal.details == [{"message": refusal.message}]
    assert refusal.message == (
        f'The feature flag name "{names[0]}" cannot be checked against the project\'s naming pattern "(?=a)(a|aa)+[bc]": '
        "it takes too long. To create this feature flag, use shorter names or fewer features at once, or have the "
        "pattern made simpler: it has repetition within repetition, look-ahead, look-behind or large counts."
    )


def test_a_pattern_that_is_too_large_refuses_the_import(scene: Scene) -> None:
    """The answer names the part of the pattern that is too large, its place, and its beginning."""
    refusal = scene.refusal(body(project="deep", features=[feature("a")]))
    assert refusal.message == (
        f'The feature flag name "a" cannot be checked against the project\'s naming pattern "{"(" * 200}…": '
        "its groups are nested more than 50 deep, at character 51. To create this feature flag, have the pattern made simpler."
    )
