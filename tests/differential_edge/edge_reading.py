"""What a request says to each of the two proxies, and what ours makes of a single flag."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

import edge_values
from diff_requests import Question
from edge_documents import is_list
from edge_pair import HOST_NAME, OWN_NAME

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import FIELDS, Context
from flagsvc.proxy.api.body import read_lenient_lookup
from flagsvc.proxy.api.query import read_lenient_query

Json: TypeAlias = dict[str, Any]


class Form(NamedTuple):
    """A difference that is meant: what ours writes, why, where that is written, and the change of a toggle of Edge to ours."""

    name: str
    reason: str
    source: str
    change: Callable[[Json], Json]


def with_state(toggle: Json) -> Json:
    """Return a toggle whose variant has the state of the flag, under both names."""
    state = {"feature_enabled": toggle["enabled"], "featureEnabled": toggle["enabled"]}
    return toggle | {"variant": toggle["variant"] | state}


def without_null(toggle: Json) -> Json:
    """Return a toggle whose variant has no payload that is null."""
    variant = {name: each for name, each in toggle["variant"].items() if (name, each) != ("payload", None)}
    return toggle | {"variant": variant}


FORMS: tuple[Form, ...] = (
    Form(
        "a variant has the state of its flag",
        "as at the real server; Edge leaves it to the SDKs",
        "dialects: Answers of the frontend API",
        with_state,
    ),
    Form(
        "a variant without a payload has no such member",
        "as at the real server; Edge writes null",
        "dialects: Answers of the frontend API",
        without_null,
    ),
)


def as_ours(toggle: Json) -> tuple[Json, list[str]]:
    """Return a toggle of Edge as ours writes it, and the names of the rows that changed it."""
    changed = toggle
    names = []
    for form in FORMS:
        before, changed = changed, form.change(changed)
        names += [form.name] * (before != changed)
    return changed, names


ATTRIBUTES = {
    "userId": "user_id",
    "sessionId": "session_id",
    "appName": "app_name",
    "environment": "environment",
    "remoteAddress": "remote_address",
}
"""Standard field → attribute of a context. The time is not one of them: ours keeps no text of it."""
PEER = "127.0.0.1"
INSIDE = "properties["
MOST_NAMES = 100
OPTIONS = CompileOptions(hash_encoding="utf8", hostname=HOST_NAME)
ROUGHLY: dict[float, float] = {123456789012345680000: 1.2345678901234567e20}
"""Large number → the different number that Edge reads."""


class Given(NamedTuple):
    """One value of a request: its name, whether it stands in `properties`, and its JSON value."""

    name: str
    is_property: bool
    value: Any


def given_in(question: Question) -> list[Given]:
    """Return the values of a request, in their order."""
    if question.body is not None:
        context = json.loads(question.body)["context"]
        flat = [Given(name, False, value) for name, value in context.items() if name != "properties"]
        return [*flat, *(Given(name, True, value) for name, value in context.get("properties", {}).items())]
    pairs = parse_qsl(question.target.partition("?")[2], keep_blank_values=True)
    return [
        Given(name[len(INSIDE) : -1], True, value) if name.startswith(INSIDE) else Given(name, False, value)
        for name, value in pairs
    ]


def our_context(question: Question) -> Context:
    if question.body is not None:
        context = read_lenient_lookup(json.loads(question.body), MOST_NAMES).context
    else:
        context = read_lenient_query(question.target.partition("?")[2].encode())
    context.app_name = context.app_name or OWN_NAME
    context.environment = context.environment or "default"
    context.remote_address = context.remote_address or PEER
    if is_list(question):
        context.session_id = context.session_id or "some session"
    context.now = time.time() * 1000.0
    return context


class EdgeContext(NamedTuple):
    """What Edge reads: standard fields, and properties."""

    standard: dict[str, str]
    properties: dict[str, str]


def edge_context(question: Question) -> EdgeContext:
    """Return the context that Edge evaluates: a value that is given twice counts as missing, and a plain text wins."""
    values: dict[tuple[str, bool], Any] = {}
    for each in given_in(question):
        place = (each.name, each.is_property)
        values[place] = None if place in values else each.value
    plain = {name: value for (name, is_property), value in values.items() if not is_property}
    standard = {name: text for name, value in plain.items() if name in FIELDS and (text := edge_text(value)) is not None}
    inside = {name: text for (name, is_inside), value in values.items() if is_inside and (text := edge_text(value)) is not None}
    texts = {name: value for name, value in plain.items() if name not in FIELDS and isinstance(value, str)}
    return EdgeContext({"remoteAddress": PEER} | standard, inside | texts)


def edge_text(value: Any) -> str | None:
    """Return a JSON value as the text that Edge makes of it; None for null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and -(2**63) <= value < edge_values.TOO_LARGE:
        return str(value)
    if isinstance(value, int | float):
        digits, mark, power = repr(ROUGHLY.get(value, float(value))).partition("e")
        return f"{digits}e{int(power):+d}" if mark else digits
    return value if isinstance(value, str) else None


def agreed(question: Question) -> frozenset[str]:
    """Return the fields that have a value for both proxies."""
    theirs, mine = edge_context(question), our_context(question)
    texts = theirs.standard | theirs.properties
    return frozenset(name for name, text in texts.items() if text and mine.get(name))


class Outcome(NamedTuple):
    """What an answer says of a flag."""

    is_on: bool
    variant: str
    has_variant: bool
    payload: tuple[str, str] | None
    impression: bool


def outcome_of(toggle: Json) -> Outcome:
    variant, payload = toggle["variant"], toggle["variant"].get("payload")
    told = (payload["type"], payload["value"]) if payload else None
    return Outcome(toggle["enabled"], variant["name"], variant["enabled"], told, toggle["impressionData"])


@dataclass(frozen=True, eq=False)
class Case:
    """A flag with all that its answer depends on: its parents, the segments, the context, and the request itself."""

    name: str
    features: Mapping[str, Json]
    segments: Mapping[int, Json]
    context: Context
    question: Question

    def evaluate(self, name: str = "") -> Outcome:
        """Return what ours makes of the flag, or of a parent of this name."""
        document = {"version": 2, "features": list(self.features.values()), "segments": list(self.segments.values())}
        toggles = json.loads(compile_document(document, OPTIONS).snapshot.all(self.context))["toggles"]
        return next(outcome_of(each) for each in toggles if each["name"] == (name or self.name))

    def is_like(self, other: Case) -> bool:
        """Return whether another case of the same question reads the same."""
        same = (self.features, self.segments) == (other.features, other.segments)
        return same and self.context.as_dict() == other.context.as_dict()

    def field(self, name: str) -> str | None:
        """Return a field of the context where Edge looks for it."""
        if name == "currentTime":
            return edge_context(self.question).standard.get(name) or edge_values.now()
        if name in ATTRIBUTES:
            found: str | None = getattr(self.context, ATTRIBUTES[name])
            return found
        return self.context.properties.get(name)

    def constraints_of(self, strategy: Json) -> list[Json]:
        """Return the constraints of a strategy and of its segments."""
        segments = [self.segments.get(each, {}) for each in strategy.get("segments") or ()]
        return [each for holder in (strategy, *segments) for each in holder.get("constraints") or ()]

    def with_features(self, change: Callable[[Json], Json]) -> Case:
        return replace(self, features={name: change(each) for name, each in self.features.items()})


def case_of(document: Json, question: Question, name: str) -> Case:
    """Return the case of a flag. Of several features or segments of a name, the last one counts."""
    features = {each["name"]: each for each in document["features"]}
    parents = [each["feature"] for each in features[name].get("dependencies") or ()]
    kept = {each: features[each] for each in (*parents, name) if each in features}
    segments = {each["id"]: each for each in document.get("segments") or ()}
    return Case(name, kept, segments, our_context(question), question)
