"""Generators for the property test of entity tags: configurations, requests, custom strategies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from urllib.parse import urlencode

from hypothesis import strategies as st

from flagsvc import ContextView
from flagsvc.http.messages import Request

# ---- configurations

STANDARD = ("appName", "environment", "userId", "sessionId", "remoteAddress", "currentTime", "properties")
FIELDS = (*STANDARD, "region", "plan", "random")
STICKINESS = ("default", "random", *FIELDS)
TEXTS = (*("", "", "", "1", "1", "1", "2", "2", "eu", "1.2.3", "192.0.2.1", "2026-01-01", "\0", "a\0b", "ü"), "[object Object]")
MOMENTS = ("2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z")
TIMES = tuple(float(base + step) for base in (1767225600000, 1780272000000) for step in (-1, 0, 1))
"""Just before, at and just after each of the moments, in epoch milliseconds."""


class FieldReadingStrategy:
    """A custom strategy that keeps its declarations: it reads one field, and perhaps a random number."""

    def __init__(self, name: str, pure: bool, reads: frozenset[str] | None, seed: int) -> None:
        self.name = name
        self.pure = pure
        self.reads = reads
        self.random = Random(seed)

    def is_enabled(self, parameters: Mapping[str, str], context: ContextView) -> object:
        """Return whether a field has one of half of its values. Without a declaration, a random number decides too."""
        if "raise" in parameters and parameters["raise"] == context.get("region"):
            raise ValueError("bad luck")
        field = "region" if self.reads is not None else parameters.get("field", "plan")
        seen = sum((context.get(field) or "-").encode()) % 2 == 0
        return seen if self.pure else seen ^ (context.now % 2 == 0) ^ (self.random.random() < 0.5)


def custom(seed: int) -> dict[str, FieldReadingStrategy]:
    """Return custom strategies that promise everything, something and nothing."""
    region = frozenset({"region"})
    ways = (("declared", True, region), ("pure", True, None), ("reads", False, region), ("wild", False, None))
    return {name: FieldReadingStrategy(name, pure, reads, seed) for name, pure, reads in ways}


texts = st.sampled_from(TEXTS)
fields = st.sampled_from(FIELDS)
shares = st.sampled_from(["0", "30", "50", "70", "100"])


def rare(often: st.SearchStrategy[Any], seldom: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw `seldom` rarely, because one volatile part makes the whole configuration volatile."""
    return st.integers(0, 11).flatmap(lambda number: seldom if number == 0 else often)


constraints = st.one_of(
    st.fixed_dictionaries(
        {
            "contextName": fields,
            "operator": st.sampled_from(["IN", "NOT_IN", "STR_CONTAINS", "STR_STARTS_WITH"]),
            "values": st.lists(texts, max_size=3),
            "inverted": st.booleans(),
        }
    ),
    st.fixed_dictionaries(
        {
            "contextName": fields,
            "operator": st.sampled_from(["NUM_GT", "SEMVER_EQ", "REGEX"]),
            "value": st.sampled_from(["1", "1.2.3"]),
        }
    ),
    st.fixed_dictionaries(
        {"contextName": fields, "operator": st.sampled_from(["DATE_AFTER", "DATE_BEFORE"]), "value": st.sampled_from(MOMENTS)}
    ),
    st.fixed_dictionaries({"contextName": fields, "operator": st.just("IN_CIDR"), "values": st.just(["192.0.2.0/24"])}),
)
flexible = st.fixed_dictionaries(
    {
        "rollout": shares,
        "groupId": st.sampled_from(["a", "b"]),
        "stickiness": rare(st.sampled_from([each for each in STICKINESS if each != "random"]), st.just("random")),
    }
)
usual = st.one_of(
    st.just(("default", {})),
    st.tuples(st.just("flexibleRollout"), flexible),
    st.tuples(st.just("userWithId"), st.fixed_dictionaries({"userIds": st.sampled_from(["1", "2,eu", ""])})),
    st.tuples(st.just("remoteAddress"), st.fixed_dictionaries({"IPs": st.sampled_from(["192.0.2.1", "10.0.0.0/8"])})),
    st.tuples(
        st.sampled_from(["gradualRolloutUserId", "gradualRolloutSessionId"]),
        st.fixed_dictionaries({"percentage": shares, "groupId": st.just("g")}),
    ),
    st.just(("declared", {})),
    st.tuples(st.just("applicationHostname"), st.just({"hostNames": "here"})),
)
unusual = st.one_of(
    st.tuples(st.just("gradualRolloutRandom"), st.fixed_dictionaries({"percentage": shares})),
    st.tuples(st.sampled_from(["pure", "wild", "reads"]), st.fixed_dictionaries({"field": fields})),
    st.just(("declared", {"raise": "1"})),
)
variants = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["v", "w", "x"]),
            "weight": st.sampled_from([0, 300, 500]),
            "overrides": st.lists(
                st.fixed_dictionaries({"contextName": fields, "values": st.lists(texts, max_size=2)}), max_size=1
            ),
        }
    ),
    max_size=3,
)


@st.composite
def sticking(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw variants that stick to the same field."""
    stickiness = draw(st.sampled_from([None, *STICKINESS]))
    return [{**each, "stickiness": stickiness} if stickiness else each for each in draw(variants)]


@st.composite
def strategies(draw: st.DrawFn) -> dict[str, Any]:
    name, parameters = draw(rare(usual, unusual))
    return {
        "name": name,
        "parameters": parameters,
        "constraints": draw(st.lists(constraints, max_size=2)),
        "segments": draw(st.lists(st.sampled_from([1, 2, 9]), max_size=1)),
        "variants": draw(sticking()),
    }


def pair(stickiness: str | None, override: str | None = None) -> list[dict[str, Any]]:
    """Return two variants: one for contexts with `1` in a field, the other for those with `2`."""
    more: dict[str, Any] = {} if stickiness is None else {"stickiness": stickiness}
    made = [{"name": name, "weight": 500, **more} for name in ("v", "w")]
    if override is not None:
        for variant, text in zip(made, "12", strict=True):
            variant["overrides"] = [{"contextName": override, "values": [text]}]
    return made


def lively(name: str = "default", parameters: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    constraints = more.pop("constraints", [])
    return {"strategies": [{"name": name, "parameters": parameters or {}, "constraints": constraints}], **more}


def rolled_out(stickiness: str, **more: Any) -> dict[str, Any]:
    """Return a feature that is on for half of those who ask."""
    return lively("flexibleRollout", {"rollout": "50", "groupId": "g", "stickiness": stickiness}, **more)


sticky = st.one_of(st.just("default"), fields)
simple = st.one_of(
    sticky.map(rolled_out),
    sticky.map(lambda field: lively(variants=pair(field))),
    st.just(lively(variants=pair("random"))),
    st.just(lively("userWithId", {"userIds": "1"})),
    st.just(rolled_out("default", variants=pair(None))),
    st.tuples(st.sampled_from(["DATE_AFTER", "DATE_BEFORE"]), st.sampled_from(MOMENTS)).map(
        lambda drawn: lively(constraints=[{"contextName": "currentTime", "operator": drawn[0], "value": drawn[1]}])
    ),
    fields.map(lambda field: lively(variants=pair("appName", field))),
    fields.map(lambda field: lively(constraints=[{"contextName": field, "operator": "IN", "values": ["1", "eu"]}])),
    constraints.map(lambda constraint: lively(constraints=[constraint])),
    usual.map(lambda rule: lively(*rule)),
    st.sampled_from(["declared", "pure", "pure", "pure", "wild", "reads"]).flatmap(
        lambda name: fields.map(lambda field: lively(name, {"field": field}))
    ),
)
"""Features in which a single thing decides, and nothing else hides its effect."""


@st.composite
def mixed(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a feature in which several things decide."""
    return {"strategies": draw(st.lists(strategies(), max_size=3)), "variants": draw(sticking())}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a configuration of a few toggles, perhaps with a parent."""
    drawn = draw(st.lists(st.one_of(simple, simple, mixed()), min_size=1, max_size=3))
    features = [
        {
            "name": f"flag-{at}",
            "enabled": draw(st.integers(0, 7)) > 0,
            "dependencies": [{"feature": "flag-0"}] if at and draw(st.integers(0, 3)) == 0 else [],
            **each,
        }
        for at, each in enumerate(drawn)
    ]
    segments = [{"id": number, "constraints": draw(st.lists(constraints, max_size=2))} for number in (1, 2)]
    return {"version": 2, "features": features, "segments": segments}


# ---- requests


@dataclass(frozen=True)
class GeneratedRequest:
    """One request: what is asked, by whom, when; `names` make a POST a look-up. `p:` stands before what is sent as a property."""

    method: bytes
    everything: bool
    context: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    now: float

    def with_body(self) -> GeneratedRequest:
        """Return the same request, with GET for HEAD."""
        return replace(self, method=b"GET") if self.method == b"HEAD" else self

    def request(self, tag: bytes | None) -> tuple[Request, bytes]:
        """Return the request and its body. `tag` is the caller's entity tag."""
        path = b"/proxy/all" if self.everything else b"/proxy"
        headers = [(b"authorization", b"k")] + ([] if tag is None else [(b"if-none-match", tag)])
        if self.method != b"POST":
            pairs = [(f"properties[{name[2:]}]" if name.startswith("p:") else name, text) for name, text in self.context]
            return Request(self.method, path, urlencode(pairs).encode(), headers, peer="192.0.2.1"), b""
        own = {name: text for name, text in self.context if not name.startswith("p:")}
        properties = {name[2:]: text for name, text in self.context if name.startswith("p:")}
        body = json.dumps({"context": {**own, "properties": properties}, "toggles": self.names}).encode()
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        return Request(b"POST", path, b"", headers, peer="192.0.2.1"), body


SENT = (*(name for name in FIELDS if name != "properties"), *(f"p:{name}" for name in FIELDS))
sent = st.sampled_from(SENT)
methods = st.sampled_from([b"GET", b"GET", b"HEAD", b"POST", b"POST"])
times = st.sampled_from([time / 1000.0 for time in TIMES])
named = st.lists(st.sampled_from(["flag-0", "flag-1", "un\0known", "flag-1\0"]), max_size=3).map(
    lambda drawn: ("flag-0", *drawn) if len(drawn) != 1 else ()
)


@st.composite
def asks(draw: st.DrawFn) -> GeneratedRequest:
    context = draw(st.dictionaries(sent, texts, max_size=4))
    if draw(st.booleans()):
        context["userId"] = draw(st.sampled_from(["1", "2"]))
    return GeneratedRequest(draw(methods), draw(st.booleans()), tuple(sorted(context.items())), draw(named), draw(times))


@st.composite
def changed(draw: st.DrawFn, ask: GeneratedRequest) -> GeneratedRequest:
    """Draw a request that differs from another in one thing, which may not count."""
    what = draw(st.integers(0, 7))
    if what == 0:
        return replace(ask, method=draw(methods))
    if what == 1:
        return replace(ask, everything=not ask.everything)
    if what == 2:
        return replace(ask, names=draw(named))
    if what == 3:
        return replace(ask, now=draw(times))
    context = dict(ask.context)
    name = draw(sent)
    if name in context and draw(st.booleans()):
        del context[name]
    else:
        context[name] = draw(texts)
    return replace(ask, context=tuple(sorted(context.items())))


@st.composite
def sequences(draw: st.DrawFn) -> list[GeneratedRequest]:
    """Draw requests that differ little, some of them repeated."""
    pool = [draw(asks())]
    for _ in range(draw(st.integers(1, 4))):
        pool.append(draw(changed(draw(st.sampled_from(pool)))))
    return [*pool, *draw(st.lists(st.sampled_from(pool), max_size=4))]


def neighbours(ask: GeneratedRequest) -> list[GeneratedRequest]:
    """Return every request that differs in one field, the names, the form or the time, with its body."""
    found = [replace(ask, now=time / 1000.0) for time in TIMES] + [replace(ask, everything=not ask.everything)]
    found += [replace(ask, names=names) for names in ((), ("flag-0", "flag-1"), ("flag-1", "flag-0"), ("flag-0",))]
    rest = dict(ask.context)
    for name in SENT:
        others = {key: text for key, text in rest.items() if key != name}
        for text in ("", "1", "2", None):
            context = others if text is None else {**others, name: text}
            found.append(replace(ask, context=tuple(sorted(context.items()))))
    return [each.with_body() for each in found]
