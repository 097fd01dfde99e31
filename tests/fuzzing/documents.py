"""Odd configuration documents: valid ones with something wrong in them, JSON of any shape, and bytes that are none.

They go through the poller, as an upstream's answers do. A document that is not JSON, or not of
the right shape, never replaces a good one; a malformed feature is left out (behaviour: Documents that are not accepted).
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
from typing import Any

from hypothesis import strategies as st

from flagsvc.engine import operators
from flagsvc.engine.context import Context
from flagsvc.engine.explain import explain
from flagsvc.engine.snapshot import Snapshot
from flagsvc.testing import etag_of
from fuzzing import words
from fuzzing.answers import check_toggles
from fuzzing.rows import Row
from support.polling import PollerScene, running

OPERATORS = (*operators.OPERATORS, "NO_SUCH")
STRATEGIES = (
    "default", "userWithId", "gradualRolloutUserId", "gradualRolloutSessionId", "gradualRolloutRandom", "flexibleRollout",
    "remoteAddress", "applicationHostname", "noSuchStrategy"
)  # fmt: skip
PARAMETERS = {
    "userIds": "1, 2,a", "percentage": "50", "groupId": "group", "rollout": "60", "stickiness": "default", "IPs": "10.0.0.0/8,::1",
    "hostNames": "a,b",
}  # fmt: skip
BYSTANDERS = ("bystander on", "bystander off", "bystander varied")
GOOD = json.dumps({"version": 2, "features": [{"name": "good", "enabled": True, "strategies": []}]}).encode()
CONTEXTS = (
    Context(),
    Context(user_id="7", session_id="s", remote_address="10.1.2.3", properties={"a": "1.2.3", "b": "", "c": "2026-01-01"}),
    Context(
        app_name="x", environment="y", user_id="Ω🧦", remote_address="::ffff:10.0.0.1", current_time=1e14, properties={"a": "NaN"}
    ),
)


def valid() -> dict[str, Any]:
    """Return a document in which every operator, strategy and kind of part occurs."""
    constraints = [
        {
            "contextName": "abc"[at % 3],
            "operator": name,
            "values": ["1", "a", " 10.0.0.0/8", ""],
            "value": "1.2.3",
            "inverted": at % 2 == 0,
        }
        for at, name in enumerate(OPERATORS)
    ]
    variants = [
        {"name": f"v{weight}", "weight": weight, "stickiness": "default", "payload": {"type": "json", "value": '{"a": 1}'},
         "overrides": [{"contextName": "userId", "values": ["7"]}]}
        for weight in (1, 0, 999)
    ]  # fmt: skip
    features = [
        {"name": f"strategy {name}", "enabled": True, "strategies": [{"name": name, "parameters": PARAMETERS,
        "variants": variants[:at % 3]}]}
        for at, name in enumerate(STRATEGIES)
    ]  # fmt: skip
    features += [
        {"name": f"operator {each['operator']}", "enabled": True, "impressionData": at % 2 == 0, "variants": variants[: at % 4],
         "strategies": [{"name": "default", "constraints": [each, *constraints[:at % 3]], "segments": [at % 4]}]}
        for at, each in enumerate(constraints)
    ]  # fmt: skip
    features += [
        {"name": "child", "enabled": True, "strategies": [], "dependencies": [{"feature": "operator IN",
        "enabled": True, "variants": ["v1"]}]},
        {"name": "grandchild", "enabled": True, "strategies": [], "dependencies": [{"feature": "child"}]}
    ]  # fmt: skip
    segments = [{"id": at, "name": f"segment {at}", "constraints": constraints[at : at + 2]} for at in (0, 1, 2)]
    return {"version": 2, "features": features, "segments": segments}


def bystanders() -> list[dict[str, Any]]:
    """Return toggles that depend on nothing else in a document."""
    sea = [{"name": "blue", "weight": 1, "payload": {"type": "string", "value": "sea"}}]
    strategies: tuple[Any, ...] = ([], [{"name": "userWithId", "parameters": {"userIds": "nobody"}}], [{"name": "default"}])
    variants: tuple[list[Any], ...] = ([], [], sea)
    return [
        {"name": name, "enabled": True, "strategies": strategy, "variants": variant}
        for name, strategy, variant in zip(BYSTANDERS, strategies, variants, strict=True)
    ]


EDGES: tuple[Any, ...] = (
    [], {}, "", 0, -1, 1e308, 10**309, -(10**400), 10**4200, 2**31, 2**63, 0.1, True, None, [[]], [None], [{}],
    {"a": None}, [10**400],
    {"a": 10**400}, "\ufffd", "\ud800", "\u00b2", "\u0661", "(", "(?=a)", "a{1000}{1000}", "[" * 50,
    "1.2.3-" + "9" * 400, "1." * 40,
    "999999999999999999999.0.0", "9" * 5000, "0x" + "f" * 400, "1e999", "::/0", "10.0.0.0/33", "10.0.0.0/\u00b2", "fe80::1%eth0/10",
    "275760-09-13", "+275760-09-13T00:00:00Z", "-9e15", "Sat Nov 21", "__proto__",
)  # fmt: skip
"""Values on the edge of what some part of a document may be."""
PATCHES = words.values | st.sampled_from(EDGES)


def nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    return [path, *[place for key, part in inside for place in places(part, (*path, key))]] if path else [
        place for key, part in inside for place in places(part, (key,))
    ]  # fmt: skip


VALID = valid()
PLACES = places(VALID)
KINDS = {tuple("*" if isinstance(step, int) else step for step in place): place for place in reversed(PLACES)}
"""Each kind of place (`features.*.name`) → the first place of that kind."""


def with_edge(kind: tuple[Any, ...], edge: Any) -> dict[str, Any]:
    """Return a document of bystanders, one feature or segment in which a place has this value, and all the segments."""
    place = KINDS[kind]
    features: list[Any] = bystanders()
    document = {"version": 2, "features": features, "segments": copy.deepcopy(VALID["segments"])}
    if place[0] == "features" and len(place) > 1:
        features.append(copy.deepcopy(VALID["features"][place[1]]))
        place = ("features", len(BYSTANDERS), *place[2:])
    patch(document, list(place[:-1]), place[-1], "replace", edge)
    return document


@st.composite
def patched(draw: st.DrawFn) -> Any:
    """The valid document with a few parts replaced, left out, put in twice or exchanged."""
    document = copy.deepcopy(VALID)
    for _ in range(draw(st.integers(1, 4))):
        *owners, last = draw(st.sampled_from(PLACES))
        kind = draw(st.sampled_from(("replace", "replace", "replace", "remove", "wrap", "double", "rename")))
        patch(document, owners, last, kind, draw(PATCHES))
    return document


def patch(document: Any, owners: list[Any], last: Any, kind: str, value: Any) -> None:
    """Change one place of a document, where an earlier change has left it."""
    owner = document
    with contextlib.suppress(LookupError, TypeError, AttributeError):  # an earlier change took the place away
        for step in owners:
            owner = owner[step]
        if isinstance(owner, dict) and not isinstance(last, str):
            return  # an earlier change put an object in the place of a list, and no object has a number for a name
        if kind == "replace":
            owner[last] = copy.deepcopy(value)  # it may be put into itself
        elif kind == "remove":
            del owner[last]
        elif kind == "wrap":
            owner[last] = [owner[last]]
        elif kind == "double":
            owner.insert(0, copy.deepcopy(owner[last]))
        else:
            owner[str(value)[:50]] = owner.pop(last)


@st.composite
def one_bad_feature(draw: st.DrawFn) -> Any:
    """A document of bystanders with something in the middle, which may have anything but their names."""
    features: list[Any] = bystanders()
    feature = draw(patched().map(lambda document: document.get("features")) | words.values)
    odd = draw(st.sampled_from(feature)) if isinstance(feature, list) and feature else feature
    at = draw(st.integers(0, len(features)))
    features.insert(at, odd)
    if draw(st.booleans()):
        features.insert(at, {"name": "deep", "enabled": True, "strategies": nested(draw(st.integers(850, 1010)))})
    segments = draw(st.lists(words.values, max_size=3) | patched().map(lambda document: document.get("segments")))
    return {"version": 2, "features": features, "segments": segments}


def dumped(value: Any) -> bytes:
    """Return a value as JSON; half a surrogate pair becomes an escape."""
    return json.dumps(value).encode()


async def rounds(world: PollerScene, count: int) -> None:
    """Let the poller ask so many times, and check that it is not broken."""
    for _ in range(count):
        await asyncio.wait_for(world.round(), 20)
    assert world.poller.restarts == 0, world.log.lines
    assert not world.log.at("error", "fatal"), world.log.lines


async def polled(body: bytes) -> PollerScene:
    """Return the world after a good document, then `body` two times."""
    async with running(GOOD, body) as world:
        await rounds(world, 3)
    return world


def acceptable(body: bytes) -> bool:
    """Return whether a document is JSON and of the right shape as a whole, as far as two parsers agree about JSON."""
    try:
        value = json.loads(body.removeprefix(b"\xef\xbb\xbf").decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and isinstance(value.get("features"), list)


def document_row(runner: asyncio.Runner, body: bytes) -> None:
    """A text that is no document changes nothing. A document is evaluated for every context, and explained."""
    world = runner.run(polled(body))
    snapshot = world.holder.current
    assert snapshot is not None and world.holder.document is not None
    replaced = world.holder.document.body != GOOD
    assert acceptable(body) or not replaced, "a document that is none replaced a good one"
    asked_last = world.source.etags[-1]
    assert asked_last in ({etag_of(GOOD)} if not replaced else {etag_of(body), None})
    assert (list(snapshot.names) == ["good"]) or replaced
    assert_evaluates(snapshot)


def bystander_row(runner: asyncio.Runner, document: Any) -> None:
    """A malformed feature or segment harms no other feature."""
    world = runner.run(polled(dumped(document)))
    snapshot = world.holder.current
    assert snapshot is not None
    if "good" in snapshot.names:  # nested too deeply to be read at all, or `segments` is no list
        assert world.log.at("warn")[0] == "the configuration could not be fetched", world.log.lines
        return
    assert_bystanders(snapshot)
    assert_evaluates(snapshot)


def assert_bystanders(snapshot: Snapshot) -> None:
    """Check that the bystanders in a document are as they always are."""
    toggles = json.loads(snapshot.named(CONTEXTS[1], list(BYSTANDERS))[0])["toggles"]
    assert [toggle["enabled"] for toggle in toggles] == [True, False, True], toggles
    assert toggles[2]["variant"]["payload"] == {"type": "string", "value": "sea"}


def assert_evaluates(snapshot: Snapshot) -> None:
    """Evaluate a snapshot in every form and check the shape of the answers; two forms do not contradict each other."""
    names = [*snapshot.names, "nowhere", ""]
    for context in CONTEXTS:
        context.now, context.entropy = 1_763_700_000_000.0, 12345
        everything = json.loads(snapshot.all(context))
        named, on = snapshot.named(context, names)
        for content in (everything, json.loads(named), json.loads(snapshot.enabled(context))):
            check_toggles(content)
        states = {toggle["name"]: toggle["enabled"] for toggle in everything["toggles"]}
        assert [toggle["enabled"] for toggle in json.loads(named)["toggles"]] == on
        assert dict(zip(names, on, strict=True)) == {**states, "nowhere": states.get("nowhere", False), "": states.get("", False)}
        for explanation in explain(snapshot, context, None):
            assert explanation.to_text() and json.dumps(explanation.to_json())
            assert explanation.enabled is states[explanation.name], explanation.to_text()


whole = patched().map(dumped)
ROWS: tuple[Row[asyncio.Runner], ...] = (
    Row("documents with odd parts", whole, document_row, 200),
    Row("damaged documents", words.damaged(st.just(dumped(VALID)) | st.just(GOOD)), document_row, 80),
    Row("JSON of any shape", words.texts() | st.fixed_dictionaries({"features": words.values}).map(dumped), document_row, 80),
    Row("bytes", st.binary(max_size=100) | st.sampled_from(words.UNUSUAL), document_row, 60),
    Row("bystanders", one_bad_feature(), bystander_row, 150),
)
