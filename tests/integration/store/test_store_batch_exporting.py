"""Batch export: which features, and what comes with them (import validation 7)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flagsvc.http.shapes import check
from flagsvc.server.shapes.batch import EXPORT_QUERY
from flagsvc.server.store.batch.exporting import MAX_NAMES_IN_EVENT, export, record_export
from flagsvc.server.store.schema import events
from support.batch_scene import ADMIN, Json, Scene, body, depends, feature, linked, place, scene_of, strategy, tag, variant

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
