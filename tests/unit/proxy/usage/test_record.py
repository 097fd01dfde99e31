"""Counts as bytes."""

from __future__ import annotations

import msgspec
import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.usage import ImpactKey, ImpactSample, UsageBucket, UsageCounters, UsageSource
from flagsvc.proxy.usage.unsent import PIECE_ENTRIES, UnsentRecord, UsageWindow, pack, to_wire, unpack


def bucket(start: float = 5.0) -> UsageBucket:
    now = iter((start, start + 1))
    counters = UsageCounters(lambda: {"a": (), "b": ("v",)}, lambda: next(now))
    counters.count("a", True)
    counters.add("b", 2, 3, {"v": 4})
    drained = counters.drain()
    assert drained is not None
    return drained


def measured(samples: int = 1) -> UsageBucket:
    """Return a bucket of an application's impact metrics, with so many samples of its counter."""
    counters = UsageCounters(dict, lambda: 5.0)
    source = UsageSource("shop", "one")
    for number in range(samples):
        labels = (("appName", "shop"), ("number", str(number)))
        counters.add_impact(ImpactSample(ImpactKey("sales", "counter", ()), "Sales.", labels, [2.5]), source)
    counters.add_impact(ImpactSample(ImpactKey("load", "gauge", ()), "Load.", (), [-1.0]), source)
    histogram = ImpactKey("time", "histogram", (0.5, 5.0))
    counters.add_impact(ImpactSample(histogram, "Time.", (), [7.5, 3.0, 1.0, 2.0]), source)
    [made] = counters.drain_sources()
    return made


def read_impact(found: UsageBucket) -> object:
    return {key: (series.help, series.samples) for key, series in found.impact.items()}


def packed(buckets: list[UsageBucket], *, left: bool = False, every: float = 1.0) -> bytes:
    return b"".join(pack(buckets, left=left, beat=7, every=every))


def large(toggles: int, variants: int) -> UsageBucket:
    """Return a bucket of so many toggles with so many variants each."""
    known = {f"toggle-{number}": tuple(f"v{each}" for each in range(variants)) for number in range(toggles)}
    counters = UsageCounters(lambda: known, lambda: 5.0)
    for name, names in known.items():
        counters.add(name, 1, 2, dict.fromkeys(names, 3))
    return counters.peek()


def read(found: UsageBucket) -> object:
    return found.start, found.stop, {name: (t.yes, t.no, t.variants) for name, t in found.toggles.items()}


def test_a_record_survives() -> None:
    """All buckets stay separate, and the record keeps the data about its process."""
    record = unpack(packed([bucket(), bucket(100.0)], left=True, every=30.0))
    assert (record.left, record.beat, record.every) == (True, 7, 30.0)
    assert [read(each) for each in record.buckets()] == [read(bucket()), read(bucket(100.0))]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"flagsvc":1,"etag":null}\n{}',
        packed([], left=True).replace(b'"version":1', b'"version":2'),
        packed([bucket()], left=True).replace(b'"v":4', b'"v":-4'),
        packed([bucket()], left=True).replace(b'"v":4', b'"v":"4"'),
        packed([bucket()], left=True)[:-1],
        packed([measured()], left=True).replace(b"[7.5,3.0,", b"[3.0,"),
        packed([measured()], left=True).replace(b"[7.5,3.0,", b"[1e300,3.0,"),
        packed([measured()], left=True).replace(b'"gauge"', b'"counter"'),
        packed([measured()], left=True).replace(b'"gauge"', b'"summary"'),
    ],
)
def test_other_data_are_no_record(data: bytes) -> None:
    """Data of another program, a later version or with impossible counts are refused."""
    with pytest.raises(StoreError, match="no usage metrics"):
        unpack(data)


def test_what_is_written_is_short() -> None:
    """Usage is written as a list: it goes up from every worker twenty times a second."""
    assert isinstance(to_wire(bucket()), UsageWindow)
    assert b'[5.0,6.0,{"a":[1,0,{}],"b":[2,3,{"v":4}]},null,[]]' in packed([bucket()])


@pytest.mark.parametrize(
    ("toggles", "variants"), [(0, 0), (PIECE_ENTRIES - 1, 0), (PIECE_ENTRIES, 0), (PIECE_ENTRIES + 1, 0), (4 * PIECE_ENTRIES, 2)]
)
def test_a_large_record_is_written_in_pieces(toggles: int, variants: int) -> None:
    """Each a moment's work, and together what would be written at once."""
    buckets = [large(toggles, variants), bucket(), large(toggles, variants)]
    made = list(pack(buckets, left=False, beat=7, every=1.0))
    whole = UnsentRecord(left=False, beat=7, every=1.0, usages=[to_wire(each) for each in buckets])
    assert b"".join(made) == msgspec.json.encode(whole)
    assert max(piece.count(b"[1,2,") for piece in made) <= PIECE_ENTRIES // (1 + variants) + 1
    assert len(made) >= 2 * (toggles * (1 + variants) // PIECE_ENTRIES)


def test_what_is_counted_while_a_record_is_written() -> None:
    """It is in it or not; the record is whole either way."""
    known = {f"toggle-{number}": () for number in range(3 * PIECE_ENTRIES)}
    counters = UsageCounters(lambda: known, lambda: 5.0)
    made = []
    for number in range(2 * PIECE_ENTRIES):
        counters.count(f"toggle-{number}", True)
    for piece in pack([counters.peek()], left=False, beat=7, every=1.0):
        made.append(piece)
        for number in range(3 * PIECE_ENTRIES):
            counters.count(f"toggle-{number}", True)
    [found] = unpack(b"".join(made)).buckets()
    assert len(found.toggles) in (2 * PIECE_ENTRIES, 3 * PIECE_ENTRIES) and all(tally.yes >= 1 for tally in found.toggles.values())


def test_impact_metrics_survive() -> None:
    """They come out as they were measured, with the moments of gauges; they can be measured while a record is written."""
    made = measured(3)
    [kept] = unpack(packed([made])).buckets()
    assert (kept.source, read_impact(kept)) == (made.source, read_impact(made))
    whole = UnsentRecord(left=False, beat=7, every=1.0, usages=[to_wire(bucket()), to_wire(made)])
    assert packed([bucket(), made]) == msgspec.json.encode(whole)
    pieces = []
    for piece in pack([made], left=False, beat=7, every=1.0):
        pieces.append(piece)
        made.impact.clear()
    assert unpack(b"".join(pieces)).usages[0].impact == []


@pytest.mark.parametrize(("more", "source"), [(b"", None), (b',["shop","one"]', UsageSource("shop", "one"))])
def test_a_record_of_an_earlier_version(more: bytes, source: UsageSource | None) -> None:
    """A record without applications is the proxy's. A record without impact metrics gives no impact metrics."""
    data = b'{"version":1,"left":true,"beat":7,"every":1.0,"usages":[[5.0,6.0,{"a":[1,0,{}]}' + more + b"]]}"
    [old] = unpack(data).buckets()
    assert (old.source, old.impact, read(old)) == (source, {}, (5.0, 6.0, {"a": (1, 0, {})}))
