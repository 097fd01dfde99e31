"""Batch import: what is refused before anything is written, and which events it writes (import validation 6; 6.1; 6.2; 6.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import insert

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.facts import CheckedDataSet
from flagsvc.server.store.errors import BAD_DATA
from flagsvc.server.store.schema import state
from support.batch_scene import (
    ADMIN,
    EDITOR,
    VIEWER,
    Json,
    Scene,
    body,
    depends,
    feature,
    linked,
    place,
    scene_of,
    strategy,
    tag,
    variant,
    without_ids,
)

GIVEN: dict[str, Any] = {
    "projects": [{"id": "default", "name": "Default"}, {"id": "other", "name": "Other"}],
    "features": [
        {"name": "here", "project": "default"},
        {"name": "gone", "project": "default", "archived": True},
        {"name": "there", "project": "other"},
    ],
    "contextFields": [{"name": "tier", "legalValues": [{"value": "free"}]}],
    "segments": [{"name": "vip", "constraints": []}, {"name": "theirs", "constraints": [], "project": "other"}],
}


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Give a database with something in it."""
    with scene_of(database_url) as found:
        found.seed(**GIVEN)
        yield found


WRONG_TIER = {"name": "tier", "legalValues": [{"value": "paid"}]}
CHECKS: list[tuple[Json, str, list[str]]] = [
    (
        {"featureStrategies": [strategy("here", "x"), strategy("here", "y"), strategy("here", "x")]},
        "Refer to the `details` list",
        ["x is not supported.", "y is not supported.", "x is not supported."],
    ),
    ({"contextFields": [WRONG_TIER]}, "Refer to the `details` list", ["tier is not supported."]),
    ({"features": [feature("there")]}, BAD_DATA, ["These features exist already in other projects: there (in project other)"]),
    ({"segments": [{"id": 1, "name": "theirs"}, {"id": 2, "name": "s"}]}, BAD_DATA, ["Unsupported segments: theirs, s"]),
    ({"dependencies": [depends("here", "p", "q")]}, BAD_DATA, ["The following dependent features are missing: p, q"]),
]


def test_each_check_answers(scene: Scene) -> None:
    """Each check has its message, and a refusal stores nothing."""
    for lists, message, details in CHECKS:
        found = scene.refusal(body(**lists))
        assert (found.name, found.status) == ("BadDataError", 400)
        assert message in found.message
        assert [each["message"] for each in found.details] == details


def test_the_first_check_answers(scene: Scene) -> None:
    """If every check would fail, the first one of the contract gives the error."""
    left = {name: entries for lists, *_ in CHECKS for name, entries in lists.items()}
    order = ["x is not", "tier is not", "You don't have", "These features", "Unsupported segments", "The following dependent"]
    fixes: list[tuple[str, Actor]] = [("", VIEWER), ("featureStrategies", VIEWER), ("contextFields", VIEWER), ("", ADMIN)]
    fixes += [("features", ADMIN), ("segments", ADMIN)]
    for (fixed, actor), expected in zip(fixes, order, strict=True):
        left.pop(fixed, None)
        found = scene.refusal(body(**left), actor)
        assert expected in found.details[0]["message"]


def test_missing_permissions_are_named(scene: Scene) -> None:
    """The error names one missing permission; of several, it says that one permission is enough."""
    start = "You don't have the required permissions to perform this operation. To perform this action, you need "
    one = scene.refusal(body(features=[feature("here")]), VIEWER)
    assert (one.name, one.status) == ("PermissionError", 403)
    assert one.message == f'{start}the "Update feature flags" permission.'
    two = scene.refusal(body(features=[feature("new")]), VIEWER)
    assert two.message == f'{start}one of the following permissions: "Create feature flags", "Update feature flags".'


def test_what_is_cleaned_is_not_checked(scene: Scene) -> None:
    """Unknown strategies of archived features, and of features that do not exist, are removed before the checks."""
    scene.load(
        body(
            features=[feature("gone", description="x")],
            featureStrategies=[strategy("gone", "unknown"), {"name": "unknown"}],
            featureEnvironments=[place("gone", enabled=True), {"name": "nobody", "enabled": True}],
            featureTags=[tag("gone", "some")],
            tagTypes=[{"name": "unused"}],
        )
    )
    (found,) = scene.export(features=["gone"])["features"]
    assert found["archived"] is True
    assert found["description"] is None
    assert scene.export(features=["gone"])["featureTags"] == []
    assert scene.events()[-1] == ("features-imported", None)


def test_a_link_of_an_archived_feature_is_refused(scene: Scene) -> None:
    """Links of archived features are not removed before the checks, so the import is refused."""
    found = scene.refusal(body(features=[feature("gone")], links=[linked("gone", {"url": "x.com"})]))
    assert (found.status, found.message) == (404, "Could not find feature with name gone")


WHOLE = body(
    features=[feature("a", description="d", project="from"), feature("b")],
    featureStrategies=[strategy("a", "flexibleRollout", segments=[5]), strategy("b")],
    featureEnvironments=[place("a", enabled=True, variants=[variant("v")]), place("b")],
    featureTags=[tag("a", "blue", "team")],
    tagTypes=[{"name": "team"}],
    contextFields=[{"name": "fresh"}],
    segments=[{"id": 5, "name": "vip"}],
    dependencies=[depends("a", "b")],
    links=[linked("a", {"url": "example.com", "title": "t"})],
)
TOLD = [
    ("feature-created", "a"),
    ("feature-created", "b"),
    ("feature-environment-variants-updated", "a"),
    ("tag-type-created", None),
    ("tag-created", None),
    ("feature-tagged", "a"),
    ("context-field-created", None),
    ("feature-link-added", "a"),
    ("feature-strategy-add", "a"),
    ("feature-strategy-add", "b"),
    ("feature-environment-enabled", "a"),
    ("feature-dependency-added", "a"),
    ("features-imported", None),
]


def test_an_import_tells_what_it_did(scene: Scene) -> None:
    """Each new object has its event, in the order of the steps; a second import writes events only for strategies.

    An import of any size makes one revision.
    """
    before = scene.store.revision()
    scene.load(WHOLE)
    assert (scene.events(), scene.store.revision()) == (TOLD, before + 1)
    first = scene.export()
    scene.load(WHOLE)
    gone = [("feature-strategy-remove", "a"), ("feature-strategy-remove", "b")]
    again = [*gone, ("feature-strategy-add", "a"), ("feature-strategy-add", "b"), ("features-imported", None)]
    assert scene.events()[len(TOLD) :] == again
    second = scene.export()
    assert without_ids(second) == without_ids(first)
    assert {each["id"] for each in first["featureStrategies"]}.isdisjoint(each["id"] for each in second["featureStrategies"])


def test_empty_data_tells_that_it_was_imported(scene: Scene) -> None:
    """Empty data is imported, even into a project that does not exist, and writes its event."""
    scene.load(body(project="nowhere", environment="nosuch"))
    assert scene.events() == [("features-imported", None)]


@pytest.mark.parametrize("request_of", ["featureStrategies", "featureEnvironments", "dependencies"])
def test_where_changes_must_be_requested(scene: Scene, request_of: str) -> None:
    """Where change requests are on, no user can import strategies. Only users who may skip them import states and dependencies."""
    with scene.store.writing(None) as tx:
        places = [{"project": "default", "environment": "development"}]
        tx.db.execute(insert(state).values(key="changeRequests", value=places))
    lists = {
        "featureStrategies": [strategy("here")],
        "featureEnvironments": [place("here")],
        "dependencies": [depends("new", "here")],
    }
    request = body(features=[feature("new", project="default")], **{request_of: lists[request_of]})  # type: ignore[arg-type]
    found = scene.refusal(request, EDITOR)
    assert (found.status, '"SKIP_CHANGE_REQUEST"' in found.message) == (403, True)
    if request_of == "featureStrategies":
        assert scene.refusal(request, ADMIN).message == found.message
        scene.load(request | {"environment": "production"}, EDITOR)
    else:
        scene.load(request, ADMIN)
    scene.load(body(features=[feature("here", description="x")]), EDITOR)


def test_a_large_import_takes_few_statements(scene: Scene) -> None:
    """Rows are written in bulk: a hundred times as many features need only a few times the statements."""

    def statements(prefix: str, count: int) -> int:
        names = [f"{prefix}{number}" for number in range(count)]
        request = body(
            features=[feature(name) for name in names],
            featureStrategies=[strategy(name) for name in names for _ in range(3)],
            featureEnvironments=[place(name, enabled=True) for name in names],
            featureTags=[tag(name, "blue") for name in names],
            links=[linked(name, {"url": "example.com"}) for name in names],
        )
        return scene.counted(lambda: scene.load(request))

    assert statements("more", 1000) <= statements("few", 10) + 20


def test_events_of_an_import_are_bounded(scene: Scene) -> None:
    """Each event of a flag holds all its tags and parents: a thousand of them at once would store a million."""
    many = [f"many-{number}" for number in range(1000)]
    scene.load(body(features=[feature(each) for each in many]))
    tagged = body(features=[feature("new")], featureTags=[tag("new", each) for each in many])
    assert "would hold 1,001,000 tags" in scene.refusal(tagged).message
    depending: Json = {"features": [feature("new", project="default")], "dependencies": [depends("new", *many)]}
    assert "too many parents" in scene.refusal(body(**depending)).message
    once_more = depends("new", *many[:10], *[many[0]] * 1000)
    scene.load(body(**depending | {"dependencies": [once_more]}))


def test_an_import_sends_as_many_statements_for_many_entries_as_for_few(scene: Scene) -> None:
    """Context fields and dependencies are read and written together."""

    def attempt(prefix: str, count: int) -> int:
        names = [f"{prefix}-{number}" for number in range(count)]
        fields = [{"name": each} for each in names]
        flags = [feature(each, project="default") for each in names]
        parents = [depends(each, "here") for each in names]
        request = body(features=flags, contextFields=fields, dependencies=parents)
        return scene.counted(lambda: scene.attempt(request))

    assert attempt("many", 300) == attempt("few", 3)


class Counted(str):
    """A name that counts how often names are compared with it."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


def test_archived_flags_are_not_searched_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import of many archived flags looks each of them up: the time is linear."""
    names = [f"gone-{number}" for number in range(1000)]
    scene.load(body(features=[feature(each, archived=True) for each in names]))
    monkeypatch.setattr(CheckedDataSet, "archived", [Counted(each) for each in names])
    scene.load(body(features=[feature(each) for each in names]))
    assert Counted.compared < 10 * len(names)
