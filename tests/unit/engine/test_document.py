"""A document that delta events change."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.core.errors import DocumentError
from flagsvc.engine.document import DocumentBuilder


def named(name: str, **more: Any) -> dict[str, Any]:
    """Return a feature."""
    return {"name": name, **more}


FULL = {"version": 2, "features": [named("a"), named("b")], "segments": [{"id": 1}, {"id": "1"}]}


def names(builder: DocumentBuilder) -> list[object]:
    """Return the names of the features, in order."""
    features = builder.document()["features"]
    assert isinstance(features, list)
    return [feature["name"] for feature in features]


def test_a_full_document_stays_what_it_is() -> None:
    """Features and segments come out in their order, also those without a name, of which compiling complains."""
    assert DocumentBuilder(FULL).document() == FULL
    assert DocumentBuilder().document() == {"version": 2, "features": [], "segments": []}
    odd = {"features": [5, {"name": None}], "segments": [{"id": None}, 7]}
    assert DocumentBuilder(odd).document() == {"version": 2, **odd}


def test_events_apply_in_turn() -> None:
    """hydration replaces all, updates keep their place, new ones go to the end, removals take away."""
    builder = DocumentBuilder({"events": [{"type": "hydration", **FULL}]})
    builder.apply({"type": "feature-updated", "feature": named("a", enabled=True)})
    builder.apply({"type": "feature-updated", "feature": named("c")})
    builder.apply({"type": "feature-removed", "featureName": "b"})
    builder.apply({"type": "feature-removed", "featureName": "never there"})
    builder.apply({"type": "segment-updated", "segment": {"id": 1, "name": "new"}})
    builder.apply({"type": "segment-removed", "segmentId": "1"})
    assert builder.document() == {
        "version": 2,
        "features": [named("a", enabled=True), named("c")],
        "segments": [{"id": 1, "name": "new"}],
    }


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (5, "event: must be an object, is a number"),
        ({}, "event.type: must be one of hydration, feature-updated, feature-removed, segment-updated, segment-removed, is `None`"),
        ({"type": "other"}, "event.type: must be one of"),
        ({"type": "hydration"}, "event.features: must be a list, is missing"),
        ({"type": "hydration", "features": [], "segments": 5}, "event.segments: must be a list, is a number"),
        ({"type": "feature-removed"}, "event.featureName: must be a text, a number, true or false, is missing"),
        ({"type": "segment-removed"}, "event.segmentId: must be a number or a text, is missing"),
    ],
)
def test_an_event_that_cannot_be_applied_changes_nothing(event: object, message: str) -> None:
    """The event raises an error with its place, and the document stays unchanged."""
    builder = DocumentBuilder(FULL)
    with pytest.raises(DocumentError) as caught:
        builder.apply(event)
    assert str(caught.value).startswith(message)
    assert builder.document() == FULL


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (5, "must be an object, is a number"),
        ({}, "features: must be a list, is missing"),
        ({"events": 5}, "events: must be a list, is a number"),
        ({"events": [5]}, "events[0]: must be an object, is a number"),
    ],
)
def test_a_document_that_is_neither_full_nor_delta_is_refused(document: object, message: str) -> None:
    """The error names the place."""
    with pytest.raises(DocumentError) as caught:
        DocumentBuilder(document)
    assert str(caught.value) == message


def test_a_number_as_a_name_is_the_text_in_events() -> None:
    """A feature with a number as its name is replaced and removed by the number or by its text."""
    builder = DocumentBuilder({"features": [{"name": 7, "enabled": False}, {"name": "a"}]})
    builder.apply({"type": "feature-updated", "feature": {"name": 7, "enabled": True}})
    assert builder.document()["features"] == [{"name": 7, "enabled": True}, {"name": "a"}]
    builder.apply({"type": "feature-removed", "featureName": "7"})
    assert builder.document()["features"] == [{"name": "a"}]
