"""The impact of a change of a strategy agrees with what users get: percentages, and "no user loses it"."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from math import sqrt
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.hashing import STRATEGY_SEED, Identifier, Prefix
from flagsvc.engine.parse import parse_strategy
from flagsvc.reasons.impact import impact_of, share_impact
from flagsvc.reasons.words import Rollout

DRAWN = 100_000
OLD, NEW = "new-checkout", "another group"


def joint_sums() -> list[list[int]]:
    """Return how many of DRAWN identifiers have a bucket of at most p in the old group and at most q in the new one."""
    prefixes = [Prefix(group, STRATEGY_SEED, False) for group in (OLD, NEW)]
    pairs: Counter[tuple[int, ...]] = Counter()
    for number in range(DRAWN):
        identifier = Identifier(f"user-{number}", False)
        pairs[tuple(int(prefix.bucket(identifier, 100)) for prefix in prefixes)] += 1
    sums = [[0] * 101]
    for p in range(1, 101):
        row = list(accumulate(pairs[p, q] for q in range(1, 101)))
        sums.append([0, *(above + own for above, own in zip(sums[-1][1:], row, strict=True))])
    return sums


def test_percentages_agree_with_drawn_identifiers() -> None:
    """For each pair of shares, the percentages are within three standard deviations, but for the chance of 10,000 pairs."""
    sums = joint_sums()
    far = worst = 0.0
    for p in range(101):
        for q in range(101):
            found = share_impact(Rollout(p, "userId", OLD), Rollout(q, "userId", NEW))
            counted = (sums[100][q] - sums[p][q], sums[p][100] - sums[p][q])
            for share, count in zip((found.gained, found.lost), counted, strict=True):
                assert share is not None
                off = abs(count - share / 100 * DRAWN)
                deviation = sqrt(DRAWN * share / 100 * (1 - share / 100))
                assert deviation or not off
                far += bool(deviation) and off > 3 * deviation
                worst = max(worst, off / deviation if deviation else 0.0)
            assert found.may_gain or not counted[0]
            assert found.may_lose or not counted[1]
    assert far / (2 * 101 * 101) < 0.01
    assert worst < 5


def test_a_changed_share_agrees_with_drawn_identifiers() -> None:
    """Where only the share changes, no user is drawn again: exactly those between the two shares get it or lose it."""
    sums = joint_sums()
    for p in range(101):
        for q in range(101):
            found = share_impact(Rollout(p, "userId", OLD), Rollout(q, "userId", OLD))
            counted = sums[max(p, q)][100] - sums[min(p, q)][100]
            share = (found.gained or 0.0) + (found.lost or 0.0)
            assert share == abs(p - q)
            assert abs(counted - share / 100 * DRAWN) <= 5 * sqrt(DRAWN * share / 100 * (1 - share / 100))


OPERATORS = ("IN", "NOT_IN", "STR_STARTS_WITH", "STR_CONTAINS", "STR_ENDS_WITH", "NUM_GT", "IN_CIDR")
FIELDS = ("userId", "company", "remoteAddress")
VALUES = ("1", "2", "12", "a", "10.0.0.0/8", "10.1.0.0/16")


@st.composite
def constraints(draw: st.DrawFn) -> dict[str, Any]:
    """Return a constraint from a small world, so that changes of lists are common."""
    operator = draw(st.sampled_from(OPERATORS))
    values = draw(st.lists(st.sampled_from(VALUES), max_size=3))
    about = {"contextName": draw(st.sampled_from(FIELDS)), "operator": operator, "inverted": draw(st.booleans())}
    if operator == "NUM_GT":
        return about | {"value": draw(st.sampled_from(VALUES))}
    return about | {"values": values, "caseInsensitive": draw(st.booleans())}


def rollouts() -> st.SearchStrategy[dict[str, Any]]:
    """Return strategies of every built-in kind that draws or lists users."""
    parameters = st.fixed_dictionaries(
        {
            "rollout": st.sampled_from(("0", "1", "50", "99", "100")),
            "percentage": st.sampled_from(("0", "50", "100")),
            "stickiness": st.sampled_from(("default", "userId", "sessionId", "company")),
            "groupId": st.sampled_from(("g", "h")),
            "userIds": st.sampled_from(("", "1", "1,2")),
        }
    )
    names = st.sampled_from(
        ("flexibleRollout", "gradualRolloutUserId", "gradualRolloutSessionId", "userWithId", "default")
    )
    return st.fixed_dictionaries(
        {
            "name": names,
            "parameters": parameters,
            "constraints": st.lists(constraints(), max_size=3),
            "segments": st.lists(st.sampled_from((1, 2)), unique=True),
        }
    )


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a strategy, and the same with some parts of another one."""
    before, other = draw(rollouts()), draw(rollouts())
    taken = draw(st.sets(st.sampled_from(sorted(before))))
    after = {name: (other if name in taken else before)[name] for name in before}
    fewer = draw(st.booleans())
    if fewer and after["constraints"]:
        after["constraints"] = draw(st.permutations(after["constraints"]))[1:]
    return before, after


SEGMENTS = [
    {"id": 1, "name": "one", "constraints": [{"contextName": "company", "operator": "IN", "values": ["a"]}]},
    {"id": 2, "name": "two", "constraints": [{"contextName": "userId", "operator": "IN", "values": ["1", "2"]}]},
]
CONTEXTS = [
    Context(
        user_id=user,
        session_id=session,
        remote_address=address,
        properties={} if company is None else {"company": company},
    )
    for user in (None, "1", "2", "12", "33", "a")
    for session in (None, "1", "s")
    for company in (None, "1", "a", "12")
    for address in (None, "10.1.2.3")
    if user or session
]


@given(changes())
def test_no_user_loses_it_is_never_wrong(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Where the impact says that no user gets it or loses it, no context with an identifier does."""
    before, after = pair
    features = [
        {"name": name, "enabled": True, "strategies": [strategy]}
        for name, strategy in zip(("old", "new"), pair, strict=True)
    ]
    snapshot = compile_document({"version": 2, "features": features, "segments": SEGMENTS}, CompileOptions()).snapshot
    found = impact_of(parse_strategy(before, "old"), parse_strategy(after, "new"))
    for context in CONTEXTS:
        was, will = (snapshot.decide(context, name)[0] for name in ("old", "new"))
        assert found.may_gain or was or not will
        assert found.may_lose or will or not was
