"""Counting how often each toggle was on and off."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from time import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.reports import MAX_COUNT
from flagsvc.proxy.upstream import Identity
from flagsvc.proxy.usage import ImpactKey, ImpactSample, UsageBucket, UsageCounters, UsageSource
from flagsvc.proxy.usage.counters import MAX_REGISTRATIONS, MAX_SOURCES
from flagsvc.proxy.usage.reporter import metrics_body

KNOWN = {"plain": frozenset({"disabled"}), "varied": frozenset({"disabled", "red", "blue"})}


def counters(most: int = 1000, now: Sequence[float] = (100.0,)) -> UsageCounters:
    """Return counters over a small configuration; the time is the last of `now`."""
    return UsageCounters(lambda: dict(KNOWN), lambda: now[-1], max_entries=most, max_bytes=1_000_000)


def read(bucket: UsageBucket | None) -> dict[str, tuple[int, int, dict[str, int]]]:
    return {} if bucket is None else {name: (t.yes, t.no, t.variants) for name, t in bucket.toggles.items()}


def test_a_long_look_up_counts_what_short_ones_do() -> None:
    """This includes repeated names, unknown names and names that do not fit."""
    names = ["plain", "varied", "nobody", "plain"] * 50
    states = [at % 3 == 0 for at in range(len(names))]
    for most in (1000, 1, 0):
        long, short = counters(most), counters(most)
        long.count_all(names, states)
        for name, state in zip(names, states, strict=True):
            short.count(name, state)
        assert (long.unknown, short.unknown) == (50, 50)
        assert read(long.drain()) == read(short.drain())
        assert (long.full > 0) is (short.full > 0) is (most < 2)


def test_sums_stop_at_the_largest_number() -> None:
    """Whatever callers report, the counts can be stored, sent and read by a flag server."""
    counted = counters()
    for _ in range(3):
        counted.add("varied", MAX_COUNT, MAX_COUNT - 1, {"red": MAX_COUNT})
    bucket = counted.drain()
    assert read(bucket) == {"varied": (MAX_COUNT, MAX_COUNT, {"red": MAX_COUNT})}
    assert bucket is not None
    counted.add("varied", MAX_COUNT, 1, {"red": 1})
    counted.merge(bucket)
    assert read(counted.drain()) == {"varied": (MAX_COUNT, MAX_COUNT, {"red": MAX_COUNT})}


def test_a_bucket_tells_its_time() -> None:
    """A bucket has the time from the last drain to this one. An interval without counts has no bucket."""
    now = [100.0]
    usage = counters(now=now)
    now.append(110.0)
    assert usage.drain() is None
    now.append(120.0)
    usage.count("plain", True)
    now.append(130.0)
    bucket = usage.drain()
    assert bucket is not None and (bucket.start, bucket.stop) == (110.0, 130.0)


def test_the_bound_holds_on_every_way_in() -> None:
    """Entries over the limit are dropped and counted; existing ones still count."""
    usage = counters(most=2)
    usage.add("varied", 1, 0, {"red": 1, "blue": 1})
    assert usage.full == 1
    usage.count("plain", True)
    usage.add("plain", 1, 1, {"disabled": 1})
    assert usage.full == 1 + 1 + 2
    usage.add("varied", 1, 0, {"red": 1})
    full = usage.drain()
    assert read(full) == {"varied": (2, 0, {"red": 2})}
    assert full is not None
    usage.add("plain", 1, 0, {"disabled": 1})
    full_before = usage.full
    usage.merge(full)
    assert read(usage.drain()) == {"plain": (1, 0, {"disabled": 1})}
    assert usage.full == full_before + 2


def test_bytes_are_bounded_as_well() -> None:
    """The limit is the approximate size in a post, with names in UTF-8. Sending makes room, and merging uses it."""
    name, long = "a" * 30, "ü" * 500
    known = {name: frozenset({"v" * 80}), long: frozenset[str]()}
    usage = UsageCounters(lambda: known, time, max_bytes=100 + 100 + 100)
    usage.count(long, True)
    assert (usage.full, usage.entries) == (1, 0)
    usage.add(name, 1, 0, {"v" * 80: 1})
    assert (usage.full, usage.entries) == (1, 2)
    sent = usage.drain()
    assert sent is not None and usage.entries == 0
    usage.merge(sent)
    assert (usage.full, usage.entries) == (1, 2)
    tight = UsageCounters(lambda: known, time, max_bytes=199)
    tight.merge(sent)
    assert (tight.full, tight.entries) == (1, 1)


def test_the_bytes_are_about_those_of_a_post() -> None:
    """For all counts up to the largest, a post is not larger than the estimate, and not much smaller."""
    names = {f"some-toggle-{number}": frozenset({"blue", "green"}) for number in range(200)}
    most = 20_000
    usage = UsageCounters(lambda: names, time, max_bytes=most)
    for name in names:
        usage.add(name, 2**53 - 1, 2**53 - 1, {"blue": 2**53 - 1, "green": 2**53 - 1})
    bucket = usage.drain()
    assert bucket is not None and usage.full > 0
    body = json.dumps(metrics_body(Identity("", "", ""), bucket)["bucket"], separators=(",", ":"))
    assert most * 0.9 < len(body) < most + 100


def test_looking_changes_nothing() -> None:
    """`peek` returns the counts so far, and `drain` still returns them."""
    now = [100.0]
    usage = counters(now=now)
    assert read(usage.peek()) == {}
    usage.count("plain", True)
    now.append(105.0)
    seen = usage.peek()
    assert (read(seen), seen.start, seen.stop) == ({"plain": (1, 0, {})}, 100.0, 105.0)
    assert read(usage.drain()) == {"plain": (1, 0, {})}
    assert read(usage.peek()) == {}


def test_what_is_left_out_leaves_nothing_behind() -> None:
    """Counts of a toggle that does not fit, its variants included, are nowhere; nor do they come back when there is room."""
    usage = counters(most=1)
    usage.count("plain", True)
    usage.add("varied", 1, 1, {"red": 5, "blue": 5, "someone@example.com": 1})
    assert (usage.full, usage.unknown) == (3, 1)
    usage.drain()
    usage.add("varied", 1, 0, {})
    assert read(usage.drain()) == {"varied": (1, 0, {})}


COUNTS = st.tuples(st.sampled_from([*KNOWN, "unknown"]), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))


@given(st.lists(st.lists(COUNTS)), st.data())
def test_nothing_is_lost_and_nothing_is_made_up(rounds: list[list[tuple[str, int, int, int]]], data: st.DataObject) -> None:
    """For any sequence of counting, draining and merging, sent and remaining counts add up to the total."""
    expected: Counter[Any] = Counter()
    sent: Counter[Any] = Counter()
    usage = counters()
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


def flat(bucket: UsageBucket | None) -> Counter[tuple[str, str]]:
    """Return a bucket's counts by toggle and kind."""
    counts: Counter[tuple[str, str]] = Counter()
    for name, (yes, no, variants) in read(bucket).items():
        counts.update({(name, "yes"): yes, (name, "no"): no, **{(name, v): n for v, n in variants.items()}})
    return counts


def test_applications_are_counted_apart() -> None:
    """Each source has a bucket of its own, as the proxy has; unknown names are left out of all of them."""
    usage = counters()
    shop, other = UsageSource("shop", "one"), UsageSource("other", "one")
    usage.count("plain", True)
    usage.add("varied", 2, 1, {"red": 2, "nothing": 1}, shop)
    usage.add("varied", 1, 0, {}, other)
    usage.add("nobody", 1, 0, {}, shop)
    assert (usage.entries, usage.unknown) == (4, 2)
    seen = {bucket.source: read(bucket) for bucket in usage.peek_sources()}
    assert seen == {shop: {"varied": (2, 1, {"red": 2})}, other: {"varied": (1, 0, {})}}
    assert read(usage.drain()) == {"plain": (1, 0, {})}
    assert usage.entries == 3, "the other counts are still there"
    assert {bucket.source: read(bucket) for bucket in usage.drain_sources()} == seen
    assert (usage.entries, usage.drain(), usage.drain_sources()) == (0, None, [])


def test_too_many_applications_count_as_the_proxy() -> None:
    """Neither their counts nor their impact metrics are lost, and the memory stays bounded."""
    usage, key = counters(10_000), ImpactKey("sales", "counter", ())
    for number in range(MAX_SOURCES + 2):
        usage.add("plain", 1, 0, {}, UsageSource("shop", str(number)))
        usage.add_impact(ImpactSample(key, "help", (), [1.0]), UsageSource("shop", str(number)))
    assert len(usage.peek_sources()) == MAX_SOURCES
    bucket = usage.drain()
    assert bucket is not None and read(bucket) == {"plain": (2, 0, {})}
    assert bucket.impact[key].samples == {(): [2.0]}


def test_registrations() -> None:
    """The last registration of an instance counts; too many are left out and counted; they are taken once."""
    usage = counters()
    shop = UsageSource("shop", "one")
    usage.register(shop, {"a": 1})
    usage.register(shop, {"a": 2})
    for number in range(MAX_REGISTRATIONS):
        usage.register(UsageSource("many", str(number)), {})
    assert usage.full == 1
    usage.register(shop, {"a": 3})
    found = usage.take_registrations()
    assert (found[shop], len(found)) == ({"a": 3}, MAX_REGISTRATIONS)
    assert usage.take_registrations() == {}
