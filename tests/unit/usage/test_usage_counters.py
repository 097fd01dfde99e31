"""Counting how often each toggle was on and off."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.usage import Bucket, UsageCounters

KNOWN = {"plain": frozenset({"disabled"}), "varied": frozenset({"disabled", "red", "blue"})}


class Now:
    """A clock hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.time


def counters(most: int = 1000, now: Now | None = None) -> UsageCounters:
    """Return counters over a small configuration."""
    return UsageCounters(KNOWN.get, now or Now(), most=most)


def read(bucket: Bucket | None) -> dict[str, tuple[int, int, dict[str, int]]]:
    """Return what a bucket holds."""
    return {} if bucket is None else {name: (t.yes, t.no, t.variants) for name, t in bucket.toggles.items()}


def test_answers_are_counted_by_toggle() -> None:
    """Yes and no apart, each name apart; draining begins anew."""
    usage = counters()
    for name, enabled in (("plain", True), ("plain", False), ("plain", True), ("varied", False)):
        usage.count(name, enabled)
    assert read(usage.drain()) == {"plain": (2, 1, {}), "varied": (0, 1, {})}
    assert usage.drain() is None


def test_unknown_names_and_variants_are_dropped_and_counted() -> None:
    """A caller must not be able to send anything upstream by naming a toggle after it."""
    usage = counters()
    usage.count("someone@example.com", True)
    usage.add("10.1.2.3", 5, 5, {"red": 1})
    usage.add("varied", 3, 1, {"red": 2, "someone@example.com": 1, "disabled": 1})
    assert read(usage.drain()) == {"varied": (3, 1, {"red": 2, "disabled": 1})}
    assert usage.dropped == 1 + 2 + 1


def test_what_clients_counted_is_added() -> None:
    """To what the proxy counted itself, variant by variant."""
    usage = counters()
    usage.count("varied", True)
    usage.add("varied", 3, 1, {"red": 2})
    usage.add("varied", 1, 0, {"red": 1, "blue": 4})
    assert read(usage.drain()) == {"varied": (5, 1, {"red": 3, "blue": 4})}


def test_a_bucket_tells_its_time() -> None:
    """From the last draining to this one; an interval in which nothing happened belongs to no bucket."""
    now = Now()
    usage = counters(now=now)
    now.time = 110.0
    assert usage.drain() is None
    now.time = 120.0
    usage.count("plain", True)
    now.time = 130.0
    bucket = usage.drain()
    assert bucket is not None and (bucket.start, bucket.stop) == (110.0, 130.0)


def test_a_bucket_that_could_not_be_sent_is_merged() -> None:
    """Counts add up, and the time goes back to the older start."""
    now = Now()
    usage = counters(now=now)
    usage.add("varied", 1, 2, {"red": 1})
    now.time = 110.0
    lost = usage.drain()
    assert lost is not None
    usage.add("varied", 10, 20, {"red": 10, "blue": 5})
    usage.count("plain", False)
    now.time = 120.0
    usage.merge(lost)
    bucket = usage.drain()
    assert read(bucket) == {"varied": (11, 22, {"red": 11, "blue": 5}), "plain": (0, 1, {})}
    assert bucket is not None and (bucket.start, bucket.stop) == (100.0, 120.0)
    assert usage.dropped == 0


def test_the_bound_holds_on_every_way_in() -> None:
    """Toggles and variants over it are dropped and counted; what is there already goes on being counted."""
    usage = counters(most=2)
    usage.add("varied", 1, 0, {"red": 1, "blue": 1})
    assert usage.dropped == 1
    usage.count("plain", True)
    usage.add("plain", 1, 1, {"disabled": 1})
    assert usage.dropped == 1 + 1 + 2
    usage.add("varied", 1, 0, {"red": 1})
    full = usage.drain()
    assert read(full) == {"varied": (2, 0, {"red": 2})}
    assert full is not None
    usage.add("plain", 1, 0, {"disabled": 1})
    dropped = usage.dropped
    usage.merge(full)
    assert read(usage.drain()) == {"plain": (1, 0, {"disabled": 1})}
    assert usage.dropped == dropped + 2


def test_a_bucket_that_is_given_up_is_counted() -> None:
    """By its entries."""
    usage = counters()
    usage.add("varied", 1, 0, {"red": 1, "blue": 1})
    usage.count("plain", True)
    bucket = usage.drain()
    assert bucket is not None
    usage.drop(bucket)
    assert usage.dropped == bucket.entries() == 4


COUNTS = st.tuples(st.sampled_from([*KNOWN, "unknown"]), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))


@given(st.lists(st.lists(COUNTS)), st.data())
def test_nothing_is_lost_and_nothing_is_made_up(
    rounds: list[list[tuple[str, int, int, int]]], data: st.DataObject
) -> None:
    """Over any sequence of counting, draining and merging, what was sent and what is left make what was counted."""
    usage, expected, sent = counters(), Counter(), Counter()
    for reports in rounds:
        for name, yes, no, red in reports:
            usage.add(name, yes, no, {"red": red})
            known = KNOWN.get(name)
            if known is not None:
                expected.update({(name, "yes"): yes, (name, "no"): no})
            if known is not None and "red" in known:
                expected[name, "red"] += red
        bucket = usage.drain()
        if bucket is not None and data.draw(st.booleans()):
            usage.merge(bucket)
        elif bucket is not None:
            sent.update(flat(bucket))
    sent.update(flat(usage.drain()))
    assert +sent == +expected


def flat(bucket: Bucket | None) -> Counter[tuple[str, str]]:
    """Return a bucket's counts by toggle and kind."""
    counts: Counter[tuple[str, str]] = Counter()
    for name, (yes, no, variants) in read(bucket).items():
        counts.update({(name, "yes"): yes, (name, "no"): no, **{(name, v): n for v, n in variants.items()}})
    return counts
