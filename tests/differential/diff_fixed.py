"""Questions that every run asks once: those whose answer is a status, and forms that random questions do not take.

Which toggles of a document have a random answer for a context: those two proxies need not agree on.

Said from the document alone and with caution: a toggle named here may be settled after all, one not named here is settled.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import Any

from diff_requests import Question

from support import processes


def question(method: str, target: str, body: Any = None, **more: Any) -> Question:
    """Return a question that is sent alone; a body that is not bytes is sent as JSON."""
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    return Question(method, target, content, alone=True, **more)


def with_key(key: str, method: str = "GET", target: str = "", body: Any = None, **more: Any) -> Question:
    """Return a question that carries this key."""
    return question(method, target, body, key=key, **more)


def with_type(content_type: str | None, body: bytes = b"{}", *headers: str) -> Question:
    """Return a POST whose body is declared to be of a type."""
    return question("POST", "", body, content_type=content_type, headers=headers)


BUCKET = {"start": "2026-01-01T00:00:00.000Z", "stop": "2026-01-01T00:01:00.000Z"}
USAGE = {"appName": "a", "instanceId": "b", "bucket": {**BUCKET, "toggles": {"x": {"yes": 1, "no": 2, "variants": {"v": 1}}}}}
REGISTRATION = {"appName": "a", "interval": 1000, "started": BUCKET["start"], "strategies": ["default"]}


def usage(**changes: Any) -> dict[str, Any]:
    """Return a report of usage with some fields changed, or left out where they are None."""
    return {name: value for name, value in {**USAGE, **changes}.items() if value is not None}


def registration(**changes: Any) -> dict[str, Any]:
    """Return a registration with some fields changed, or left out where they are None."""
    return {name: value for name, value in {**REGISTRATION, **changes}.items() if value is not None}


KEYS = [
    *(with_key(key) for key in ("", "wrong", f" {processes.KEY} ", processes.KEY.upper(), processes.SERVER_SIDE_TOKEN)),
    *(with_key("wrong", "POST", target) for target in ("", "/all")),
    with_key("wrong", "POST", "/client/metrics", body=USAGE),
    with_key("wrong", "POST", "/client/register", body=REGISTRATION),
    *(with_key(key, target="/client/features") for key in ("", processes.KEY, processes.SERVER_SIDE_TOKEN)),
    *(with_key("", target=target) for target in ("/health", "/internal-backstage/prometheus", "/all")),
    with_key("", headers=("If-None-Match: *",)),
]
METHODS = [
    *(question(method, target) for method in ("HEAD", "OPTIONS") for target in ("", "/all", "/health", "/client/features")),
    *(question("OPTIONS", target, key="") for target in ("", "/unknown")),
    *(question("GET", target) for target in ("/", "/?userId=1", "/all/", "/health/", "/ALL", "/Health")),
    *(question("GET", "", base=base) for base in ("/PROXY", "/Proxy", "/proxy/")),
    question("GET", "", headers=("If-None-Match: *",)),
    question("GET", "?userId=1", headers=('If-None-Match: "other", W/"more"',)),
]
BODIES = [
    *(with_type(kind) for kind in (None, "application/json; charset=utf-8", "APPLICATION/JSON", "application/json;charset=UTF-8")),
    *(
        with_type(kind)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x", "*/*")
    ),
    *(with_type(kind) for kind in ("application/vnd.api+json", "application/json-patch+json", "text/json", "application/jsonx")),
    *(with_type(f"application/json; charset={charset}") for charset in ("utf-16", "")),
    with_type("application/json", gzip.compress(b"{}"), "Content-Encoding: gzip"),
    with_type("application/json", b"{}", "Content-Encoding: identity"),
    with_type("application/json", "{}".encode("utf-16"), "Content-Encoding: identity"),
    question("POST", ""),
    question("POST", "/all"),
]
REPORTS = [
    *(question("POST", target, usage()) for target in ("/client/metrics", "/all/client/metrics")),
    question("POST", "/client/metrics", usage(appName=None)),
    *(  # type: ignore[var-annotated]
        question("POST", "/client/metrics", usage(bucket=bucket)) for bucket in ({}, [], "x", BUCKET, {**BUCKET, "toggles": []})
    ),
    question("POST", "/client/metrics", usage(bucket={**BUCKET, "start": "yesterday", "toggles": {}})),
    question("POST", "/client/metrics", usage(extra=1, environment="x")),
    question("POST", "/client/register", registration()),
    *(question("POST", "/client/register", registration(**{name: None})) for name in REGISTRATION),
    *(  # type: ignore[var-annotated]
        question("POST", "/client/register", body) for body in ({}, [], registration(strategies="x"), registration(interval="x"))
    ),
]
QUESTIONS: tuple[Question, ...] = (*KEYS, *METHODS, *BODIES, *REPORTS)


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
    below = {name for name, feature in features.items() if {parent["feature"] for parent in _list(feature, "dependencies")} & shaky}
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
            return not self.present & ({"userId", "sessionId", "remoteAddress"} if self.named else {"userId", "sessionId"})
        return stickiness not in self.present


def _list(content: Json, key: str) -> list[Any]:
    found = content.get(key)
    return found if isinstance(found, list) else []
