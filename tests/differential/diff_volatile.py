"""Which toggles of a document have a random answer for a context: those two proxies need not agree on.

Said from the document alone and with caution: a toggle named here may be settled after all, one not named here is settled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
SETTLED = ("0", "100", 0, 100)


@dataclass(frozen=True)
class Volatile:
    """The toggles whose state is random, and those whose variant is (every one of the first is one of the second)."""

    states: frozenset[str]
    variants: frozenset[str]


def volatile(document: Json, present: frozenset[str], *, named: bool) -> Volatile:
    """Return what is random in `document` for a context with the fields `present`.

    A list answer makes up a session where there is none. What the proxies take for the caller's address is not random, but
    theirs to say: the address of the connection, which the reference writes in the IPv6 form.
    """
    look = _Look(document, present, named)
    features = {feature["name"]: feature for feature in document["features"]}
    own_states = {name for name, feature in features.items() if look.state(feature)}
    own_variants = {name for name, feature in features.items() if look.variant(feature)}
    shaky = own_states | own_variants
    below = {
        name
        for name, feature in features.items()
        if {parent["feature"] for parent in _list(feature, "dependencies")} & shaky
    }
    return Volatile(frozenset(own_states | below), frozenset(shaky | below))


class _Look:
    def __init__(self, document: Json, present: frozenset[str], named: bool) -> None:
        self.present = present
        self.named = named
        made_up = {"sessionId"} if not named else set()
        self.unsure = ({"remoteAddress"} | made_up) - present
        self.segments = {segment["id"]: segment for segment in _list(document, "segments")}

    def state(self, feature: Json) -> bool:
        """Return whether the toggle's being on is random by itself."""
        return any(self.strategy(strategy) for strategy in _list(feature, "strategies"))

    def strategy(self, strategy: Json) -> bool:
        """Return whether the outcome of a strategy is random."""
        kind, parameters = strategy["name"], strategy.get("parameters") or {}
        if any(each.get("contextName") in self.unsure for each in self.constraints(strategy)):
            return True
        if kind == "gradualRolloutRandom":
            return parameters.get("percentage") not in SETTLED
        if kind == "gradualRolloutSessionId":
            return "sessionId" in self.unsure and parameters.get("percentage") not in SETTLED
        if kind == "remoteAddress":
            return "remoteAddress" in self.unsure
        if kind == "flexibleRollout":
            return parameters.get("rollout") not in SETTLED and self.rollout(parameters.get("stickiness") or "default")
        return False

    def rollout(self, stickiness: str) -> bool:
        """Return whether a rollout that sticks to this field draws at random."""
        if stickiness == "default":
            return not self.present & {"userId", "sessionId"}
        return stickiness == "random" or stickiness in self.unsure

    def constraints(self, strategy: Json) -> list[Json]:
        """Return the constraints of a strategy and of its segments."""
        own = _list(strategy, "constraints")
        segments = [self.segments.get(number, {}) for number in _list(strategy, "segments")]
        return [*own, *(each for segment in segments for each in _list(segment, "constraints"))]

    def variant(self, feature: Json) -> bool:
        """Return whether the toggle's variant is random, given that it is on."""
        strategies = _list(feature, "strategies")
        return (
            self.state(feature)
            or self.draw(_list(feature, "variants"), {})
            or any(self.draw(_list(strategy, "variants"), strategy.get("parameters") or {}) for strategy in strategies)
        )

    def draw(self, variants: list[Json], parameters: Json) -> bool:
        """Return whether a draw among `variants` is random: by weight, or by an override for an unsure field."""
        fields = {override["contextName"] for variant in variants for override in _list(variant, "overrides")}
        if fields & self.unsure:
            return True
        if sum(1 for variant in variants if variant["weight"] > 0) < 2:
            return False
        stickiness = variants[0].get("stickiness") or parameters.get("stickiness")
        if stickiness in ("default", None):
            return not self.present & (
                {"userId", "sessionId", "remoteAddress"} if self.named else {"userId", "sessionId"}
            )
        return stickiness not in self.present


def _list(content: Json, key: str) -> list[Any]:
    found = content.get(key)
    return found if isinstance(found, list) else []
