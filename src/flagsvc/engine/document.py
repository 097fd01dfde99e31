"""A configuration document that delta events change.

The events are those of the client specification's delta suites: `hydration` replaces everything, `feature-updated` and
`segment-updated` replace or append one object, `feature-removed` and `segment-removed` remove one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flagsvc.core.errors import DocumentError
from flagsvc.engine.parse import identity, name_of, scalar
from flagsvc.engine.reading import as_list, as_object, wrong


class DocumentBuilder:
    """Holds features by name and segments by id, in order of arrival.

    Takes a full document (`features`, `segments`) or a delta document (`events`). Raises DocumentError for anything else. An
    event that cannot be applied raises an error and changes nothing.
    """

    def __init__(self, document: object | None = None) -> None:
        self.features: dict[str, object] = {}
        self.segments: dict[str, object] = {}
        if document is not None:
            self.take(as_object(document, ""))

    def take(self, document: dict[str, object]) -> None:
        """Apply the events of a delta document in order, or replace everything by a full document."""
        if "events" not in document:
            self.hydrate(document)
            return
        for at, event in enumerate(as_list(document, "events", "")):
            self.apply(event, f"events[{at}]")

    def apply(self, raw: object, path: str = "event") -> None:
        """Apply one event. Raises DocumentError for an unknown type or a wrong shape."""
        event = as_object(raw, path)
        kind = event.get("type")
        handler = EVENTS.get(kind) if isinstance(kind, str) else None
        if handler is None:
            raise DocumentError(f"{path}.type", f"must be one of {', '.join(EVENTS)}, is `{kind}`")
        handler(self, event, path)

    def document(self) -> dict[str, object]:
        return {"version": 2, "features": list(self.features.values()), "segments": list(self.segments.values())}

    def hydrate(self, event: dict[str, object], path: str = "") -> None:
        """Replace everything by the features and segments of a document."""
        if not isinstance(event.get("features"), list):
            raise DocumentError(f"{path}.features" if path else "features", wrong("a list", event.get("features")))
        named = enumerate(as_list(event, "features", path))
        features = {feature_name(item, f"features[{at}]"): item for at, item in named}
        numbered = enumerate(as_list(event, "segments", path))
        segments = {segment_id(item, f"segments[{at}]"): item for at, item in numbered}
        self.features = features
        self.segments = segments

    def update_feature(self, event: dict[str, object], path: str) -> None:
        """Replace a feature, or append it."""
        self.features[feature_name(event.get("feature"), f"{path}.feature")] = event.get("feature")

    def remove_feature(self, event: dict[str, object], path: str) -> None:
        self.features.pop(scalar(event.get("featureName"), f"{path}.featureName"), None)

    def update_segment(self, event: dict[str, object], path: str) -> None:
        """Replace a segment, or append it."""
        self.segments[segment_id(event.get("segment"), f"{path}.segment")] = event.get("segment")

    def remove_segment(self, event: dict[str, object], path: str) -> None:
        self.segments.pop(identity(event.get("segmentId"), f"{path}.segmentId"), None)


def feature_name(raw: object, path: str) -> str:
    """Return a feature's name. A feature without a name is kept under its path, and compiling reports it."""
    name = name_of(raw) if isinstance(raw, dict) else ""
    return name or f"\0{path}"


def segment_id(raw: object, path: str) -> str:
    """Return a segment's identity. A segment without an identity is kept under its path, and compiling reports it."""
    try:
        return identity(as_object(raw, path).get("id"), path)
    except DocumentError:
        return f"\0{path}"


EVENTS: Final[dict[str, Callable[[DocumentBuilder, dict[str, object], str], None]]] = {
    "hydration": DocumentBuilder.hydrate,
    "feature-updated": DocumentBuilder.update_feature,
    "feature-removed": DocumentBuilder.remove_feature,
    "segment-updated": DocumentBuilder.update_segment,
    "segment-removed": DocumentBuilder.remove_segment,
}
"""Type of a delta event → the function that applies it."""
