"""Odd bytes from other processes of ours: usage that they left in storage.

Storage is trusted to keep what it is given, not to keep it whole; and another version of ours may have written it.
"""

from __future__ import annotations

import json

from hypothesis import strategies as st

from flagsvc.core.errors import StoreError
from flagsvc.proxy.upstream import Identity
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket
from flagsvc.proxy.usage.impact import ImpactKey, ImpactSeries
from flagsvc.proxy.usage.reporter import metrics_body
from flagsvc.proxy.usage.unsent import pack, unpack
from fuzzing import words
from fuzzing.rows import Row

NAMES = ("on", "off", "Ω", "")


def bucket() -> UsageBucket:
    """Return what a process may have counted."""
    tally = ToggleCounts()
    tally.yes, tally.no, tally.variants = 3, 2**60, {"blue": 3, "": 0}
    gauge, sizes = ImpactSeries("how many"), ImpactSeries("how large")
    gauge.samples[(("a", "b"),)] = [2.5, 1_750_000_000.0]
    sizes.samples[()] = [7.5, 3.0, 1.0, 2.0]
    impact = {ImpactKey("Ω", "gauge", ()): gauge, ImpactKey("on", "histogram", (0.5, 5.0)): sizes}
    return UsageBucket(1_750_000_000.0, 1_750_000_060.5, {"on": tally, "Ω": ToggleCounts()}, None, impact)


numbers = st.sampled_from((0, -1, 1.5, 1e18, 1e308, -1e308, 2**63, 10**30, True, None, "7")) | words.scalars
toggles = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(numbers, numbers, st.dictionaries(st.sampled_from(NAMES), numbers, max_size=2)), max_size=3
)
impact = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(("counter", "gauge", "histogram", "x")),
        words.scalars,
        st.lists(numbers, max_size=1),
        st.lists(st.tuples(st.dictionaries(st.sampled_from(NAMES), words.scalars, max_size=1), st.lists(numbers, max_size=3))),
    ),
    max_size=2,
)
usages = st.tuples(numbers, numbers, toggles) | st.tuples(numbers, numbers, toggles, st.none(), impact)
structured = st.fixed_dictionaries(
    {"left": st.booleans(), "beat": numbers, "every": numbers, "usages": st.lists(usages, max_size=2)},
    optional={"version": st.sampled_from((1, 2)) | words.values, "more": words.values},
).map(lambda value: json.dumps(value).encode())
records = words.damaged(st.just(b"".join(pack([bucket(), bucket()], left=False, beat=7, every=30.0)))) | structured | words.texts()


def usage_row(world: object, data: bytes) -> None:
    """A record is refused, or can be merged, sent and stored again."""
    try:
        record = unpack(data)
    except StoreError:
        return
    assert 0 <= record.every < float("inf")
    counters = UsageCounters(lambda: dict.fromkeys(NAMES, frozenset({"blue"})), lambda: 1_750_000_000.0)
    for each in record.buckets():
        body = json.dumps(metrics_body(Identity("app", "instance"), each))
        assert json.loads(body)["bucket"]["toggles"].keys() == each.toggles.keys()
        assert len(json.loads(body).get("impactMetrics", [])) == len(each.impact)
        counters.merge(each)
    left = counters.drain()
    if left is not None:
        [kept] = unpack(b"".join(pack([left], left=True, beat=1, every=1.0))).buckets()
        assert (kept.toggles.keys(), kept.impact.keys()) == (left.toggles.keys(), left.impact.keys())


ROWS: tuple[Row[object], ...] = (Row("usage in storage", records, usage_row, 120),)
