"""Traffic and Changes: counts are told, reading stops without a page, and each revision names the flags that it changed."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from flagsvc.http.reached_limits import LIMITS
from flagsvc.proxy.configuration import State
from flagsvc.proxy.configuration.change_log import KEPT, NAMED
from flagsvc.proxy.pages.recorder import SECONDS, Recorder
from flagsvc.proxy.pages.traffic import WHY
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import asynchronous, until
from support.desk_scene import DOCUMENT, HOSTILE, DeskScene, serve


def features(*names: str) -> Any:
    """Return a document with these flags."""
    return {"features": [{"name": name, "enabled": True, "strategies": []} for name in names]}


def test_every_limit_has_words() -> None:
    """A new limit needs its sentence."""
    assert set(WHY) == set(LIMITS)


@asynchronous
async def test_a_revision_names_the_flags_that_it_changed() -> None:
    """Added, removed and changed flags are told, also those whose segment changed; names are escaped."""
    desk = DeskScene()
    document: Any = copy.deepcopy(DOCUMENT)
    document["features"] = [each for each in document["features"] if each["name"] not in ("off", HOSTILE)]
    document["features"].append({"name": "<b>new", "enabled": True, "strategies": []})
    document["segments"][0]["constraints"][0]["values"] = ["us"]
    serve(desk.only, document)
    await until(lambda: desk.only.changes.revisions[-1].is_compared)
    changes = (await desk.data("/ui/changes.json"))["changes"]
    last, first = [each for each in changes if each["kind"] == "revision"]
    assert first["first"] and last["flags"] == 5
    assert last["added"]["names"] == ["<b>new"] and last["changed"]["names"] == ["new-checkout"]
    assert last["removed"]["names"] == sorted([HOSTILE, "off"])
    page = await desk.text("/ui/changes")
    assert "&lt;b&gt;new" in page and "<b>new" not in page and "<script>alert" not in page
    flags = {each["name"]: each["changedIn"] for each in (await desk.data("/ui/flags.json"))["flags"]}
    assert flags["new-checkout"]["revision"] == last["revision"] and flags["everyone"]["first"]


@asynchronous
async def test_changes_are_bounded_and_states_are_told() -> None:
    """The last 50 revisions stay, with at most 100 names each; a change of the state is told in words."""
    desk = DeskScene(document=features("one"))
    for number in range(KEPT):
        serve(desk.only, features("one", f"flag-{number}"))
    serve(desk.only, features(*(f"many-{each}" for each in range(2 * NAMED))))
    desk.only.holder.set_state(State.STALE)
    log = desk.only.changes
    await until(lambda: log.revisions[-1].is_compared)
    assert len(log.revisions) == KEPT and log.revisions[-1].added.count == 2 * NAMED
    assert len(log.revisions[-1].added.first) == NAMED
    assert "fresh → <b>stale</b>" in await desk.text("/ui/changes")


@asynchronous
async def test_sums_of_flags_that_are_gone_are_dropped() -> None:
    """A flag that comes back begins at 0."""
    desk = DeskScene(document=features("one", "two"))
    desk.only.counters.count_all(["one", "two"], [True, True])
    desk.only.counters.drain()
    serve(desk.only, features("two"))
    await until(lambda: desk.only.changes.revisions[-1].is_compared)
    serve(desk.only, features("one", "two"))
    counters = desk.only.counters
    assert (counters.since_start("one"), counters.since_start("two")) == ((0, 0), (1, 0))


@asynchronous
async def test_the_usage_is_sorted_and_searched() -> None:
    """The flag that was asked for most comes first."""
    desk = DeskScene(document=features("one", "two"))
    desk.only.counters.count_all(["one", "two", "two"], [True, False, False])
    assert [each["name"] for each in (await desk.data("/ui/traffic.json"))["flags"]] == ["two", "one"]
    assert [each["name"] for each in (await desk.data("/ui/traffic.json?sort=on"))["flags"]] == ["one", "two"]
    assert (await desk.data("/ui/traffic.json?q=TW"))["flags"] == [{"name": "two", "yes": 0, "no": 2}]
    assert "live-second" in await desk.text("/ui/traffic")


@asynchronous
async def test_reading_stops_without_a_page() -> None:
    """The counters are read once a second, and a minute after the last page no more."""
    clock, count = FakeClock(), 0

    async def read() -> dict[tuple[str, ...], float]:
        nonlocal count
        count += 1
        return {("flagsvc_http_requests", "/proxy", "GET", "304"): 10.0 * count}

    recorder = Recorder(read, clock, RecordingLog())
    await recorder.look()
    assert recorder.rates() == []
    await asyncio.sleep(0)
    await clock.advance(1.0)
    [rate] = recorder.rates()
    assert rate.requests == rate.unchanged == 10.0
    for _ in range(SECONDS + 2):
        await clock.advance(1.0)
    assert not recorder.is_running and recorder.rates() == [] and count <= SECONDS + 2
