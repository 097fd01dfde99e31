"""The worker's side: documents in two steps, counts that are sent often, commands, shutdown, and several environments."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import pytest

from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.counts import StatusCounts
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.metrics import Sources
from flagsvc.proxy.configuration import Holder, Preparer
from flagsvc.proxy.configuration.prepare import PreparedDocument
from flagsvc.proxy.tokens import Admission, TokenScope
from flagsvc.proxy.tokens.book import digest_of
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.workers import link as module
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel, connect_channel
from flagsvc.proxy.workers.link import LinkedFeed, ParentLink
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import until
from support.polling import document

ENVIRONMENTS = [messages.EnvironmentOptions(0, "", {"client_keys": ["a"]})]


class SlowPreparer(Preparer):
    """Prepares every document as a large one: other tasks run meanwhile."""

    async def __call__(self, body: bytes, previous: Snapshot | None) -> PreparedDocument:
        await asyncio.sleep(0)
        return await super().__call__(body, previous)


PREPARE = SlowPreparer(Compiler(CompileOptions()))


class RecordingCommands:
    """Records the commands, and calls `on_reload` at each Reload."""

    def __init__(self) -> None:
        self.groups: list[tuple[str, int]] = []
        self.leave_calls = 0
        self.calls: list[object] = []
        self.on_reload: Callable[[], object] = list

    async def adopt(self, group: int) -> None:
        """Note it, after a while."""
        await asyncio.sleep(0)  # as listening on a socket does, it lets other tasks run
        self.groups.append(("adopt", group))

    def release(self, group: int) -> None:
        self.groups.append(("release", group))

    def reload(self, environments: list[messages.EnvironmentOptions]) -> None:
        self.calls.append(environments)
        self.on_reload()

    def drain(self) -> None:
        self.calls.append("drain")

    def leave(self) -> None:
        self.leave_calls += 1


class Pair:
    """A link, and the messages that the parent receives from it."""

    def __init__(self) -> None:
        self.clock, self.log, self.commands = FakeClock(), RecordingLog(), RecordingCommands()
        self.holder = Holder()
        self.counters = UsageCounters(lambda: {"a": ("v",)}, self.clock.now)
        self.tally = StatusCounts("GET", "/proxy")
        self.link = ParentLink(worker=1, log=self.log, clock=self.clock)
        self.link.add_feed(0, LinkedFeed(self.holder, self.counters, PREPARE))
        self.received: list[messages.Message] = []
        self.parent: Channel[messages.WorkerMessage] = Channel(
            messages.decode_worker_message, lambda message, _: self.received.append(message)
        )

    def add(self, number: int) -> LinkedFeed:
        counters = UsageCounters(lambda: {"a": ("v",)}, self.clock.now)
        made = LinkedFeed(Holder(), counters, PREPARE)
        self.link.add_feed(number, made)
        return made

    def sources(self) -> Sources:
        return Sources(self.holder, self.counters, [self.tally], self.clock, AnswerCache(0))

    def of(self, kind: type[messages.Message]) -> list[Any]:
        return [message for message in self.received if isinstance(message, kind)]

    def answers(self) -> float:
        """Return how many requests the parent has counted."""
        samples = [sample for counts in self.of(messages.Counts) for sample in counts.samples]
        return sum(value for key, value in samples if key[0] == "flagsvc_http_requests")  # type: ignore[no-any-return]


@asynccontextmanager
async def pair(*, started: bool = True) -> AsyncIterator[Pair]:
    """Give a link that works, or has not started, and stop it."""
    made = Pair()
    here, there = socket.socketpair()
    await connect_channel(here, made.parent)
    await connect_channel(there, made.link.channel)
    if started:
        made.link.start(made.sources(), made.commands)
    try:
        yield made
    finally:
        await made.link.stop()
        made.parent.close()


async def test_a_report_is_sent_at_once() -> None:
    """A report is sent before the next iteration of the loop; reports of one iteration are sent together."""
    async with pair() as both:
        for _ in range(3):
            both.counters.add("a", 1, 0, {"v": 1})
            both.counters.finish_report()
        await until(lambda: both.of(messages.Counts))
        [bucket] = both.of(messages.Counts)[0].usage
        assert bucket is not None and both.counters.entries == 0
        both.counters.add("a", 1, 0, {})
        both.counters.finish_report()
        await asyncio.sleep(0)
        assert both.counters.entries == 0


async def test_documents_in_their_order() -> None:
    """A switch is to the document it names, and skipped documents are forgotten."""
    async with pair() as both:
        for number in range(1, 7):
            both.parent.send(messages.Prepare(number), document(f"toggle-{number}"))
        both.parent.send(messages.Switch(5))
        both.parent.send(messages.Switch(6))
        await until(lambda: len(both.of(messages.Switched)) == 2)
        assert both.holder.current is not None and list(both.holder.current.names) == ["toggle-6"]


async def test_a_worker_that_cannot_prepare_gives_up() -> None:
    """A worker that cannot compile the parent's document ends, and another one replaces it."""
    async with pair() as both:
        both.parent.send(messages.Prepare(1), b"no document")
        await both.parent.closed.wait()
        await until(lambda: both.commands.leave_calls)
        assert both.log.at("error") == ["a worker gives up"]


async def test_counts_go_up_by_themselves() -> None:
    """Usage and request counts are sent once, soon after they were counted."""
    async with pair() as both:
        both.counters.count("a", True)
        both.tally.add(200)
        await until(lambda: both.answers() == 1)
        both.tally.add(200)
        both.tally.add(404)
        await until(lambda: both.answers() == 3)
        usages = [usage for counts in both.of(messages.Counts) for usage in counts.usage]
        assert [usage.toggles for usage in usages] == [{"a": (1, 0, {})}]


async def test_an_idle_worker_does_not_look_at_its_counters() -> None:
    """As long as no request is answered, a check does not look at the counters; after the next answer, everything is sent."""
    answered, done = [1], [0]

    def count_answered() -> int:
        done[0] += 1
        return answered[0]

    async with pair() as both:
        both.link.count_answered = count_answered
        await until(lambda: done[0] >= 2)
        both.tally.add(200)
        before = done[0]
        await until(lambda: done[0] >= before + 3)
        assert both.answers() == 0
        answered[0] = 2
        await until(lambda: both.answers() == 1)
        assert done[0] < module.FULL_SEND_EVERY


async def test_an_idle_worker_sends_everything_now_and_then() -> None:
    """What changes without a request is sent too, some checks later."""
    async with pair() as both:
        both.link.count_answered = lambda: 1
        both.tally.add(200)
        await until(lambda: both.answers() == 1)


async def test_a_scrape() -> None:
    """The metrics of all processes come from the parent. Each of two requests gets its own answer."""
    async with pair() as both:
        first, second = (asyncio.ensure_future(both.link.fetch_metrics()), asyncio.ensure_future(both.link.fetch_metrics()))
        await until(lambda: len(both.of(messages.MetricsRequest)) == 2)
        for ask, text in zip(both.of(messages.MetricsRequest)[::-1], (b"second", b"first"), strict=True):
            both.parent.send(messages.MetricsText(ask.number), text)
        assert (await first, await second) == (b"first", b"second")
        both.parent.send(messages.MetricsText(99), b"for nobody")


async def test_a_scrape_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the parent does not answer, the result is a 503."""
    monkeypatch.setattr(module, "METRICS_TIMEOUT_S", 0.02)
    async with pair() as both:
        with pytest.raises(HttpError) as raised:
            await both.link.fetch_metrics()
        assert raised.value.status == 503


async def test_leaving() -> None:
    """The worker ends on the parent's Leave, and when the parent ends. Serving is sent when it is reported."""
    async with pair() as both:
        both.link.report_serving()
        await until(lambda: both.of(messages.Serving))
        both.parent.send(messages.Leave())
        await until(lambda: both.commands.leave_calls == 1)
        both.parent.close()
        await until(lambda: both.commands.leave_calls == 2)
        assert both.log.at("warn") == ["the parent process is gone, this worker ends"]


async def test_the_last_counts() -> None:
    """All counts up to the end are sent before the channel closes."""
    async with pair() as both:
        both.tally.add(200)
        both.counters.count("a", False)
        await both.link.stop()
        await both.parent.closed.wait()
        assert both.answers() == 1
        assert both.of(messages.Counts)[-1].usage[0].toggles == {"a": (0, 1, {})}


async def test_before_it_starts() -> None:
    """Before the worker has counters a report is empty, and Leave does nothing."""
    async with pair(started=False) as both:
        both.parent.send(messages.CountsRequest(1))
        both.parent.send(messages.Leave())
        await until(lambda: both.of(messages.CountsSent))
        assert both.received == [messages.CountsSent(1)]
        await both.link.stop()
        await both.parent.closed.wait()


async def test_keys_and_draining() -> None:
    """Commands are carried out in order, new keys immediately. The parent learns when they are in use."""
    async with pair() as both:
        for message in (messages.Adopt(0), messages.Release(0), messages.Adopt(2)):
            both.parent.send(message)
        both.parent.send(messages.Reload(3, ENVIRONMENTS))
        both.parent.send(messages.Drain())
        both.parent.send(messages.Reload(4))
        await until(lambda: "drain" in both.commands.calls)
        assert both.commands.groups == [("adopt", 0), ("release", 0), ("adopt", 2)]
        assert [each for each in both.commands.calls if each != "drain"] == [ENVIRONMENTS, []]
        await until(lambda: len(both.of(messages.Reloaded)) == 2)
        assert both.of(messages.Reloaded) == [messages.Reloaded(3), messages.Reloaded(4)]


async def test_keys_before_the_start() -> None:
    """A command that comes before the start is carried out at the start."""
    async with pair(started=False) as both:
        both.parent.send(messages.Reload(1, ENVIRONMENTS))
        both.parent.send(messages.Checked(12.5))
        await until(lambda: len(both.link._early) == 2)
        assert both.commands.calls == both.received == []
        both.link.start(both.sources(), both.commands)
        assert (both.commands.calls, both.holder.checked_at) == ([ENVIRONMENTS], 12.5)
        await until(lambda: both.of(messages.Reloaded))


async def test_tokens() -> None:
    """Questions about tokens go to the parent, and its answers to those who wait. A token that is taken back is passed on."""
    revoked: list[str] = []
    async with pair() as both:
        both.link.on_revoke = revoked.append
        asking = asyncio.ensure_future(both.link.tokens.ask(["token"], b"\xcb", asyncio.get_running_loop().time() + 10))
        await until(lambda: both.of(messages.TokenQuestion))
        [question] = both.of(messages.TokenQuestion)
        assert (question.tokens, question.network) == (["token"], "cb") and 9 < question.seconds <= 10
        opened = Admission(0, True, TokenScope("production", None), True)
        both.parent.send(messages.TokenAnswer(1, [opened]))
        assert await asking == {"token": opened}
        both.parent.send(messages.ValidTokens([digest_of("token")]))
        both.parent.send(messages.Revoked("token"))
        await until(lambda: revoked)
        assert revoked == ["token"] and both.link.tokens._count_new(["token", "other"]) == 1


def names_of(environment: LinkedFeed) -> list[str] | None:
    """Return the toggles that an environment serves."""
    return None if environment.holder.current is None else list(environment.holder.current.names)


async def test_documents_of_two_environments() -> None:
    """A document is prepared and acknowledged, and served only when the parent sends Switch."""
    async with pair() as both:
        other = both.add(7)
        for environment, name in ((0, "a"), (7, "b")):
            both.parent.send(messages.Prepare(1, environment), document(name))
        await until(lambda: len(both.of(messages.Prepared)) == 2)
        assert (both.holder.current, other.holder.current) == (None, None)
        both.parent.send(messages.Switch(1, 7))
        await until(lambda: both.of(messages.Switched))
        assert [each.environment for each in both.of(messages.Prepared)] == [0, 7]
        assert both.of(messages.Switched) == [messages.Switched(1, 7)]
        assert (both.holder.current, names_of(other)) == (None, ["b"])
        assert other.holder.current is not None and other.holder.document is not None
        assert both.of(messages.Prepared)[1].revision == other.holder.current.revision
        assert other.holder.document.body == document("b")


async def test_messages_about_an_environment_that_is_gone() -> None:
    """They are skipped, and the others are handled: documents, and whether a check went well."""
    async with pair() as both:
        gone = both.add(7)
        both.link.remove_feed(7)
        for environment in (7, 0):
            both.parent.send(messages.Prepare(1, environment), document("a"))
            both.parent.send(messages.Switch(1, environment))
            both.parent.send(messages.Checked(2.5, environment))
            both.parent.send(messages.Failed(environment))
        await until(lambda: both.of(messages.Switched))
        assert both.of(messages.Switched) == [messages.Switched(1, 0)] and len(both.of(messages.Prepared)) == 1
        assert (both.holder.checked_at, both.holder.failures) == (2.5, 1)
        assert (gone.holder.current, gone.holder.checked_at, gone.holder.failures) == (None, None, 0)


async def test_counts_of_two_environments() -> None:
    """The usage of each has its number. Metrics belong to the process, and go up once."""
    async with pair() as both:
        other = both.add(7)
        both.counters.count("a", True)
        other.counters.add("a", 0, 2, {})
        both.tally.add(200)
        both.parent.send(messages.CountsRequest(4))
        await until(lambda: both.of(messages.CountsSent))
        counts = both.of(messages.Counts)
        assert [(each.environment, each.usage[0].toggles) for each in counts] == [(0, {"a": (1, 0, {})}), (7, {"a": (0, 2, {})})]
        assert both.answers() == 1 and counts[1].samples == []
        other.counters.add("a", 1, 0, {})
        other.counters.finish_report()
        await until(lambda: len(both.of(messages.Counts)) == 3)
        assert both.of(messages.Counts)[2].environment == 7, "a report of any environment is sent at once"


async def test_the_last_counts_of_an_environment() -> None:
    """Its removal sends them, before the parent learns of the removal."""
    async with pair() as both:
        other = both.add(7)
        other.counters.count("a", True)
        both.commands.on_reload = lambda: both.link.remove_feed(7)
        both.parent.send(messages.Reload(5, ENVIRONMENTS))
        await until(lambda: both.of(messages.Reloaded))
        assert [type(each) for each in both.received[-2:]] == [messages.Counts, messages.Reloaded]
        assert 7 in [each.environment for each in both.of(messages.Counts)]


async def test_a_new_environment_and_its_document() -> None:
    """A document that follows a Reload is for an environment that the worker has from then on."""
    async with pair() as both:
        added: list[LinkedFeed] = []
        both.commands.on_reload = lambda: added.append(both.add(7))
        both.parent.send(messages.Reload(5, ENVIRONMENTS))
        both.parent.send(messages.Checked(2.5, 7))
        both.parent.send(messages.Prepare(1, 7), document("b"))
        both.parent.send(messages.Switch(1, 7))
        await until(lambda: both.of(messages.Switched))
        assert names_of(added[0]) == ["b"] and added[0].holder.checked_at == 2.5


async def test_an_environment_is_ready_before_it_takes_the_place_of_another() -> None:
    """A document that is prepared is served before the Reload that follows."""
    async with pair() as both:
        ready: list[bool] = []
        both.commands.on_reload = lambda: ready.append(both.holder.is_ready)
        both.parent.send(messages.Prepare(1), document("a"))
        await until(lambda: both.of(messages.Prepared))
        both.parent.send(messages.Switch(1))
        both.parent.send(messages.Reload(5, ENVIRONMENTS))
        await until(lambda: both.of(messages.Reloaded))
        assert ready == [True]


async def test_a_worker_that_cannot_reload_gives_up() -> None:
    """A file that an environment needs may have changed since the parent read it. Another worker takes the place of this one."""
    async with pair() as both:
        both.commands.on_reload = Mock(side_effect=RuntimeError("s3cret"))
        both.parent.send(messages.Reload(5, ENVIRONMENTS))
        await both.parent.closed.wait()
        await until(lambda: both.commands.leave_calls)
        assert both.of(messages.Reloaded) == [] and both.log.at("error") == ["a worker gives up"]
        assert "s3cret" not in repr(both.log.lines)
