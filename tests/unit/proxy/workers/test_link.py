"""The worker's end: documents in two steps, counts that go up often, and its own end."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flagsvc.http.call import StatusCounts
from flagsvc.http.messages import Refused
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.samples import Sources
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.configuration.prepare import PreparedDocument
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.workers import link as module
from flagsvc.proxy.workers import messages as say
from flagsvc.proxy.workers.channel import Channel, connected
from flagsvc.proxy.workers.link import ParentLink
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import asynchronous, until
from support.tiny_engine import TinySnapshot, document, tiny_compile


async def prepare(body: bytes, previous: TinySnapshot | None) -> PreparedDocument[TinySnapshot]:
    """Make a document ready, after a while."""
    await asyncio.sleep(0)
    compiled = tiny_compile(json.loads(body), previous)
    return PreparedDocument(body, compiled.snapshot, ConfigurationDocument(body, '"tag"'), compiled.problems)


class Door:
    """Notes what it is told to do."""

    def __init__(self) -> None:
        self.groups: list[tuple[str, int]] = []
        self.left = 0
        self.told: list[object] = []

    async def adopt(self, group: int) -> None:
        """Note it, after a while."""
        await asyncio.sleep(0)
        self.groups.append(("adopt", group))

    def release(self, group: int) -> None:
        """Note it."""
        self.groups.append(("release", group))

    def reload(self, options: dict[str, Any]) -> None:
        """Note it."""
        self.told.append(options)

    def drain(self) -> None:
        """Note it."""
        self.told.append("drain")

    def leave(self) -> None:
        """Note it."""
        self.left += 1


class Pair:
    """A link, and what the parent hears of it."""

    def __init__(self) -> None:
        self.clock, self.log, self.door = FakeClock(), RecordingLog(), Door()
        self.holder: Holder[TinySnapshot] = Holder()
        self.counters = UsageCounters(lambda: {"a": ("v",)}, self.clock.now)
        self.tally = StatusCounts("GET", "/proxy")
        self.link = ParentLink(self.holder, self.counters, prepare, worker=1, log=self.log)
        self.heard: list[say.Message] = []
        self.parent: Channel[say.Up] = Channel(say.upward, lambda message, _: self.heard.append(message))

    def sources(self) -> Sources:
        """Return what the metrics are read from."""
        return Sources(self.holder, self.counters, [self.tally], self.clock, AnswerCache(0))  # type: ignore[arg-type]

    def of(self, kind: type[say.Message]) -> list[Any]:
        """Return what was heard of one kind."""
        return [message for message in self.heard if isinstance(message, kind)]

    def answers(self) -> float:
        """Return how many requests the parent was told of."""
        samples = [sample for counts in self.of(say.Counts) for sample in counts.samples]
        return sum(value for key, value in samples if key[0] == "flagsvc_http_requests")  # type: ignore[no-any-return]


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    """Give a link that works, and stop it."""
    made = Pair()
    here, there = socket.socketpair()
    await connected(here, made.parent)
    await connected(there, made.link.channel)
    made.link.start(made.sources(), made.door)
    try:
        yield made
    finally:
        await made.link.stop()
        made.parent.close()


@asynchronous
async def test_two_steps() -> None:
    """A document is made ready and told of, and served only when the parent says so."""
    async with pair() as both:
        both.parent.send(say.Prepare(1), document("a"))
        await until(lambda: both.of(say.Prepared))
        assert both.holder.current is None
        both.parent.send(say.Switch(1))
        await until(lambda: both.of(say.Switched))
        assert both.holder.current is not None and both.holder.document is not None  # type: ignore[unreachable]
        assert both.of(say.Prepared) == [say.Prepared(1, both.holder.current.revision)]  # type: ignore[unreachable]
        assert both.holder.document.body == document("a")
        assert list(both.holder.current.names) == ["a"]


@asynchronous
async def test_a_report_is_sent_at_once() -> None:
    """What an SDK was thanked for in one turn of the loop is on its way before the next; reports of one turn go together."""
    async with pair() as both:
        for _ in range(3):
            both.counters.add("a", 1, 0, {"v": 1})
            both.counters.reported()
        await until(lambda: both.of(say.Counts))
        bucket = both.of(say.Counts)[0].usage
        assert bucket is not None and both.counters.entries == 0
        both.counters.add("a", 1, 0, {})
        both.counters.reported()
        await asyncio.sleep(0)
        assert both.counters.entries == 0


@asynchronous
async def test_how_fresh_it_is() -> None:
    """The moment of the last check is the one that the parent tells."""
    async with pair() as both:
        assert both.holder.checked is None
        both.parent.send(say.Checked(12.5))
        await until(lambda: both.holder.checked == 12.5)


@asynchronous
async def test_documents_in_their_order() -> None:
    """Whatever comes meanwhile, a switch is to the document it names, and documents that were passed over are forgotten."""
    async with pair() as both:
        for number in range(1, 7):
            both.parent.send(say.Prepare(number), document(f"toggle-{number}"))
        both.parent.send(say.Switch(5))
        both.parent.send(say.Switch(6))
        await until(lambda: len(both.of(say.Switched)) == 2)
        assert both.holder.current is not None and list(both.holder.current.names) == ["toggle-6"]


@asynchronous
async def test_a_worker_that_cannot_prepare_gives_up() -> None:
    """What the parent could compile and the worker cannot ends the worker, so that another takes its place."""
    async with pair() as both:
        both.parent.send(say.Prepare(1), b"no document")
        await both.parent.closed.wait()
        await until(lambda: both.door.left)
        assert both.log.at("error") == ["a worker gives up"]


@asynchronous
async def test_counts_go_up_by_themselves() -> None:
    """Usage and tallies are sent soon after they were counted, once."""
    async with pair() as both:
        both.counters.count("a", True)
        both.tally.add(200)
        await until(lambda: both.answers() == 1)
        both.tally.add(200)
        both.tally.add(404)
        await until(lambda: both.answers() == 3)
        usages = [counts.usage for counts in both.of(say.Counts) if counts.usage is not None]
        assert [usage.toggles for usage in usages] == [{"a": (1, 0, {})}]


@asynchronous
async def test_a_report() -> None:
    """It comes behind everything that was counted before it was asked for."""
    async with pair() as both:
        both.counters.add("a", 1, 2, {"v": 3})
        both.parent.send(say.Report(4))
        await until(lambda: both.of(say.Reported))
        assert both.heard[-1] == say.Reported(4)
        [usage] = [counts.usage for counts in both.of(say.Counts) if counts.usage is not None]
        assert usage.toggles == {"a": (1, 2, {"v": 3})}


@asynchronous
async def test_a_scrape() -> None:
    """The text of all processes comes from the parent; who asked twice gets each answer for its question."""
    async with pair() as both:
        first, second = asyncio.ensure_future(both.link.text()), asyncio.ensure_future(both.link.text())
        await until(lambda: len(both.of(say.Ask)) == 2)
        for ask, text in zip(both.of(say.Ask)[::-1], (b"second", b"first"), strict=True):
            both.parent.send(say.Text(ask.number), text)
        assert (await first, await second) == (b"first", b"second")
        both.parent.send(say.Text(99), b"for nobody")


@asynchronous
async def test_a_scrape_without_an_answer() -> None:
    """A parent that does not answer makes it a 503."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TEXT_S", 0.02)
        async with pair() as both:
            with pytest.raises(Refused) as raised:
                await both.link.text()
            assert raised.value.status == 503


@asynchronous
async def test_sockets_in_their_order() -> None:
    """Groups are adopted and released as told, one after the other."""
    async with pair() as both:
        for message in (say.Adopt(0), say.Release(0), say.Adopt(2)):
            both.parent.send(message)
        await until(lambda: len(both.door.groups) == 3)
        assert both.door.groups == [("adopt", 0), ("release", 0), ("adopt", 2)]


@asynchronous
async def test_leaving() -> None:
    """The parent's word and the parent's end both end the worker; serving is said when it is so."""
    async with pair() as both:
        both.link.serving()
        await until(lambda: both.of(say.Serving))
        both.parent.send(say.Leave())
        await until(lambda: both.door.left == 1)
        both.parent.close()
        await until(lambda: both.door.left == 2)
        assert both.log.at("warn") == ["the parent process is gone, this worker ends"]


@asynchronous
async def test_the_last_counts() -> None:
    """What was counted until the end is sent before the channel is closed."""
    async with pair() as both:
        both.tally.add(200)
        both.counters.count("a", False)
        await both.link.stop()
        await both.parent.closed.wait()
        assert both.answers() == 1
        assert both.of(say.Counts)[-1].usage.toggles == {"a": (0, 1, {})}


@asynchronous
async def test_before_it_starts() -> None:
    """A report before the worker has anything to count is empty, and leaving ends nothing."""
    made = Pair()
    here, there = socket.socketpair()
    await connected(here, made.parent)
    await connected(there, made.link.channel)
    made.parent.send(say.Report(1))
    made.parent.send(say.Leave())
    await until(lambda: made.of(say.Reported))
    assert made.heard == [say.Reported(1)]
    await made.link.stop()
    await made.parent.closed.wait()


@asynchronous
async def test_keys_and_draining() -> None:
    """The post is told in order, and the parent hears when new options are in use."""
    async with pair() as both:
        both.parent.send(say.Adopt(1))
        both.parent.send(say.Reload(3, {"client_keys": ["a"]}))
        both.parent.send(say.Drain())
        both.parent.send(say.Reload(4, {}))
        await until(lambda: len(both.of(say.Reloaded)) == 2)
        assert both.door.groups == [("adopt", 1)]
        assert both.door.told == [{"client_keys": ["a"]}, "drain", {}]
        assert both.of(say.Reloaded) == [say.Reloaded(3), say.Reloaded(4)]


@asynchronous
async def test_keys_before_the_start() -> None:
    """What comes before the worker has begun is done when it begins."""
    made = Pair()
    here, there = socket.socketpair()
    await connected(here, made.parent)
    await connected(there, made.link.channel)
    made.parent.send(say.Reload(1, {"client_keys": ["a"]}))
    made.parent.send(say.Checked(12.5))  # behind it, and done at once: when it is, the other has come
    await until(lambda: made.holder.checked == 12.5)
    assert made.door.told == made.heard == []
    made.link.start(made.sources(), made.door)
    await until(lambda: made.of(say.Reloaded))
    assert made.door.told == [{"client_keys": ["a"]}]
    await made.link.stop()
    made.parent.close()
