"""Event streams: callers are told the newest version, within a window, and never more of them than there is room for (decision
0036)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

import pytest

from flagsvc.http import streams as kit
from flagsvc.http.messages import HttpError
from flagsvc.http.parts import SEPARATE_BYTES, Outlet
from flagsvc.http.streams import BEAT, LATE_BEATS, Channel, StreamLimits, Streams, Subscriber
from support.aio import until


class Caller(Outlet):
    """A caller of a stream. `sent` is what came, one part each. While it is `full`, `unread` bytes wait for it, and another part
    drops it."""

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        self.sent: list[bytes] = []
        self.full = False
        self.unread = 0
        self.ended = False

    def write(self, data: bytes) -> None:
        if self.full:
            self.end()
        else:
            self.sent.append(data)

    def is_full(self) -> bool:
        return self.full

    def waiting(self) -> int:
        return self.unread

    def end(self) -> None:
        self.ended = True
        self.subscriber.lose()


class Steps(Channel):
    """A channel whose texts say from which version to which."""

    def tell(self, known: str) -> bytes:
        return f"{known}>{self.version}\n\n".encode()


def make(limits: StreamLimits | None = None, **more: float) -> Steps:
    made = Steps(Streams(limits or StreamLimits(), Random(1), **more))
    made.announce("1")
    return made


def open_stream(channel: Channel, known: str = "", network: bytes = b"", may_stay: kit.MayStay = lambda: True) -> Caller:
    """Open a stream as a transport does."""
    subscriber = Subscriber(channel, network, known, may_stay)
    caller = Caller(subscriber)
    subscriber.open(caller)
    return caller


@pytest.mark.parametrize(
    ("known", "first"), [("", b"id: 1\n\n"), ("1", b"id: 1\n\n"), ("0", b"0>1\n\n")], ids=["nothing", "the newest", "an older one"]
)
async def test_a_caller_hears_at_once_what_it_does_not_know(known: str, first: bytes) -> None:
    """The first part has a time to wait, drawn for each caller, and either the version or what is new since the caller's
    version."""
    channel = make()
    waits = set()
    for _ in range(20):
        (part,) = open_stream(channel, known).sent
        wait, _, rest = part.partition(b"\n")
        waits.add(int(wait.removeprefix(b"retry: ")))
        assert rest == first
    assert len(waits) > 10 and kit.MIN_RETRY_MS <= min(waits) <= max(waits) < kit.MAX_RETRY_MS


async def test_few_callers_hear_of_a_change_at_once() -> None:
    """With few streams there is no window: `announce` itself tells all; the same version again tells no caller."""
    channel = make()
    callers = [open_stream(channel) for _ in range(kit.AT_ONCE)]
    channel.announce("2")
    channel.announce("2")
    assert all(each.sent[1:] == [b"1>2\n\n"] for each in callers)
    assert channel.streams.told == kit.AT_ONCE


async def test_many_callers_hear_within_the_window_and_only_the_newest_version() -> None:
    """The callers are told in groups. A caller that waits hears only the last of the changes that come meanwhile."""
    channel = make(StreamLimits(window_ms=60))
    callers = [open_stream(channel) for _ in range(60)]
    channel.announce("2")
    assert 0 < sum(len(each.sent) > 1 for each in callers) <= 12, "the first group was told, and not all of them"
    channel.announce("3")
    await until(lambda: all(each.sent[-1].endswith(b">3\n\n") for each in callers))
    heard = {b"".join(each.sent[1:]) for each in callers}
    assert heard == {b"1>3\n\n", b"1>2\n\n2>3\n\n"}
    assert channel.streams.delay_s > 0


async def test_few_callers_of_a_long_window_are_spread_over_all_of_it() -> None:
    """The last caller does not hear of a change long before the end of the window."""
    channel, now = make(StreamLimits(window_ms=200)), asyncio.get_running_loop().time
    callers = [open_stream(channel) for _ in range(5)]
    begun = now()
    channel.announce("2")
    await until(lambda: all(len(each.sent) > 1 for each in callers))
    assert now() - begun > 0.15


async def test_a_version_that_comes_back_within_the_window_reaches_all() -> None:
    """Some callers are told the version in between. They hear of the way back as well."""
    channel = make(StreamLimits(window_ms=60))
    callers = [open_stream(channel) for _ in range(60)]
    channel.announce("2")
    channel.announce("3")
    await until(lambda: any(each.sent[-1] == b"1>3\n\n" for each in callers))
    channel.announce("2")
    await until(lambda: all(each.sent[-1].endswith(b">2\n\n") for each in callers))


async def test_a_caller_that_is_ahead_hears_of_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller may be brought to a version that is announced later. If that never is, the caller is brought back."""
    channel = make()
    caller = open_stream(channel)
    with monkeypatch.context() as ahead:
        ahead.setattr(channel, "bring", lambda known: ("3", b"1>3\n\n"))
        channel.announce("2")
    channel.announce("2")
    assert caller.sent[1:] == [b"1>3\n\n", b"3>2\n\n"]


async def test_a_version_that_changes_nothing_for_a_caller_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metrics do not count it, and the heartbeat is a comment as always."""
    channel = make()
    caller = open_stream(channel)
    monkeypatch.setattr(channel, "tell", lambda known: b"")
    caller.full = True
    channel.announce("2")
    caller.full = False
    caller.subscriber.beat(0.0)
    assert caller.sent[1:] == [BEAT] and channel.streams.told == 0


@pytest.mark.parametrize(
    ("count", "window_ms", "seconds"), [(100, None, 0), (101, None, 0.0101), (10_000, None, 1), (10**6, None, 10), (1, 500, 0.5)]
)
async def test_the_window_grows_with_the_streams(count: int, window_ms: int | None, seconds: float) -> None:
    """Without the option: 0 up to a hundred streams, then 100 ms for each thousand, and never more than 10 s."""
    streams = Streams(StreamLimits(window_ms=window_ms))
    streams.count = count
    assert streams.window() == pytest.approx(seconds)


async def test_a_caller_that_reads_nothing_waits_for_the_newest_and_is_dropped_in_the_end() -> None:
    """While a caller is full nothing is written. When it reads again, the next heartbeat brings the newest version; if it never
    reads, the LATE_BEATS-th heartbeat drops it."""
    channel = make()
    slow, stuck = open_stream(channel), open_stream(channel)
    slow.full = stuck.full = True
    channel.announce("2")
    channel.announce("3")
    slow.subscriber.beat(0.0)
    slow.full = False
    slow.subscriber.beat(0.0)
    assert slow.sent[1:] == [b"1>3\n\n"] and not slow.ended
    assert channel.streams.told == 1 and channel.streams.delay_s > 0, "the metrics count what a heartbeat tells"
    for _ in range(LATE_BEATS):
        assert not stuck.ended
        stuck.subscriber.beat(0.0)
    assert stuck.ended and len(stuck.sent) == 1 and channel.streams.dropped == 1 and channel.streams.count == 1


async def test_a_long_text_reaches_few_callers_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without a window: requests are answered in between. A long first text is sent as it is, without a copy for each."""
    channel, text = make(), b"x" * SEPARATE_BYTES
    monkeypatch.setattr(channel, "tell", lambda known: text)
    callers = [open_stream(channel) for _ in range(10)]
    channel.announce("2")
    assert sum(len(each.sent) - 1 for each in callers) == kit.SLICE_BYTES // len(text) < 10
    await until(lambda: all(each.sent[1:] == [text] for each in callers))
    late = open_stream(channel, "1")
    assert len(late.sent) == 2 and late.sent[0].startswith(b"retry: ") and late.sent[1] is callers[0].sent[1]


async def test_a_caller_that_reads_slowly_has_the_time_that_it_needs() -> None:
    """While it reads a long text, no heartbeat drops it. LATE_BEATS heartbeats in a row after it stopped it is dropped."""
    channel = make()
    caller = open_stream(channel)
    caller.full = True
    for caller.unread in range(5000, 0, -1000):
        caller.subscriber.beat(0.0)
        assert not caller.ended and caller.sent[1:] == []
    for caller.full in (*[True] * (LATE_BEATS - 1), False, *[True] * LATE_BEATS):
        assert not caller.ended
        caller.subscriber.beat(0.0)
    assert caller.ended and channel.streams.dropped == 1


async def test_a_mistake_with_one_caller_leaves_the_others() -> None:
    """All others of its group get their heartbeats, and each next one."""
    streams = Streams(StreamLimits(), Random(1), beat_s=0.032)
    channel = Steps(streams)
    callers = [open_stream(channel) for _ in range(kit.SLOTS)] + [open_stream(channel, may_stay=fail) for _ in range(kit.SLOTS)]
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    await until(lambda: all(each.sent.count(BEAT) > 1 for each in callers[: kit.SLOTS]))
    assert not any(each.ended for each in callers)


def fail() -> bool:
    raise ZeroDivisionError


async def test_a_mistake_while_callers_are_told_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """All others are told of this change, and of the next one."""
    channel = make(StreamLimits(window_ms=20))
    callers = [open_stream(channel) for _ in range(20)]
    monkeypatch.setattr(callers[0], "is_full", fail)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    for version in ("2", "3"):
        with suppress(ZeroDivisionError):
            channel.announce(version)
        await until(lambda: all(each.subscriber.told == version for each in callers[1:]))  # noqa: B023


async def test_heartbeats_reach_every_caller_and_end_with_the_last() -> None:
    """In each period every caller hears a comment once. The timer stops with the last stream."""
    channel = make(beat_s=0.032)
    callers = [open_stream(channel) for _ in range(100)]
    await until(lambda: all(BEAT in each.sent for each in callers))
    for each in callers:
        each.end()
    await until(lambda: not channel.streams.is_beating)
    assert channel.streams.count == 0 and not channel.subscribers


@pytest.mark.parametrize("why", ["its key counts no longer", "it is old"])
async def test_a_heartbeat_ends_a_stream(why: str) -> None:
    """A stream ends at its heartbeat when its key counts no longer, and after an age between half an hour and an hour."""
    channel = make()
    valid = why == "it is old"
    caller = open_stream(channel, may_stay=lambda: valid)
    now = asyncio.get_running_loop().time()
    if valid:
        caller.subscriber.beat(now + kit.MIN_AGE_S - 1)
        assert not caller.ended
    caller.subscriber.beat(now + 2 * kit.MIN_AGE_S)
    assert caller.ended


async def test_there_is_room_for_so_many_of_all_and_of_a_network() -> None:
    """Above a limit a caller gets 429 with a time to wait. A stream that was admitted and opens later ends. No open stream
    ends, and an end makes room."""
    channel = make(StreamLimits(total=3, network=2))
    streams = channel.streams
    first = [open_stream(channel, network=b"a") for _ in range(2)]
    with pytest.raises(HttpError) as refused:
        streams.check_room(b"a")
    assert (refused.value.status, refused.value.retry) == (429, kit.RETRY_AFTER_S)
    assert open_stream(channel, network=b"a").ended and not any(each.ended for each in first)
    last = open_stream(channel, network=b"b")
    with pytest.raises(HttpError, match="too many"):
        streams.check_room(b"c")
    last.end()
    streams.check_room(b"c")
    for each in first:
        each.end()
    assert streams.count == 0 and streams.networks == {}


async def test_callers_that_cannot_be_told_apart_share_the_room_of_all() -> None:
    """Behind a balancer that names no caller, the network is not known, and only the limit of the process counts."""
    channel = make(StreamLimits(total=5, network=1))
    assert not any([open_stream(channel).ended for _ in range(5)]) and open_stream(channel).ended


async def test_streams_can_be_off() -> None:
    """With a limit of 0 there are none: 404, which SDKs take for a server that has no streams."""
    with pytest.raises(HttpError, match="maxStreams") as refused:
        Streams(StreamLimits(total=0)).check_room(b"")
    assert refused.value.status == 404


async def test_ends_are_spread_over_the_grace_period() -> None:
    """When the process ends, each stream ends after a random part of the grace period; without such a period at once."""
    channel = make(grace_s=0.2)
    callers = [open_stream(channel) for _ in range(40)]
    for each in callers:
        each.subscriber.drain()
    assert not any(each.ended for each in callers)
    await until(lambda: any(each.ended for each in callers))
    assert not all(each.ended for each in callers)
    await until(lambda: all(each.ended for each in callers))
    alone = open_stream(make())
    alone.subscriber.drain()
    assert alone.ended
