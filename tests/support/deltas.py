"""A client of delta and streaming: the features and segments of an SDK, to which it applies events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from flagsvc.http.call import Call
from flagsvc.http.contract import Contract
from flagsvc.http.messages import Request, Response
from flagsvc.http.parts import Outlet, PartsResponse

PEER = "203.0.113.7"
Json = dict[str, Any]


class Twin:
    """The features by name and the segments by id."""

    def __init__(self, features: Iterable[Json] = (), segments: Iterable[Json] = ()) -> None:
        self.features = {each["name"]: each for each in features}
        self.segments = {each["id"]: each for each in segments}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Twin) and (self.features, self.segments) == (other.features, other.segments)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Twin({self.features}, {self.segments})"

    def copy(self) -> Twin:
        return Twin(self.features.values(), self.segments.values())

    def apply(self, body: str | bytes) -> list[str]:
        """Apply the events of an answer, in their order. Return their types."""
        events = json.loads(body)["events"]
        for event in events:
            match event["type"]:
                case "hydration":
                    fresh = Twin(event["features"], event["segments"])
                    self.features, self.segments = fresh.features, fresh.segments
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
        return [event["type"] for event in events]


class Listener(Outlet):
    """A caller with a stream that reads everything. `heard` has the name, the id and the types of each event so far.

    `twin` is what the events have made of nothing, and `known` the last id. A `full` caller does not read for a while.
    """

    def __init__(self, response: PartsResponse) -> None:
        self.parts = response.parts
        self.twin = Twin()
        self.text = ""
        self.known = ""
        self.full = False
        self.heard: list[tuple[str, str, list[str]]] = []
        self.parts.open(self)

    def write(self, data: bytes) -> None:
        assert not self.full
        self.text += data.decode()
        *events, self.text = self.text.split("\n\n")
        for event in events:
            fields = dict(line.split(": ", 1) for line in event.splitlines() if line[:1] != ":")
            self.known = fields.get("id", self.known)
            if "data" in fields:
                self.heard.append((fields["event"], fields["id"], self.twin.apply(fields["data"])))

    def is_full(self) -> bool:
        return self.full

    def end(self) -> None:
        self.parts.lose()

    @property
    def is_open(self) -> bool:
        return self.parts.outlet is not None


async def ask(contract: Contract, target: str, method: str = "GET", **headers: str | None) -> Response:
    """Return the response to a request without a body; hyphens of headers are written as `_`."""
    path, _, query = target.partition("?")
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items() if value is not None]
    admitted = contract.admit(Request(method.encode(), path.encode(), query.encode(), pairs, peer=PEER))
    if not isinstance(admitted, Call):
        return admitted
    answer = admitted.handler.answer(admitted, b"")
    return answer if isinstance(answer, Response) else await answer


async def listen(contract: Contract, target: str, **headers: str | None) -> Listener:
    response = await ask(contract, target, "GET", **headers)
    assert isinstance(response, PartsResponse), response.body
    return Listener(response)
