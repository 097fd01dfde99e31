"""Posts of a size that the upstream accepts, and the effect of its answers."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import SPEC_VERSION, Identity
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket, UsageSource
from flagsvc.proxy.usage.impact import ImpactKey, ImpactSeries
from flagsvc.proxy.usage.reporter import MAX_POSTS, UsageSender, first_batch, metrics_body, remove_batch
from flagsvc.proxy.usage.unsent import make_counts
from flagsvc.testing import RecordingUpstream

TOO_LARGE = UpstreamError("unexpected", "x", status=413)
DOWN = UpstreamError("network", "nobody there")


def bucket(sizes: Mapping[str, int], impact: Mapping[str, int] | None = None) -> UsageBucket:
    """Return a bucket of toggles with so many variants, and of impact metrics with so many samples."""
    toggles = {name: make_counts(1, 2, {str(number): 3 for number in range(size)}) for name, size in sizes.items()}
    made = UsageBucket(5.0, 6.0, toggles)
    for name, size in (impact or {}).items():
        series = made.impact[ImpactKey(name, "counter", ())] = ImpactSeries("help")
        series.samples = {(("label", str(number)),): [1.0] for number in range(size)}
    return made


def impact_names(payload: Mapping[str, object]) -> list[str]:
    """Return the names of the impact metrics of a post."""
    return [metric["name"] for metric in payload.get("impactMetrics", [])]  # type: ignore[attr-defined]


class Upstream(RecordingUpstream):
    """Takes posts of at most so many bytes."""

    def __init__(self, most: int = 10**9) -> None:
        super().__init__()
        self.batch_size = most

    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        """Write down, or say that it is too large."""
        if len(json.dumps([payload["bucket"], *impact_names(payload)])) > self.batch_size:
            self.faults.insert(0, TOO_LARGE)
        await super().send_metrics(payload)

    @property
    def names(self) -> list[list[str]]:
        """The toggles of each post that was taken."""
        return [list(payload["bucket"]["toggles"]) for payload in self.metrics]  # type: ignore[index]


class World:
    """A sender with a fake upstream."""

    def __init__(self, upstream: Upstream | None = None, batch: int = 10) -> None:
        self.upstream = upstream or Upstream()
        self.refused: list[str] = []
        self.answered = AsyncMock()
        self.sender = UsageSender(
            self.upstream,
            Identity("app", "instance", "connection"),
            batch=batch,
            refuse=lambda bucket: self.refused.extend([*bucket.toggles, *(key.name for key in bucket.impact)]),
        )


async def test_a_large_bucket_is_cut_into_posts() -> None:
    """A post has at most `batch` entries, and a toggle is never split. A larger toggle goes alone."""
    world, counted = World(batch=4), bucket({"a": 1, "b": 1, "c": 9, "d": 0, "e": 2, "f": 0})
    assert await world.sender.send(counted, world.answered) is None
    assert world.upstream.names == [["a", "b"], ["c"], ["d", "e"], ["f"]]
    assert (counted.toggles, world.answered.await_count) == ({}, 4)


async def test_what_is_answered_for_is_not_sent_again() -> None:
    """After a failure, posts with an answer are out of the bucket, and the rest is in it."""
    world, counted = World(batch=1), bucket({"a": 0, "b": 0, "c": 0})

    async def fail_after_one() -> None:
        world.upstream.faults = [DOWN]

    assert await world.sender.send(counted, fail_after_one) is DOWN
    assert (world.upstream.names, list(counted.toggles)) == ([["a"]], ["b", "c"])


async def test_a_post_that_is_too_large_is_cut() -> None:
    """The post is halved until the upstream accepts it. Nothing is lost, and nothing is sent twice."""
    names = [f"toggle-{number}" for number in range(40)]
    world, counted = World(Upstream(600), batch=1000), bucket(dict.fromkeys(names, 0))
    assert await world.sender.send(counted, world.answered) is None
    assert [name for each in world.upstream.names for name in each] == names
    assert world.refused == [] and len(world.upstream.attempts) - len(world.upstream.metrics) <= 6
    assert world.answered.await_count == len(world.upstream.metrics)


async def test_a_toggle_that_is_too_large_by_itself_is_given_up() -> None:
    """It alone: it would be refused for ever, and everything counted later with it."""
    world, counted = World(Upstream(400), batch=1000), bucket({"a": 0, "b": 0, "huge": 100, "c": 0, "d": 0})
    assert await world.sender.send(counted, world.answered) is not None
    assert sorted(name for each in world.upstream.names for name in each) == ["a", "b", "c", "d"]
    assert (world.refused, counted.toggles) == (["huge"], {})


async def test_posts_become_larger_again() -> None:
    """A limit that somebody has raised is found, little by little, and never more is sent at once than was asked for."""
    world = World(Upstream(), batch=100)
    world.sender.batch_size = 1
    sizes = []
    for _ in range(60):
        await world.sender.send(bucket({"a": 0}), world.answered)
        sizes.append(world.sender.batch_size)
    assert sizes == sorted(sizes) and sizes[:3] == [2, 3, 4] and sizes[-1] == 100


@pytest.mark.parametrize("status", [400, 405, 422])
async def test_counts_that_will_never_be_taken_are_given_up(status: int) -> None:
    """Only the refused post is discarded; the others are sent."""
    world, counted = World(batch=2), bucket({"a": 0, "b": 0, "c": 0})
    world.upstream.faults = [UpstreamError("unexpected", "x", status=status)]
    error = await world.sender.send(counted, world.answered)
    assert error is not None and error.status == status
    assert (world.refused, world.upstream.names, counted.toggles) == (["a", "b"], [["c"]], {})


async def test_there_is_an_end() -> None:
    """One round has a limited number of posts; the rest waits for the next round."""
    world, counted = World(batch=1), bucket({str(number): 0 for number in range(MAX_POSTS + 5)})
    assert await world.sender.send(counted, world.answered) is None
    assert len(counted.toggles) == 5
    assert await world.sender.send(counted, world.answered) is None
    assert (len(world.upstream.metrics), counted.toggles) == (MAX_POSTS + 5, {})


SIZES = st.dictionaries(st.text(max_size=3), st.integers(1, 5))


@given(SIZES, SIZES, st.integers(1, 8))
def test_cutting_loses_nothing(sizes: dict[str, int], impact: dict[str, int], most: int) -> None:
    """The batches of a bucket, one after the other, are the bucket; each but a lonely toggle or metric keeps the bound."""
    counted, found = bucket(sizes, impact), []
    while counted.parts():
        batch = first_batch(counted, most)
        assert batch.parts() and (batch.entries() <= most or batch.parts() == 1)
        found += [(name, len(tally.variants)) for name, tally in batch.toggles.items()]
        found += [(key.name, len(series.samples)) for key, series in batch.impact.items()]
        remove_batch(counted, batch)
    assert found == [*sizes.items(), *impact.items()]


async def test_impact_metrics_fill_posts_after_the_toggles() -> None:
    """A metric is never split, because the real server forgets its values when samples with other labels come alone."""
    world, counted = World(batch=4), bucket({"a": 1, "b": 0}, {"one": 1, "two": 9, "three": 2, "four": 2})
    assert await world.sender.send(counted, world.answered) is None
    posts = [(list(post["bucket"]["toggles"]), impact_names(post)) for post in world.upstream.metrics]  # type: ignore[index]
    assert posts == [(["a", "b"], ["one"]), ([], ["two"]), ([], ["three", "four"])]


async def test_impact_metrics_that_are_refused_do_not_take_toggles_with_them() -> None:
    """The post is sent again without them. If it is refused again, the toggles are given up, too."""
    wrong = UpstreamError("unexpected", "x", status=400)
    for faults, taken, refused in ([wrong], [["a"]], ["sales"]), ([wrong, wrong], [], ["sales", "a"]):
        world, counted = World(), bucket({"a": 0}, {"sales": 1})
        world.upstream.faults = list(faults)
        assert await world.sender.send(counted, world.answered) is wrong
        assert (world.upstream.names, world.refused, counted.parts()) == (taken, refused, 0)
        assert [impact_names(post) for post in world.upstream.attempts][:2] == [["sales"], []]


async def test_a_post_with_impact_metrics_that_is_too_large_is_cut() -> None:
    """A metric that is too large alone is given up, and the rest is sent."""
    world, counted = World(Upstream(150), batch=100), bucket({"a": 0}, {"x" * 200: 1, "sales": 1})
    assert await world.sender.send(counted, world.answered) is not None
    assert (world.upstream.names, world.refused) == ([["a"], []], ["x" * 200])
    assert [impact_names(post) for post in world.upstream.metrics] == [[], ["sales"]]


IDENTITY = Identity("app", "instance", "connection")
COMMON = {
    "appName": "app",
    "instanceId": "instance",
    "connectionId": "connection",
    "platformName": "CPython",
    "platformVersion": platform.python_version(),
    "yggdrasilVersion": None,
    "specVersion": SPEC_VERSION,
}


def test_usage_metrics() -> None:
    """Exactly these fields: moments in ISO 8601 with zone, and numbers no larger than every reader of JSON keeps."""
    tally, huge = ToggleCounts(), ToggleCounts()
    tally.yes, tally.no, tally.variants = 3, 1, {"red": 2}
    huge.yes, huge.no, huge.variants = 2**60, 2**60, {"red": 2**60}
    most = 2**53 - 1
    assert metrics_body(IDENTITY, UsageBucket(1_750_000_000.0, 1_750_000_030.25, {"a": tally, "b": huge})) == COMMON | {
        "bucket": {
            "start": "2025-06-15T15:06:40.000Z",
            "stop": "2025-06-15T15:07:10.250Z",
            "toggles": {
                "a": {"yes": 3, "no": 1, "variants": {"red": 2}},
                "b": {"yes": most, "no": most, "variants": {"red": most}},
            },
        }
    }


def test_impact_metrics() -> None:
    """They are as an SDK writes them: whole numbers without a point, the last bucket is that of everything."""
    counter, gauge, histogram = ImpactSeries("Sales."), ImpactSeries("Load."), ImpactSeries("Time.")
    counter.samples = {(): [3.0], (("appName", "shop"), ("on", "enabled")): [2.5]}
    gauge.samples = {(("appName", "shop"),): [-1.5, 1_750_000_000.0]}
    histogram.samples = {(): [7.5, 3.0, 1.0, 2.0]}
    bucket = UsageBucket(0.0, 1.0, {}, UsageSource("shop", "one"))
    bucket.impact[ImpactKey("sales", "counter", ())] = counter
    bucket.impact[ImpactKey("load", "gauge", ())] = gauge
    bucket.impact[ImpactKey("time", "histogram", (0.5, 5.0))] = histogram
    body = metrics_body(IDENTITY, bucket)
    assert [json.dumps(each) for each in body["impactMetrics"]] == [  # type: ignore[attr-defined]
        '{"name": "sales", "help": "Sales.", "type": "counter", "samples": [{"labels": {}, "value": 3}, '
        '{"labels": {"appName": "shop", "on": "enabled"}, "value": 2.5}]}',
        '{"name": "load", "help": "Load.", "type": "gauge", "samples": [{"labels": {"appName": "shop"}, "value": -1.5}]}',
        '{"name": "time", "help": "Time.", "type": "histogram", "samples": [{"labels": {}, "count": 3, "sum": 7.5, '
        '"buckets": [{"le": 0.5, "count": 1}, {"le": 5, "count": 2}, {"le": "+Inf", "count": 3}]}]}',
    ]
    assert (body["appName"], body["instanceId"]) == ("shop", "one")
    assert body["bucket"]["toggles"] == {}  # type: ignore[index]
