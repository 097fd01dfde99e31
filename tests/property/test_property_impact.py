"""Impact metrics over any sequence of reports, posts that fail and ways through workers: none is invented, none is lost.

The impact of a change of a strategy agrees with what users get: percentages, and "no user loses it".
The impact of a change of variants agrees with what the engine gives to drawn users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.hashing import STRATEGY_SEED, Identifier, Prefix
from flagsvc.engine.parse import parse_strategy
from flagsvc.http.reports import GAUGE
from flagsvc.proxy.usage import ImpactKey, ImpactSample, UsageBucket, UsageCounters, UsageSource
from flagsvc.proxy.usage.impact import combine
from flagsvc.proxy.usage.unsent import from_wire, pack, to_wire, unpack
from flagsvc.reasons.impact import Draw, impact_of, share_impact, variant_impact
from flagsvc.reasons.words import Rollout

COUNTER_KEY = ImpactKey("sales", "counter", ())
GAUGE_KEY = ImpactKey("load", "gauge", ())
HISTOGRAM_KEYS = (ImpactKey("time", "histogram", (0.5, 5.0)), ImpactKey("time", "histogram", (1.0,)))
LABELS = ((), (("appName", "shop"),), (("appName", "shop"), ("on", "enabled")))
SOURCES = (None, UsageSource("shop", "one"), UsageSource("shop", "two"))
NUMBERS = st.integers(0, 1_000_000).map(lambda number: number / 4)
"""Fractions whose sums are exact in any order."""


def values_of(key: ImpactKey) -> st.SearchStrategy[list[float]]:
    """Return values for a sample of a metric."""
    size = 2 + len(key.bounds) if key.kind == "histogram" else 1
    return st.lists(NUMBERS, min_size=size, max_size=size)


def samples(keys: Iterable[ImpactKey]) -> st.SearchStrategy[ImpactSample]:
    """Return samples of some metrics."""
    return st.sampled_from(list(keys)).flatmap(
        lambda key: st.builds(ImpactSample, st.just(key), st.just("help"), st.sampled_from(LABELS), values_of(key))
    )


SUMMED = samples((COUNTER_KEY, *HISTOGRAM_KEYS))
PAIRS = st.tuples(NUMBERS, NUMBERS).map(list)


@given(PAIRS, PAIRS, PAIRS, st.sampled_from(["counter", "gauge", "histogram"]))
def test_merging_is_associative(one: list[float], two: list[float], three: list[float], kind: str) -> None:
    """It does not matter which of three posts in a row are merged first. For sums the order does not matter either."""
    left, right, rest = list(one), list(one), list(two)
    combine(kind, left, two)
    combine(kind, left, three)
    combine(kind, rest, three)
    combine(kind, right, rest)
    assert left == right
    if kind != GAUGE:
        back = list(three)
        combine(kind, back, two)
        combine(kind, back, one)
        assert back == left


class Clock:
    """A clock that goes on with each look."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        self.time += 1
        return self.time


def drained(counters: UsageCounters) -> list[UsageBucket]:
    """Take all buckets of some counters."""
    own = counters.drain()
    return [*([] if own is None else [own]), *counters.drain_sources()]


def totals(buckets: Iterable[UsageBucket]) -> Counter[object]:
    """Return the sum of each number, by source, metric, labels and place."""
    found: Counter[object] = Counter()
    for bucket in buckets:
        for key, series in bucket.impact.items():
            for labels, values in series.samples.items():
                found.update({(bucket.source, key, labels, at): value for at, value in enumerate(values)})
    return found


REPORTS = st.lists(st.tuples(SUMMED, st.sampled_from(SOURCES)), max_size=10)
WAYS = st.sampled_from(["sent", "failed", "stored"])


@given(st.lists(st.tuples(st.integers(0, 1), REPORTS, WAYS), max_size=8))
def test_sums_are_conserved(rounds: list[tuple[int, list[tuple[ImpactSample, UsageSource | None]], str]]) -> None:
    """What was measured is what was sent, through two workers, failed posts and storage, under the name of its application."""
    clock = Clock()
    workers = [UsageCounters(dict, clock) for _ in range(2)]
    parent = UsageCounters(dict, clock)
    sent: list[UsageBucket] = []
    expected: Counter[object] = Counter()
    for worker, reports, way in rounds:
        for sample, source in reports:
            workers[worker].add_impact(sample, source)
            expected.update({(source, sample.key, sample.labels, at): value for at, value in enumerate(sample.values)})
        for bucket in drained(workers[worker]):
            parent.merge(from_wire(to_wire(bucket)))
        buckets = drained(parent)
        if way == "sent":
            sent += buckets
            continue
        if way == "stored":
            buckets = unpack(b"".join(pack(buckets, left=True, beat=1, every=1.0))).buckets()
        for bucket in buckets:
            parent.merge(bucket)
    sent += drained(parent)
    assert +totals(sent) == +expected
    assert parent.entries == parent.full == 0


@given(st.lists(st.tuples(st.integers(0, 1), NUMBERS, st.booleans()), min_size=1, max_size=10), st.data())
def test_the_last_value_of_a_gauge_counts(reports: list[tuple[int, float, bool]], data: st.DataObject) -> None:
    """In any order in which workers send what they measured, and also if posts fail."""
    clock = Clock()
    workers = [UsageCounters(dict, clock) for _ in range(2)]
    parent = UsageCounters(dict, clock)
    waiting: list[UsageBucket] = []
    for worker, value, fails in reports:
        workers[worker].add_impact(ImpactSample(GAUGE_KEY, "help", (), [value]))
        waiting += drained(workers[worker])
        if fails:
            waiting += drained(parent)
    for bucket in data.draw(st.permutations(waiting)):
        parent.merge(bucket)
    [last] = drained(parent)
    assert last.impact[GAUGE_KEY].samples[()][0] == reports[-1][1]


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
    names = st.sampled_from(("flexibleRollout", "gradualRolloutUserId", "gradualRolloutSessionId", "userWithId", "default"))
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
    Context(user_id=user, session_id=session, remote_address=address, properties={} if company is None else {"company": company})
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
        {"name": name, "enabled": True, "strategies": [strategy]} for name, strategy in zip(("old", "new"), pair, strict=True)
    ]
    snapshot = compile_document({"version": 2, "features": features, "segments": SEGMENTS}, CompileOptions()).snapshot
    found = impact_of(parse_strategy(before, "old"), parse_strategy(after, "new"))
    for context in CONTEXTS:
        was, will = (snapshot.decide(context, name)[0] for name in ("old", "new"))
        assert found.may_gain or was or not will
        assert found.may_lose or will or not was


DRAWN_USERS = 20_000


def strategy(group: str, field: str, **weights: int) -> dict[str, Any]:
    """Return a strategy for everyone with variants of these weights."""
    variants = [{"name": name, "weight": weight, "stickiness": field} for name, weight in weights.items()]
    parameters = {"rollout": "100", "stickiness": "default", "groupId": group}
    return {"name": "flexibleRollout", "parameters": parameters, "variants": variants}


def draw(given: dict[str, Any]) -> Draw:
    """Return the draw of a strategy's variants."""
    spec = parse_strategy(given, "strategy")
    return Draw(spec.variants, spec.parameters["groupId"], spec.variants[0].stickiness or "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (strategy("g", "userId", a=500, b=500), strategy("g", "userId", a=433, b=67, c=500)),
        (strategy("g", "userId", a=100, b=200, c=700), strategy("g", "default", b=200, c=300, d=500)),
        (strategy("g", "default", a=500, b=500), strategy("h", "userId", a=250, b=750)),
        (strategy("g", "userId", a=500, b=500), strategy("g", "company", a=500, b=300, c=200)),
        (strategy("g", "userId", a=1000), strategy("h", "company", a=334, b=333, c=333)),
        (strategy("g", "userId", a=200, b=0, c=800), strategy("h", "userId", b=1000)),
    ],
)
def test_percentages_agree_with_drawn_users(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Each percentage is within four standard deviations of what drawn users get, and no other user changes."""
    features = [{"name": name, "enabled": True, "strategies": [each]} for name, each in (("old", before), ("new", after))]
    snapshot = compile_document({"version": 2, "features": features, "segments": []}, CompileOptions()).snapshot
    moves: Counter[tuple[str, str]] = Counter()
    for number in range(DRAWN_USERS):
        context = Context(user_id=f"user-{number}", properties={"company": f"company-{number}"})
        was, will = (snapshot.decide(context, name)[1] for name in ("old", "new"))
        if was != will:
            moves[was, will] += 1
    found = variant_impact(draw(before), draw(after)).moves
    assert found.keys() == moves.keys()
    for pair, share in found.items():
        assert abs(moves[pair] - share / 100 * DRAWN_USERS) <= 4 * sqrt(DRAWN_USERS * share / 100 * (1 - share / 100))
