"""Batch export: which features, and what comes with them (import validation 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flagsvc.http.shapes import check
from flagsvc.server.shapes.batch import EXPORT_QUERY
from flagsvc.server.store.batch.exporting import MAX_NAMES_IN_EVENT, export, record_export
from flagsvc.server.store.schema import events
from support.batch_scene import ADMIN, Json, Scene, body, depends, feature, linked, place, scene_of, strategy, tag, variant

LISTS = (
    *("features", "featureStrategies", "featureEnvironments", "contextFields", "featureTags"),
    *("segments", "tagTypes", "dependencies", "links"),
)
CONSTRAINT = {"contextName": "region", "operator": "IN", "values": ["eu"]}
WHOLE = body(
    features=[feature("b", type="experiment", description="words", impressionData=True, project="x"), feature("a"), feature("p")],
    featureStrategies=[
        strategy("b", "flexibleRollout", parameters={"stickiness": "tier"}, segments=[3], constraints=[CONSTRAINT]),
        strategy("b", variants=[variant("s", stickiness="unseen")], title="second", disabled=True),
    ],
    featureEnvironments=[
        place("b", enabled=True, variants=[variant("v", stickiness="plan", overrides=[{"contextName": "office", "values": ["x"]}])])
    ],
    featureTags=[tag("b", "blue", "team"), tag("a", "blue")],
    tagTypes=[{"name": "team", "description": "a team", "color": "#ffffff"}],
    segments=[{"id": 3, "name": "vip"}],
    contextFields=[{"name": name} for name in ("region", "tier", "unseen", "plan", "office")],
    dependencies=[depends("b", {"feature": "p", "enabled": False}), depends("b", {"feature": "a", "variants": ["v"]})],
    links=[linked("b", {"url": "example.com/2", "title": "two"}, {"url": "example.com/1"})],
)


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Give a database with something in it."""
    with scene_of(database_url) as found:
        found.seed(
            projects=[{"id": "default", "name": "Default"}, {"id": "other", "name": "Other"}],
            features=[{"name": "old", "project": "default", "archived": True}, {"name": "there", "project": "other"}],
            segments=[{"name": "vip", "constraints": []}, {"name": "unused", "constraints": []}],
        )
        found.load(WHOLE)
        yield found


def names(found: Json) -> list[str]:
    """Return the names of the features in an export."""
    return [each["name"] for each in found["features"]]


def test_what_is_selected(scene: Scene) -> None:
    """A query selects by tag, else by name, else by project; archived features only by name or tag; sorted by name.

    An empty list of features alone exports every active feature of every project.
    """
    cases: list[tuple[Json, list[str]]] = [
        ({"project": "default"}, ["a", "b", "p"]),
        ({"project": "other"}, ["there"]),
        ({"project": "nowhere"}, []),
        ({"features": ["b", "old", "nobody", "b"], "project": "other"}, ["b", "old"]),
        ({"features": [], "project": "other"}, ["there"]),
        ({"features": [], "project": None}, ["a", "b", "p", "there"]),
        ({"tag": "blue", "features": ["p"], "project": "other"}, ["a", "b"]),
        ({"tag": "team:blue"}, []),
        ({"tag": ""}, []),
        ({"environment": "nosuch"}, ["a", "b", "p"]),
    ]
    for query, expected in cases:
        assert names(scene.export(**query)) == expected, query
    with scene.store.reading() as tx:
        found = export(tx, check(EXPORT_QUERY, {"environment": "development", "features": []}))  # type: ignore[arg-type]
    assert names(found) == ["a", "b", "p", "there"]


def test_everything_of_a_feature_comes_with_it(scene: Scene) -> None:
    """An export has all nine lists, and each row has the members of the wire."""
    found = scene.export(features=["b"])
    assert tuple(found) == LISTS
    assert found["features"] == [
        {
            "name": "b",
            "description": "words",
            "type": "experiment",
            "project": "default",
            "stale": False,
            "impressionData": True,
            "archived": False,
        }
    ]
    first, second = found["featureStrategies"]
    assert first["parameters"] == {"rollout": "100", "stickiness": "tier", "groupId": "b"}
    assert first["segments"] == [each["id"] for each in found["segments"]]
    assert (second["title"], second["disabled"], second["segments"]) == ("second", True, [])
    assert "sortOrder" not in first
    (state,) = found["featureEnvironments"]
    assert (state["name"], state["featureName"], state["environment"], state["enabled"]) == ("b", "b", "development", True)
    assert [each["name"] for each in state["variants"]] == ["v"]


def test_only_what_is_used_comes_along(scene: Scene) -> None:
    """An export has only used segments, tag types, and context fields of the environment's strategies and variants.

    Variants of strategies do not count.
    """
    found = scene.export(features=["b"])
    assert [each["name"] for each in found["contextFields"]] == ["office", "plan", "region", "tier"]
    assert [each["name"] for each in found["segments"]] == ["vip"]
    assert found["tagTypes"] == [{"name": "team", "description": "a team", "icon": None, "color": "#ffffff"}]
    assert found["featureTags"] == [{"featureName": "b", "tagType": "team", "tagValue": "blue"}]


def test_dependencies_and_links(scene: Scene) -> None:
    """Dependencies and links are grouped by feature; links keep their order."""
    found = scene.export()
    assert found["dependencies"] == [
        {
            "feature": "b",
            "dependencies": [
                {"feature": "a", "enabled": True, "variants": ["v"]},
                {"feature": "p", "enabled": False, "variants": []},
            ],
        }
    ]
    (links,) = found["links"]
    assert [(each["url"], each["title"]) for each in links["links"]] == [
        ("https://example.com/2", "two"),
        ("https://example.com/1", None),
    ]


def test_an_environment_at_a_time(scene: Scene) -> None:
    """Another environment exports no strategies here; an empty name means all environments."""
    assert scene.export(environment="production")["featureStrategies"] == []
    everywhere = scene.export(environment="", features=["b"])
    assert [each["environment"] for each in everywhere["featureEnvironments"]] == ["development", "production"]


def test_owned_context_fields_say_so(scene: Scene) -> None:
    """A project's context field has the member `project`; a global one does not."""
    owned = {"contextName": "owned", "operator": "IN", "values": ["x"]}
    lists: dict[str, Any] = {"contextFields": [{"name": "owned", "project": "x", "sortOrder": 9}]}
    scene.load(body(features=[feature("a")], featureStrategies=[strategy("a", constraints=[owned])], **lists))
    (found,) = scene.export(features=["a"])["contextFields"]
    assert found == {
        "name": "owned",
        "description": None,
        "stickiness": False,
        "sortOrder": 0,
        "legalValues": [],
        "project": "default",
    }
    assert "project" not in scene.export(features=["b"])["contextFields"][0]


def test_an_export_is_noted_without_a_change(scene: Scene) -> None:
    """The event has the first names and the actor; the revision does not change, so no document is rebuilt."""
    before = scene.store.revision()
    result = scene.export()
    names = [each["name"] for each in result["features"]]
    many = {**result, "features": [*result["features"], *({"name": f"x{number}"} for number in range(MAX_NAMES_IN_EVENT))]}
    names += [each["name"] for each in many["features"][len(names) :]]
    with scene.store.recording(ADMIN) as tx:
        record_export(tx, many)
    with scene.store.reading() as tx:
        row = tx.db.execute(events.select().order_by(events.c.id.desc())).first()
    assert row is not None
    assert (row.type, row.created_by, row.data) == ("features-exported", "boss", {"features": names[:MAX_NAMES_IN_EVENT]})
    assert scene.store.revision() == before
