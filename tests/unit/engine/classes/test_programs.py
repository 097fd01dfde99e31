"""The programs of classes: what a class decides is bytes, and what remains answers as an evaluation does."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from flagsvc.engine.classes.marks import ADMITTED, DRAWS, REFUSED, WHOLE
from flagsvc.engine.classes.program import MAX_RUNS, ClassProgram, SharedPieces
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import PLAIN
from flagsvc.engine.projects import restrict
from flagsvc.engine.snapshot import Snapshot
from support.evaluating import classes_of, constraint, feature, rollout, snapshot, strategy

EU = constraint("IN", values=["eu"])
US = constraint("IN", values=["us"])
PLAN = constraint("STR_STARTS_WITH", "userId", values=["u1"])
HALF = rollout(50, groupId="g")
PAIR = [{"name": "v", "weight": 500}, {"name": "w", "weight": 500}]
EVEN = [{"name": "x", "weight": 1}, {"name": "y", "weight": 1}]
ALONE = [{"name": "v", "weight": 500}]
BY_PLAN = [{"name": "v", "weight": 500, "stickiness": "plan"}, {"name": "w", "weight": 500, "stickiness": "plan"}]
OVERRIDDEN = [{"name": "v", "weight": 500, "overrides": [{"contextName": "region", "values": ["eu"]}]}, PAIR[1]]
IN_EU, IN_US = strategy("default", EU), strategy("default", US)
NOT_U1 = constraint("NOT_IN", "userId", values=["u1"])
ON_P = [{"feature": "p"}]
IDS = strategy("userWithId", parameters={"userIds": "u1,u2"})


def constrained(rule: Mapping[str, Any], *constraints: object) -> dict[str, Any]:
    """Return a strategy with these constraints."""
    return {**rule, "constraints": list(constraints)}


def older(name: str) -> dict[str, Any]:
    """Return a rollout of the older kind."""
    return strategy(name, parameters={"percentage": "50", "groupId": "g"})


class Custom:
    """A custom strategy that is on for some users, and raises for one."""

    name = "custom"

    def is_enabled(self, parameters: Mapping[str, str], context: Any) -> object:
        """Return whether the user's id ends in 1."""
        if context.user_id == "u3":
            raise ValueError("bad luck")
        return (context.user_id or "").endswith("1")


CUSTOM = {"custom": Custom()}
CONTEXTS = [
    Context(user_id=user, session_id=session, remote_address=address, entropy=at * 7919 + 5, properties=properties)
    for at, (user, session, address) in enumerate(
        [(f"u{number}", None, None) for number in range(30)]
        + [(None, f"session-{number}", None) for number in range(5)]
        + [(None, None, f"192.0.2.{number}") for number in range(5)]
        + [(None, None, None)] * 20
        + [("1", None, None), ("ü12", None, None)]
    )
    for properties in ({"region": "eu"}, {"region": "us", "plan": "gold"})
]


def pair(*features: object, **options: Any) -> tuple[Snapshot, Snapshot]:
    """Return two snapshots of a configuration: without programs, and with one from the first sighting on."""
    return (
        snapshot(*features, class_bytes=0, custom_strategies=CUSTOM, **options),
        snapshot(*features, class_sightings=1, custom_strategies=CUSTOM, **options),
    )


def program(made: Snapshot, context: Context) -> ClassProgram:
    """Return the program of a context's class for the toggles that are on."""
    view = made.view(PLAIN)
    found = classes_of(made).find(context, view.listed)
    assert found is not None
    return found


def kinds(*features: object, **options: Any) -> list[int]:
    """Return the kinds of the steps of a program for users of the region `eu`, after its answers were compared."""
    plain, fast = pair(*features, **options)
    for context in CONTEXTS:
        for _ in range(2):
            assert fast.enabled(context) == plain.enabled(context)
            pieces = fast.listing(context, True, PLAIN)
            assert pieces.join() == plain.all(context)
            assert pieces.size == len(pieces.join()), "it is the length that the head of an answer tells"
        assert [(each.kind, each.name) for each in fast.take_faults()] == [(each.kind, each.name) for each in plain.take_faults()]
    assert classes_of(fast).counts.misses == 0
    found = program(fast, Context(user_id="u9", properties={"region": "eu"}))
    return [int(mark) & (ADMITTED | REFUSED | WHOLE | DRAWS) for mark in found.marks]


DECIDED: dict[str, tuple[list[int], *tuple[object, ...]]] = {
    "a constraint that holds": ([ADMITTED], feature("f", IN_EU)),
    "one that does not": ([], feature("f", IN_US)),
    "a date": ([ADMITTED], feature("f", strategy("default", constraint("DATE_BEFORE", value="2026-01-01")))),
    "runs of decided toggles": ([ADMITTED], feature("a", IN_EU), feature("b", IN_US), feature("c")),
    "the only variant with a weight": ([ADMITTED], feature("f", IN_EU | {"variants": ALONE})),
    "the feature's only variant": ([ADMITTED], feature("f", IN_EU, variants=ALONE)),
    "a list that has no such user": ([], feature("f", IDS)),
    "a constraint on users in no list": ([ADMITTED], feature("f", strategy("default", NOT_U1))),
    "an unknown strategy": ([], feature("f", strategy("other", EU), IN_US)),
    "a rollout": ([0], feature("f", HALF)),
    "a rollout within a region": ([0], feature("f", constrained(HALF, EU))),
    "a rollout in another region": ([], feature("f", constrained(HALF, US))),
    "a rollout before everyone": ([REFUSED], feature("f", HALF | {"variants": ALONE}, IN_EU)),
    "a rollout by another field": ([0], feature("f", rollout(50, groupId="h", stickiness="plan"))),
    "a whole rollout by another field": ([0], feature("f", rollout(100, groupId="h", stickiness="plan"))),
    "rollouts of the older kind": (
        [0, 0],
        feature("f", older("gradualRolloutUserId")),
        feature("g", older("gradualRolloutSessionId")),
    ),
    "a variant for everyone in a region": ([DRAWS | ADMITTED], feature("f", IN_EU, variants=PAIR)),
    "a variant of a rollout": ([DRAWS], feature("f", HALF | {"variants": PAIR})),
    "a feature's variant": ([DRAWS], feature("f", HALF, variants=BY_PLAN)),
    "a variant of a strategy beside the feature's": (
        [DRAWS],
        feature("f", IN_US | {"variants": PAIR}, HALF | {"variants": EVEN}, variants=BY_PLAN),
    ),
    "a list with users": ([WHOLE], feature("f", strategy("default", PLAN))),
    "two rollouts": ([WHOLE], feature("f", HALF, rollout(50, groupId="h"))),
    "a rollout before variants": ([WHOLE], feature("f", HALF, IN_EU | {"variants": PAIR})),
    "overrides": ([WHOLE], feature("f", IN_EU, variants=OVERRIDDEN)),
    "overrides of a rollout": ([WHOLE], feature("f", HALF, variants=OVERRIDDEN)),
    "overrides of a rollout before everyone": ([WHOLE], feature("f", HALF | {"variants": OVERRIDDEN}, IN_EU)),
    "an open constraint and one that decides": ([], feature("f", strategy("default", PLAN, US))),
    "a random share": ([WHOLE], feature("f", strategy("gradualRolloutRandom", parameters={"percentage": "50"}))),
    "addresses": ([WHOLE], feature("f", strategy("remoteAddress", parameters={"IPs": "192.0.2.1"}))),
    "custom code": ([WHOLE], feature("f", strategy("custom"))),
    "a parent that is decided": ([ADMITTED, 0], feature("p", IN_EU), feature("c", HALF, dependencies=ON_P)),
    "a parent that is decided otherwise": ([], feature("c", HALF, dependencies=ON_P), feature("p", IN_US)),
    "a parent that is rolled out": ([WHOLE, WHOLE], feature("p", HALF), feature("c", IN_EU, dependencies=ON_P)),
}
"""What is in a configuration → the kinds of the steps for users in the region `eu` that are in no list, and its features."""


@pytest.mark.parametrize("row", DECIDED.values(), ids=[each.replace(" ", "-") for each in DECIDED])
def test_what_a_class_decides(row: tuple[list[int], *tuple[object, ...]]) -> None:
    """What all of a class get alike is bytes, a rollout is a number, the rest is evaluated. Answers are those of evaluations."""
    assert kinds(*row[1:]) == row[0]


def test_long_groups_and_other_texts() -> None:
    """A group of any length counts by its length, and identifiers are read in the encoding of the options."""
    features = [feature(str(at), rollout(50, groupId=str(at) * 300), variants=PAIR) for at in range(8)]
    for encoding in ("utf8", "low-byte"):
        plain, fast = pair(*features, hash_encoding=encoding)
        for number in range(20):
            context = Context(user_id=f"ü{number}日")
            assert fast.enabled(context) == plain.enabled(context)
        assert classes_of(fast).counts.misses == 0


def test_a_segment_is_decided_by_any_of_its_constraints() -> None:
    """Also where others of them look at the user; what is open in one toggle is not remembered for the next."""
    segments: list[object] = [
        {"id": 1, "constraints": [PLAN, US]},
        {"id": 2, "constraints": [PLAN, EU]},
        {"id": 3, "constraints": [EU, EU]},
        {"id": 4, "constraints": [US, PLAN]},
    ]
    features = [feature(f"{number}{letter}", strategy("default", segments=[number])) for number in (1, 2, 3, 4) for letter in "ab"]
    assert kinds(*features, segments=segments) == [WHOLE, WHOLE, ADMITTED]


LISTS = [
    feature("ids", IDS),
    feature("more", strategy("userWithId", parameters={"userIds": "u2,u7,1"})),
    feature("varied", IDS, variants=PAIR),
    feature("else", IDS | {"variants": ALONE}, IN_EU),
    feature("rolled", IDS, HALF),
    feature("in", strategy("default", constraint("IN", "userId", values=["u2"]))),
]
"""Features with lists of users; `u2` is in all of them."""


def test_a_shared_segment_that_is_open_is_followed_once() -> None:
    """Its answer may differ within the class and is not kept. Other toggles keep the fact that it is open."""
    several = [constraint("NOT_IN", values=[f"x{number}"]) for number in range(50_000)]
    segments: list[object] = [{"id": 1, "constraints": [constraint("IN", "userId", values=["u1"]), *several]}]
    features = [feature(f"f{number}", {**HALF, "segments": [1]}) for number in range(2_000)]
    made = snapshot(*features, segments=segments, class_bytes=64_000_000)
    context = CONTEXTS[2].replace(user_id="u1")
    started = time.monotonic()
    for _ in range(10):
        assert len(made.all(context)) > 2_000
    assert time.monotonic() - started < 30
    assert classes_of(made).counts.hits > 0


def test_users_in_lists_are_a_class_of_their_own() -> None:
    """One look-up tells the lists of a user, so a list is a step without a hash; for other users it is decided."""
    assert kinds(*LISTS) == [ADMITTED, 0]
    plain, fast = pair(*LISTS)
    for properties in ({"region": "eu"}, {"userId": "u2"}):
        for user in ("u1", "u2", "u7", "1", "u8", None):
            for context in (Context(user_id=user, properties=properties), Context(user_id=user, session_id="s", entropy=3)):
                assert fast.enabled(context) == plain.enabled(context)
                assert fast.all(context) == plain.all(context)
    listed = program(fast, Context(user_id="u2", properties={"region": "eu"}))
    steps = [int(mark) & (ADMITTED | REFUSED | WHOLE | DRAWS) for mark in listed.marks]
    assert steps == [0, 0, DRAWS, REFUSED, WHOLE, WHOLE]


def test_a_property_with_the_name_of_an_identifier() -> None:
    """Rollouts of the older kind look at the standard field only, others also at the property of the same name."""
    names = ("gradualRolloutUserId", "gradualRolloutSessionId")
    old = [feature(name, strategy(name, parameters={"percentage": "99", "groupId": "g"})) for name in names]
    new = [feature(field, rollout(99, groupId="g", stickiness=field)) for field in ("userId", "sessionId", "default")]
    for features in ([*old, *new], [*new, *old]):
        plain, fast = pair(*features)
        for properties in ({"userId": "1"}, {"sessionId": "1"}, {}):
            for user, session in ((None, None), ("2", None), (None, "2")):
                context = Context(user_id=user, session_id=session, properties=properties, entropy=9)
                assert fast.enabled(context) == plain.enabled(context)
        assert classes_of(fast).counts.misses == 0


@pytest.mark.parametrize("odd", [7, b"eu", ("eu",), ["eu"]])
def test_what_is_not_a_text_makes_no_class(odd: Any) -> None:
    """Also where all constraints of now can take it. Those of the next configuration may not, for which a sample is kept."""
    plain, fast = pair(feature("f", strategy("default", constraint("NOT_IN", values=["eu"]))))
    for _ in range(3):
        context = Context(properties={"region": odd})
        assert fast.enabled(context) == plain.enabled(context)
    assert classes_of(fast).known == {} and classes_of(fast).classes.fields[0].values == {}


@pytest.mark.parametrize("field", ["userId", "sessionId", "remoteAddress", "currentTime", "plan"])
def test_a_property_that_no_class_looks_at_and_that_is_not_a_text(field: str) -> None:
    """It turns off a toggle whose first constraint reads it, also where a class decides the second one, and a later strategy."""
    plain, fast = pair(feature("f", strategy("default", constraint("STR_CONTAINS", field, values=["x"]), US), IN_EU))
    odd: Any = {field: 7, "region": "eu"}
    for change in ("none", "dropped", "restored"):
        if change == "dropped":
            classes_of(fast).classes.drop(field)
        elif change == "restored":
            classes_of(fast).classes.restore()
        fast.enabled(Context(properties={"region": "eu"}))
        assert fast.enabled(Context(properties=odd)) == plain.enabled(Context(properties=odd)) == b'{"toggles":[]}'
        assert len(fast.take_faults()) == len(plain.take_faults()) == 1


def test_the_size_of_a_program() -> None:
    """It grows with the steps, with joined bytes, and with the memory of predicates where toggles are evaluated as a whole."""

    def size(*features: object) -> int:
        return program(pair(*features)[1], Context(properties={"region": "eu"})).size

    nothing = size(feature("f", IN_US))
    one = size(feature("f", IN_EU))
    joined = size(*[feature(f"f{at}", IN_EU) for at in range(3)])
    rolled = size(feature("f", HALF))
    whole = size(feature("f", strategy("default", PLAN)), feature("g", strategy("default", PLAN)))
    assert nothing < one < rolled < whole and joined > one + 3 * 50


def test_programs_share_what_is_equal() -> None:
    """Joined fragments that are equal, and the draws of variants, are there once for all programs of a list."""
    regions = ("eu", "us", "asia")
    features: list[object] = [feature(each, strategy("default", constraint("NOT_IN", values=["mars"]))) for each in ("on", "too")]
    features += [feature("half", HALF | {"variants": PAIR})]
    features += [feature(each, strategy("default", constraint("IN", values=[each]))) for each in regions]
    _, fast = pair(*features)
    made = [program(fast, Context(properties={"region": each})) for each in regions]
    assert all(each.admitted[0] is made[0].admitted[0] and each.draws is made[0].draws for each in made)
    assert len(made[0].draws.pieces) == len(PAIR) and made[0].size > made[1].size == made[2].size


def test_shared_fragments_have_a_bound() -> None:
    """When there are many, they are forgotten. Programs keep theirs."""
    shared = SharedPieces()
    first = shared.shared_run(b"run %d" % 0)
    for number in range(MAX_RUNS):
        shared.shared_run(b"run %d" % number)
    assert len(shared.runs) == MAX_RUNS
    assert shared.shared_run(b"run %d" % 0) is not first
    assert len(shared.runs) == 1


def test_what_the_programs_of_a_list_share_goes_with_the_last_of_them() -> None:
    """Each list has its draws and joined fragments while a class has a program of it, also a list of a part."""
    made = pair(feature("f", HALF, variants=PAIR), feature("g", IN_EU))[1]
    store, part = classes_of(made), restrict(made, frozenset({"p"}))
    for properties in ({"region": "eu"}, {"region": "us"}):
        made.enabled(Context(properties=properties))
        part.all(Context(properties=properties))
    assert {each.classes for each in store.shared.values()} == {2}
    assert len(store.shared) == 2 and len(store.containers()) == 2 + len(store.shared)
    for left in (3, 2, 1, 0):
        store.limit = store.taken() - 1
        store.evict()
        marks = [each.mark for each in store.known.values()]
        assert len(marks) == left
        assert {mark: int(each.classes) for mark, each in store.shared.items()} == Counter(marks)
