"""The pages Status, Options, Traffic and Changes, and the event stream that keeps them current."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from flagsvc.http.counts import StatusCounts
from flagsvc.http.parts import PartsResponse
from flagsvc.http.reached_limits import LIMITS
from flagsvc.pages.live import MAX_OF_ONE
from flagsvc.proxy.api.readiness import COLD, DRAINING, NO_WORKER, STALE
from flagsvc.proxy.configuration import State
from flagsvc.proxy.configuration.change_log import KEPT, NAMED
from flagsvc.proxy.pages import desk as pages_desk
from flagsvc.proxy.pages.status import OBJECTIONS, STATES
from flagsvc.proxy.pages.traffic import BARS, KEPT_S, STEP_S, WHY, Recorder
from flagsvc.settings.load import accepted, resolve
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.render import as_json
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import until
from support.desk_scene import DOCUMENT, ELSEWHERE, HOSTILE, KEY, LOCAL, DeskScene, header, serve
from unit.pages.test_live import Caller


async def test_a_fresh_configuration() -> None:
    """The page and its data tell what callers get."""
    desk = DeskScene()
    await desk.clock.advance(300)
    [found] = (await desk.data("/ui/status.json"))["environments"]
    assert (found["state"], found["flags"], found["digest"], found["sinceSeconds"]) == ("fresh", 6, "digest", 300)
    assert found["revision"] == desk.only.holder.current.revision  # type: ignore[union-attr]
    assert found["shortRevision"] == "digest"
    assert found["leftOut"]["number"] == 1 and "features[6].name" in found["leftOut"]["parts"][0]
    assert found["odd"]["number"] == 1 and "impressionData of toggle `new-checkout`" in found["odd"]["parts"][0]
    page = await desk.text("/ui/status")
    assert "Callers get what the flag server has." in page and "5 min" in page and "<code>digest</code>" in page
    assert "features[6].name" in page and "impressionData of toggle" in page


async def test_the_event_streams_of_callers() -> None:
    """The page tells how many streams are open, and of how many changes they told; without any it says nothing of them."""
    desk = DeskScene()
    assert "event stream" not in await desk.text("/ui/status")
    desk.runtime.generations.streams.count, desk.runtime.generations.streams.told = 1, 7
    assert (await desk.data("/ui/status.json"))["process"]["streams"] == {"open": 1, "told": 7}
    assert "1 event stream of callers, told of 7 changes" in await desk.text("/ui/status")


async def test_how_news_arrive() -> None:
    """By a stream since when, or by polls how often and why. The data have the counts."""
    desk = DeskScene()
    stream = desk.only.holder.stream
    stream.end("not-offered")
    assert "by polls every 5 s: the upstream offers no stream" in await desk.text("/ui/status")
    stream.open(desk.clock.now())
    stream.events["unleash-updated"] = 2
    assert re.search(r"by stream since\s+<time [^>]+>[^<]+</time>\s*, 2 events", await desk.text("/ui/status"))
    [found] = (await desk.data("/ui/status.json"))["environments"]
    news = {"by": "stream", "everySeconds": 5.0, "whyNoStream": "", "streams": 1, "fallbacks": 0, "events": 2}
    assert {name: value for name, value in found["news"].items() if name != "since"} == news
    assert stream.close(desk.clock.now())
    stream.end("silent")
    assert "by polls every 5 s: the stream was silent" in await desk.text("/ui/status")


def test_a_state_has_one_word() -> None:
    """The page calls a state as the metrics do. Only `cold` is a sentence there."""
    assert {state for state in State if STATES[state][0] != state} == {State.COLD}


@pytest.mark.parametrize("state", list(State))
async def test_every_state_has_words(state: State) -> None:
    """No state is missing, and the page of each renders."""
    desk = DeskScene(document=None)
    desk.only.holder.set_state(state)
    [found] = (await desk.data("/ui/status.json"))["environments"]
    assert (found["state"], found["meaning"]) == STATES[state]
    assert STATES[state][1] in await desk.text("/ui/status")


def test_every_objection_of_readiness_has_words() -> None:
    """No objection is missing."""
    assert set(OBJECTIONS) == {"", COLD, DRAINING, NO_WORKER, STALE}


async def test_a_failure() -> None:
    """The error is told in words without secrets, with the number of failures and the next attempt."""
    desk = DeskScene(flagsvc_api_token="secret-token")
    notes = desk.only.poller.notes
    notes.error, notes.failed_at = "no answer to <secret-token>", desk.clock.now()
    notes.next_at = desk.clock.now() + 3
    desk.only.holder.failures = 14
    [found] = (await desk.data("/ui/status.json"))["environments"]
    assert (found["error"], found["failures"], found["nextInSeconds"]) == ("no answer to <***>", 14, 3)
    page = await desk.text("/ui/status")
    assert "no answer to &lt;***&gt;" in page and "14 times in a row" in page and "in 3 s" in page


async def test_several_environments() -> None:
    """Each has a block of its own."""
    desk = DeskScene(environments={"one": {"client_keys": "a"}, "two": {"client_keys": "b"}})
    found = (await desk.data("/ui/status.json"))["environments"]
    assert [each["name"] for each in found] == ["one", "two"]
    assert "<bdi>two</bdi>" in await desk.text("/ui/status")


async def test_the_process_drains() -> None:
    """Readiness says why callers should go elsewhere."""
    desk = DeskScene()
    assert (await desk.data("/ui/status.json"))["process"]["ready"] is True
    desk.runtime.generations.drain()
    process = (await desk.data("/ui/status.json"))["process"]
    assert (process["ready"], process["readiness"]) == (False, "the process is about to end")


SECRET = "a-secret-of-callers"
GIVEN = {
    "FLAGSVC_URL": "http://user:pass-word@flags.example/api",
    "FLAGSVC_API_TOKEN": "token-of-upstream",
    "FLAGSVC_PROXY_CLIENT_KEYS": SECRET,
    "FLAGSVC_ADMIN_PAGE_KEYS": "a-key-of-pages",
    "FLAGSVC_ADMIN_ADDRESS": LOCAL,
}


async def test_the_options_in_effect() -> None:
    """Each option of the command is there, with the same source; no secret is."""
    resolved = resolve(GIVEN, None, {"port": "3001"})
    desk = DeskScene(resolved=resolved)
    text = await desk.text("/ui/config.json")
    found = {each["name"]: each for each in json.loads(text)["options"]}
    printed = json.loads(as_json(resolved))["options"]
    assert {name: each["source"] for name, each in found.items()} == {name: each["source"] for name, each in printed.items()}
    assert (found["port"]["value"], found["port"]["source"], found["port"]["isSet"]) == ("3001", "flag --port", True)
    page = await desk.text("/ui/config")
    for secret in (SECRET, "token-of-upstream", "pass-word", "a-key-of-pages"):
        assert secret not in text and secret not in page
    assert "environment FLAGSVC_PROXY_CLIENT_KEYS" in page and "options have their defaults" in page


async def test_options_of_environments(tmp_path: Path) -> None:
    """Each environment has its own."""
    file = tmp_path / "flagsvc.toml"
    file.write_text(
        f'flagsvcUrl = "http://127.0.0.1:1/api"\nadminAddress = "{LOCAL}"\n'
        '[environments.one]\nflagsvcApiToken = "token-of-one"\nclientKeys = ["key-of-one"]\n'
    )
    resolved = resolve({}, file, {})
    accepted(resolved, ProxyOptions)
    desk = DeskScene(resolved=resolved)
    [part] = (await desk.data("/ui/config.json"))["environments"]
    assert part["name"] == "one" and {each["name"] for each in part["options"] if each["isSet"]} == {
        "flagsvcApiToken",
        "clientKeys",
    }
    page = await desk.text("/ui/config")
    assert "token-of-one" not in page and "key-of-one" not in page


async def test_options_in_code() -> None:
    """A program that gave its options itself is told so."""
    assert "given in code" in await DeskScene().text("/ui/config")


async def listen(desk: DeskScene, **more: Any) -> Caller:
    """Open a stream."""
    answer = await desk.ask("/ui/stream", **more)
    assert isinstance(answer, PartsResponse), answer.status
    caller = Caller(answer.parts)
    answer.parts.open(caller)
    return caller


async def sign_in(desk: DeskScene) -> str:
    """Open a session, and return its cookie."""
    signed_in = await desk.ask("/ui/sign-in", "POST", {"key": KEY}, host=ELSEWHERE)
    return (header(signed_in, "set-cookie") or "").partition(";")[0]


async def test_seconds_and_revisions(monkeypatch: Any) -> None:
    """Every second is told, and a revision or a state once; the events name no flag."""
    monkeypatch.setattr(pages_desk, "SECOND_S", 0.002)
    desk = DeskScene()
    caller = await listen(desk)
    await until(lambda: caller.sent.count(b"event: second") >= 3)
    assert caller.sent.count(b"event: revision") == 1
    document: Any = copy.deepcopy(DOCUMENT)
    document["features"] = document["features"][:1]
    serve(desk.only, document)
    desk.only.holder.set_state(State.STALE)
    await until(lambda: caller.sent.count(b"event: revision") >= 2)
    assert b"new-checkout" not in caller.sent
    caller.parts.lose()


async def test_who_may_listen() -> None:
    """The checks are those of the other pages: the Host on this machine, and a key elsewhere. HEAD opens no stream."""
    desk = DeskScene()
    assert (await desk.ask("/ui/stream", host="evil.example")).status == 421
    assert (await desk.ask("/ui/stream.json")).status == 404
    plain = await desk.ask("/ui/stream", method="HEAD")
    assert plain.status == 200 and header(plain, "content-type") == "text/event-stream" and not plain.body
    assert not isinstance(plain, PartsResponse)
    elsewhere = DeskScene(ELSEWHERE, admin_page_keys=[KEY])
    assert (await elsewhere.ask("/ui/stream", host=ELSEWHERE)).status == 303
    assert "data-live" not in await elsewhere.text("/ui/status", host=ELSEWHERE)
    caller = await listen(elsewhere, host=ELSEWHERE, authorization=KEY)
    assert 'data-live="/ui/stream"' in await elsewhere.text("/ui/status", host=ELSEWHERE, authorization=KEY)
    caller.parts.lose()


async def test_who_is_signed_in() -> None:
    """A page may ask whether its viewer still may see it: an empty answer, else the way to the sign-in."""
    elsewhere = DeskScene(ELSEWHERE, admin_page_keys=[KEY])
    found = await elsewhere.ask("/ui/alive", host=ELSEWHERE, authorization=KEY)
    assert (found.status, found.body) == (200, b"")
    assert (await elsewhere.ask("/ui/alive", host=ELSEWHERE)).status == 303
    assert 'data-alive="/ui/alive"' in await elsewhere.text("/ui/status", host=ELSEWHERE, authorization=KEY)
    assert "data-alive" not in await elsewhere.text("/ui/status", host=ELSEWHERE)


async def test_one_session_does_not_take_all() -> None:
    """A session and a key hold a few streams each; who has another session gets a stream."""
    desk = DeskScene(ELSEWHERE, admin_page_keys=[KEY])
    one, other = [await sign_in(desk) for _ in range(2)]
    callers = [await listen(desk, host=ELSEWHERE, cookie=one) for _ in range(MAX_OF_ONE)]
    refused = await desk.ask("/ui/stream", host=ELSEWHERE, cookie=one)
    assert refused.status == 503 and b"8 of your pages are open" in refused.body
    callers.append(await listen(desk, host=ELSEWHERE, cookie=other))
    forms = (KEY, f"Bearer {KEY}")
    callers += [await listen(desk, host=ELSEWHERE, authorization=forms[at % 2]) for at in range(MAX_OF_ONE)]
    for form in forms:
        assert (await desk.ask("/ui/stream", host=ELSEWHERE, authorization=form)).status == 503
    for each in callers:
        each.parts.lose()


async def test_a_stream_ends_with_its_session(monkeypatch: Any) -> None:
    """After signing out the next second ends the stream."""
    monkeypatch.setattr(pages_desk, "SECOND_S", 0.002)
    desk = DeskScene(ELSEWHERE, admin_page_keys=[KEY])
    cookie = await sign_in(desk)
    caller = await listen(desk, host=ELSEWHERE, cookie=cookie)
    await until(lambda: b"second" in caller.sent)
    assert (await desk.ask("/ui/sign-out", "POST", {}, host=ELSEWHERE, cookie=cookie)).status == 303
    await until(lambda: caller.ended)


def features(*names: str) -> Any:
    """Return a document with these flags."""
    return {"features": [{"name": name, "enabled": True, "strategies": []} for name in names]}


def test_every_limit_has_words() -> None:
    """A new limit needs its sentence."""
    assert set(WHY) == set(LIMITS)


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


async def test_the_usage_is_sorted_and_searched() -> None:
    """The flag that was asked for most comes first."""
    desk = DeskScene(document=features("one", "two"))
    desk.only.counters.count_all(["one", "two", "two"], [True, False, False])
    assert [each["name"] for each in (await desk.data("/ui/traffic.json"))["flags"]] == ["two", "one"]
    assert [each["name"] for each in (await desk.data("/ui/traffic.json?sort=on"))["flags"]] == ["one", "two"]
    assert (await desk.data("/ui/traffic.json?q=TW"))["flags"] == [{"name": "two", "yes": 0, "no": 2}]
    assert "live-second" in await desk.text("/ui/traffic")


class Counters:
    """Counters of requests that grow when told to."""

    def __init__(self) -> None:
        self.counts = {"200": 0.0, "429": 0.0}

    async def read(self) -> dict[tuple[str, ...], float]:
        return {("flagsvc_http_requests", "/proxy", "GET", status): each for status, each in self.counts.items()}


async def test_the_last_hour_is_known_before_a_page_asks() -> None:
    """The recorder keeps an hour and no more: by 15 seconds or by minutes, each in the bar of its time. Failures leave gaps."""
    clock, counters, log = FakeClock(), Counters(), RecordingLog()
    read = AsyncMock(side_effect=counters.read)
    recorder = Recorder(read, clock, log)
    task = asyncio.create_task(recorder.run())
    await clock.advance(3600)
    counters.counts = {"200": 30.0, "429": 15.0}
    await clock.advance(20)
    assert [(each.requests, each.refused) for each in recorder.bars(15.0)][-3:] == [(0, 0), (3.0, 1.0), (0, 0)]
    read.side_effect = OSError
    await clock.advance(30)
    read.side_effect = counters.read
    await recorder.look()
    counters.counts["200"] += 20.0
    await clock.advance(8)
    await recorder.look()
    now = recorder.now()
    assert now is not None and (now.requests, now.refused) == (2.5, 0.0)
    assert {each.event for each in log.lines} == {"reading the traffic failed"}
    minutes = recorder.bars(60.0)
    assert len(minutes) == BARS and minutes[-1].requests == pytest.approx(65 / 58)
    await clock.advance(3600)
    assert not any(each.requests for each in recorder.bars(60.0)) and len(recorder._kept) == KEPT_S / STEP_S
    task.cancel()


async def test_several_pages_ask_in_a_second() -> None:
    """The present rate is that of at least a second, however often pages ask."""
    clock, counters = FakeClock(), Counters()
    recorder = Recorder(counters.read, clock, RecordingLog())
    for _ in range(10):
        await recorder.look()
        await clock.advance(0.25)
        counters.counts["200"] += 1
    now = recorder.now()
    assert now is not None and now.requests == 4.0


async def test_the_picture_of_the_traffic() -> None:
    """The page that is opened first has the minutes before it, as a picture with numbers; without requests it says so."""
    desk = DeskScene()
    assert "No request in the last 15 minutes." in await desk.text("/ui/traffic")
    task = asyncio.create_task(desk.desk.run_beside())
    await desk.clock.advance(60)
    answered = StatusCounts("GET", "/proxy")
    answered.statuses = {200: 45, 401: 15}
    counted = desk.runtime.generations.sources.status_counts
    assert isinstance(counted, list)
    counted.append(answered)
    await desk.clock.advance(60)
    task.cancel()
    data = await desk.data("/ui/traffic.json?span=hour")
    assert [(each["name"], each["values"][-3:]) for each in data["picture"]["series"]] == [
        ("answered", [0, 0.75, 0]),
        ("refused or failed", [0, 0.25, 0]),
    ]
    page = await desk.text("/ui/traffic")
    assert 'aria-label="Requests a second, last 15 minutes. At most 4; answered 75 %; refused or failed 25 %."' in page
    assert page.count("<title>3 answered, 1 refused or failed</title>") == 1
    assert 'href="/ui/traffic?span=hour">Show the last hour</a>' in page
