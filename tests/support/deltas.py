"""A client of delta: the features and segments of an SDK, to which it applies events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(init=False)
class Twin:
    """The features by name and the segments by id."""

    features: dict[str, Json] = field(default_factory=dict)
    segments: dict[int, Json] = field(default_factory=dict)

    def __init__(self, features: Iterable[Json] = (), segments: Iterable[Json] = ()) -> None:
        self.features = {each["name"]: each for each in features}
        self.segments = {each["id"]: each for each in segments}

    def copy(self) -> Twin:
        return Twin(self.features.values(), self.segments.values())

    def apply(self, body: bytes) -> None:
        """Apply the events of an answer, in their order."""
        for event in json.loads(body)["events"]:
            match event["type"]:
                case "hydration":
                    self.__init__(event["features"], event["segments"])  # type: ignore[misc]
                case "feature-updated":
                    self.features[event["feature"]["name"]] = event["feature"]
                case "feature-removed":
                    self.features.pop(event["featureName"], None)
                case "segment-updated":
                    self.segments[event["segment"]["id"]] = event["segment"]
                case "segment-removed":
                    self.segments.pop(event["segmentId"], None)
                case other:
                    raise AssertionError(other)
