"""Large features and segments are compiled in slices, with the same result as at once."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from flagsvc.engine.compile import Compilation, Compiled, CompileOptions, Compiler
from flagsvc.engine.context import Context
from flagsvc.engine.digest import digest
from flagsvc.engine.explain import explain
from flagsvc.engine.sliced_compilation import LARGE, STEP, PieceReading
from flagsvc.engine.source import Unusual
from support.evaluating import constraint, feature, rollout, strategy
from unit.engine.test_refresh import compiled

Json = dict[str, Any]

SLICE = 12_288
"""The budget that the poller gives."""
USERS = [f"user-{number}" for number in range(2_000)]
CONTEXTS = [
    Context(user_id="user-7", remote_address="10.0.3.7", properties={"plan": "PLAN-3", "f5": "w5"}),
    Context(user_id="nobody", remote_address="::1", properties={"plan": "x", "f1": "v1"}),
    Context(),
]


def segment(identity: object, *constraints: Json | None, **more: Any) -> Json:
    """Return a segment."""
    return {"id": identity, "name": "s", "constraints": list(constraints), **more}


def variant(number: int) -> Json:
    """Return a variant."""
    chosen = [{"contextName": "userId", "values": [f"user-{number}"]}]
    return {"name": f"v{number}", "weight": 1, "stickiness": "userId", "payload": {"type": "json", "value": {"a": [1]}}} | (
        {"overrides": chosen} if number % 3 else {}
    )


def many(count: int = 400) -> list[Json | None]:
    """Return constraints of several kinds, equal ones among them."""
    kinds: list[Json | None] = [
        constraint("NOT_IN", field="f1", values=["v1", "", " w1 "]),
        constraint("NUM_LT", field="age", value=12),
        constraint("DATE_AFTER", value="2020-01-01T00:00:00Z"),
        *[constraint("NOT_IN", field=f"f{number % 7}", values=[f"v{number}", "é"]) for number in range(count)],
    ]
    return [*kinds, *kinds[:5]]


def nested(depth: int) -> list[Any]:
    """Return lists in lists, the innermost of them long."""
    return [nested(depth - 1), "\U0001f600", "z" * 9_000] if depth else list(range(5_000))


LONG = [
    constraint("IN", field="userId", values=USERS),
    constraint("NOT_IN", field="userId", values=[*USERS, 3, 2.5, True, "", None]),
    constraint("IN_CIDR", field="remoteAddress", values=[f"10.0.{number // 256}.{number % 256}/31" for number in range(2_000)]),
    constraint("STR_STARTS_WITH", field="plan", values=[f"plan-{number}" for number in range(2_000)], caseInsensitive=True),
]
ON = strategy("default")
VARIANTS = [variant(at) for at in range(200)]


def configuration(*features: Json, segments: Sequence[Json] = ()) -> Json:
    """Return a document."""
    return {"features": list(features), "segments": list(segments)}


def in_group(number: int) -> Json:
    """Return a rollout of a group of its own, with a constraint."""
    return rollout("50", groupId=str(number)) | {"constraints": [constraint("IN", values=[str(number)])]}


DOCUMENTS: dict[str, Json] = {
    "constraints": configuration(feature("a", strategy("default", *many()))),
    "long lists": configuration(*[feature(f"l{at}", strategy("default", each)) for at, each in enumerate(LONG)]),
    "null": configuration(feature("a", strategy("default", None, *LONG)), feature("b", strategy("default", *many()))),
    "strategies": configuration(
        feature("a", *[in_group(at) for at in range(200)], strategy("default", segments=[1, 2, 9])),
        segments=[segment(1, *LONG[:1]), segment(2)],
    ),
    "variants": configuration(
        feature("a", ON, variants=VARIANTS),
        feature("b", ON | {"variants": VARIANTS}),
        feature("c", ON, variants=VARIANTS, enabled=False),
        feature("d", ON, dependencies=[{"feature": "a", "variants": [f"v{at}"]} for at in range(400)]),
    ),
    "segments": configuration(
        *[feature(f"s{at}", strategy("default", segments=[at, 1])) for at in range(6)],
        segments=[
            segment(1, *LONG[:2]),
            segment(2, *many()),
            segment(3, None, *LONG[2:]),
            segment(4, *[constraint("NOT_IN", field=f"f{at}", values=[]) for at in range(300)]),
            segment(4, *LONG[:1]),
            segment(4, *LONG[:1]),
            segment(5, {**LONG[0], "operator": "UNKNOWN"}),
        ],
    ),
    "other": configuration(
        feature("a", strategy("userWithId", parameters={"userIds": ",".join(USERS)}), description="é" * 9_000),
        feature("none", more=USERS, strategies=[]),
        feature("null", more=USERS, strategies=None),
        feature("numbers", ON, more=[10**30, *range(5_000)]),
        feature("deep", ON, more=nested(10)),
        feature("empty", ON, more={"": {}, 'é\n"': USERS, "b": [{}] * 5_000, "c": [{"x": USERS}, {}, {"y": USERS}]}),
    ),
}
"""Documents with large features and segments."""


def text(document: Json) -> bytes:
    """Return the JSON of a document."""
    return json.dumps(document).encode()


def begun(body: bytes, options: CompileOptions | None = None) -> Compilation:
    """Return the compiling of a document's bytes."""
    building = Compiler(options or CompileOptions()).begin_text(body, None)
    assert building is not None
    return building


def in_slices(document: Json, options: CompileOptions | None = None) -> Compiled:
    """Return the result of a compilation that stops wherever it can."""
    building = begun(text(document), options)
    while not building.advance(1):
        pass
    return building.compiled()


def in_one_go(document: Json, options: CompileOptions | None = None) -> Compiled:
    """Return what compiling the decoded document gives."""
    return Compiler(options or CompileOptions())(msgspec.json.decode(text(document)))


def told(found: Compiled) -> list[object]:
    """Return everything that is visible of a compiled document."""
    snapshot = found.snapshot
    for number, context in enumerate(CONTEXTS):
        context.entropy = number
    pool = snapshot.lineage.pool
    return [
        snapshot.revision,
        [str(each) for each in found.problems],
        snapshot.names,
        [snapshot.all(context) for context in CONTEXTS],
        [each.to_text() for context in CONTEXTS for each in explain(snapshot, context, None)],
        [part.digest for part in snapshot.lineage.parts],
        [snapshot.cache_keys.key(context, "all", []) for context in CONTEXTS],
        (set(pool.predicates), int(pool.slots), int(pool.compiled)),
    ]


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("fold", [True, False])
def test_the_outcome_is_that_of_one_go(name: str, fold: bool) -> None:
    """Revision, problems, answers, explanations and shared objects are the same."""
    options = CompileOptions(fold=fold)
    assert told(in_slices(DOCUMENTS[name], options)) == told(in_one_go(DOCUMENTS[name], options))


def broken(change: str) -> Json:
    """Return a document with a large feature and a large segment, with something malformed in both."""
    constraints = [json.loads(json.dumps(each)) for each in [*many(300), *LONG[:3]]]
    flag = feature("a", strategy("default", *constraints), variants=[variant(at) for at in range(150)])
    kept = segment(1, *constraints)
    if change == "value":
        constraints[-1]["values"][1_500] = {"x": 1}
    elif change == "constraint":
        flag["strategies"][0]["constraints"][200] = kept["constraints"][200] = 7
    elif change == "two":
        constraints[200]["values"] = 7
        flag["strategies"][0]["segments"] = [None]
        kept["id"] = None
    elif change == "variant":
        flag["variants"][120]["weight"] = "x"
    elif change == "dependency":
        flag["dependencies"] = [*[{"feature": "b"} for _ in range(100)], 3]
    elif change == "name":
        flag["name"] = kept["name"] = None
    elif change == "strategy":
        flag["strategies"].append([])
    return {"features": [feature("b"), flag, ["x"] * 5_000], "segments": [kept, USERS]}


FEATURE_ALONE = ("variant", "dependency", "name", "strategy")
"""Changes that make nothing of the segment malformed."""


@pytest.mark.parametrize("change", ["value", "constraint", "two", "variant", "dependency", "name", "strategy", "nothing"])
def test_what_is_malformed_is_told_as_of_a_small_one(change: str) -> None:
    """A malformed part has the same problem at the same place, and removes the same toggles."""
    found, expected = in_slices(broken(change)), in_one_go(broken(change))
    assert told(found)[:6] == told(expected)[:6]
    assert len(found.problems) == (2 if change == "nothing" else 3 if change in FEATURE_ALONE else 4)


def test_features_that_are_not_wanted_are_left_out() -> None:
    """A large feature of another prefix is read, and no more."""
    options = CompileOptions(name_prefix="b")
    assert told(in_slices(broken("value"), options))[:6] == told(in_one_go(broken("value"), options))[:6]
    assert told(in_slices(DOCUMENTS["variants"], options)) == told(in_one_go(DOCUMENTS["variants"], options))


@pytest.mark.parametrize("name", ["constraints", "long lists", "strategies", "variants", "segments"])
def test_no_step_is_long(name: str) -> None:
    """A slice ends within a large feature or segment: no step costs more than a small part of a slice."""
    building = begun(text(DOCUMENTS[name]))
    costs = list(building.steps)
    assert max(costs) <= 4 * STEP < SLICE
    assert sum(costs) > 2 * LARGE


SMALL_PIECES: dict[str, Json] = {
    "constraints": feature("a", strategy("default", *many(3_600))),
    "strategies without constraints": feature("a", *[strategy("default") for _ in range(4_000)]),
    "long groups": feature("a", *[rollout(5, groupId="g" * 5_000) for _ in range(100)]),
    "references to segments": feature("a", *[strategy("default", segments=[1] * 1_000) for _ in range(50)]),
    "parameters": feature("a", strategy("default", parameters={f"p{number}": "" for number in range(10_000)})),
    "patterns in few bytes": feature("a", strategy("default", *[constraint("REGEX", value=f"a{n}") for n in range(100)])),
    "addresses": feature("a", strategy("remoteAddress", parameters={"IPs": ",".join(["10.0.0.0/8"] * 20_000)})),
    "long dates": feature("a", strategy("default", *[constraint("DATE_AFTER", value="-" * 5_000)] * 100)),
}


@pytest.mark.parametrize("name", SMALL_PIECES)
def test_small_pieces_have_costs(name: str) -> None:
    """What is short in a document and takes long is compiled in many slices of the poller's budget."""
    document = {"features": [SMALL_PIECES[name]], "segments": [segment(1, constraint("IN", values=["x"]))]}
    slices, building = 1, begun(text(document))
    while not building.advance(SLICE):
        slices += 1
    assert slices >= 30
    assert told(building.compiled()) == told(in_one_go(document))


def test_patterns_of_a_segment_are_compiled_in_slices() -> None:
    """A segment with a pattern is never compiled at once."""
    document = {"features": [], "segments": [segment(1, *[constraint("REGEX", value=f"a{n}") for n in range(50)])]}
    assert sum(begun(text(document)).steps) > 50 * STEP


@pytest.mark.parametrize("place", ["features", "segments"])
def test_what_the_strict_decoder_refuses_in_a_large_piece_is_unusual(place: str) -> None:
    """A number beyond all doubles is unusual at any place."""
    piece = json.dumps({"name": "a", "id": 1, "constraints": many(), "more": [USERS, "@"]}).replace('"@"', "1e999")
    building = begun(f'{{"features":[],"{place}":[{piece}]}}'.replace('"features":[],"f', '"f').encode())
    with pytest.raises(Unusual):
        building.advance(10**9)


def test_a_large_feature_is_compiled_again_with_its_segment() -> None:
    """A large feature is reused under the same conditions as a small one."""
    compiler = Compiler(CompileOptions())

    def document(*segments: Json, name: str = "b") -> bytes:
        flag = feature("a", strategy("default", *many(300), segments=[1]))
        return text(configuration(flag, feature(name), segments=segments))

    first = compiled(compiler, document(segment(1, *LONG[:1]))).snapshot
    assert compiled(compiler, document(segment(1, *LONG[:1])), first).snapshot is first
    second = compiled(compiler, document(segment(1, *LONG[1:2])), first).snapshot
    assert second.lineage.parts[0] is not first.lineage.parts[0]
    spelled = {"constraints": LONG[1:2], "name": "s", "id": 1}  # other bytes of the same content
    third = compiled(compiler, document(spelled, name="c"), second).snapshot
    assert third.lineage.parts[0] is second.lineage.parts[0]
    assert third.lineage.segment_parts[0] is not second.lineage.segment_parts[0]
    for snapshot, body in ((second, document(segment(1, *LONG[1:2]))), (third, document(spelled, name="c"))):
        alone = compiled(compiler, body).snapshot
        assert snapshot.revision == alone.revision
        assert [snapshot.all(context) for context in CONTEXTS] == [alone.all(context) for context in CONTEXTS]


def value(draw: random.Random, depth: int) -> Any:
    """Return a JSON value, often a large one."""
    kind = draw.randint(0, 9 if depth else 5)
    if kind < 2:
        return draw.choice([None, True, False, 0, -1, 2**63, -0.0, 1.5, 1e300, 10**17])
    if kind < 4:
        return draw.choice(["", "a", "é", "null", '\n"\\/', "\u2028", "\U0001f600", "x" * 9_000])
    if kind < 6:
        return [draw.choice([1, "b", {}, []])] * draw.choice([0, 1, 3, 3_000])
    if kind < 8:
        return [value(draw, depth - 1) for _ in range(draw.choice([1, 3, 9]))]
    return {
        draw.choice(["a", "b", "é", "", "z\n", "\U0001f600"]) + str(at): value(draw, depth - 1)
        for at in range(draw.choice([1, 5, 9]))
    }


def test_reading_gives_what_decoding_gives_and_its_digest() -> None:
    """For any piece, value and digest are the same as at once, with the same order of keys."""
    draw = random.Random(9)
    sizes = []
    blanks = b" " * 20_000
    bodies = [b"{%s}" % blanks, b'{"a":{},"b":[[1 %s]]}' % blanks, b"[%s[]]" % blanks]
    for _ in range(60):
        made = value(draw, 3)
        bodies.append(json.dumps(made, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, None, 2])).encode())
    for body in bodies:
        reading = PieceReading(msgspec.Raw(body))
        sizes.append(sum(reading.steps()))
        whole = msgspec.json.decode(body)
        assert json.dumps(reading.value) == json.dumps(whole)
        assert reading.content == digest(whole)
    assert max(sizes) > 20 * STEP


GIVEN_BACK = """
import gc, json, sys, threading
from flagsvc.engine.compile import Compiler
from flagsvc.engine.options import CompileOptions

rollout = {"name": "flexibleRollout", "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "g"},
           "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]}
feature = {"name": "a", "enabled": True, "strategies": [rollout] * int(sys.argv[1])}
found = [Compiler(CompileOptions())({"version": 2, "features": [feature]})]

def give_back():
    found.clear()
    gc.collect()

threading.stack_size(256 * 1024)
thread = threading.Thread(target=give_back)
thread.start()
thread.join()
print(gc.collect() >= 0)
"""


@pytest.mark.parametrize("number", [60, 8_000])
def test_a_long_chain_is_given_back_one_by_one(number: int) -> None:
    """For any number of strategies, releasing them needs little stack and writes to no released memory."""
    around = os.environ | {"PYTHONMALLOC": "debug"}  # it looks at what stands before each block
    told = [sys.executable, "-c", GIVEN_BACK, str(number)]
    ended = subprocess.run(told, capture_output=True, text=True, timeout=60, env=around)
    assert (ended.returncode, ended.stdout.strip()) == (0, "True"), ended.stderr[-500:]
