"""A proxy that follows its upstream by stream serves what a proxy serves that polls, for any course of changes and faults.

A random walk of a flag server with streams, and of both proxies. All of it is in memory, and the clock is a fake one.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, deque
from collections.abc import Callable
from random import Random
from zlib import crc32

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.http.client.answers import Sink
from flagsvc.proxy.configuration.follower import StreamFollower
from flagsvc.proxy.configuration.lifecycle import State
from flagsvc.proxy.configuration.sources import HttpSource
from flagsvc.proxy.upstream import Fetched
from flagsvc.settings.rows.upstream import AUTO
from flagsvc.testing import FakeClock, RecordingLog, RecordingUpstream, turns
from support.polling import EMPTY, PollerScene, document
from support.same_inputs import examples
from support.streams import etag_of, event, id_of

NAMES = ("one", "two", "three", "four")
PAUSES = (0.0, 0.01, 0.1, 0.3, 1.0, 5.0, 12.0, 40.0)
"""Seconds between two steps."""
SOON_S = 0.2
"""Seconds within which a change arrives over a stream, also after a poll."""
INTERVAL_S = 5.0
SETTLED_S = 80.0
"""Seconds after which a proxy has found the truth by its polls alone: the longest back-off, the safety net, an empty document."""
REFUSALS = (
    UpstreamError("not-found", "x", status=404),
    UpstreamError("throttled", "x", status=429, retry_after=7.0),
    UpstreamError("server", "x", status=503),
)
DOWN = UpstreamError("network", "x")


class WalkServer:
    """A flag server. With `marked` its ETags tell the ids of its events, as ours do; else the ids are revisions."""

    def __init__(self, random: Random, *, marked: bool) -> None:
        self.random = random
        self.marked = marked
        self.body = self.before = document("first")
        self.revision = 1
        self.streams: set[asyncio.Queue[bytes | UpstreamError | None]] = set()
        self.down: UpstreamError | None = None
        self.refusal: UpstreamError | None = None

    @property
    def event_id(self) -> str:
        return id_of(self.body) if self.marked else str(self.revision)

    def etag(self, body: bytes) -> str:
        return etag_of(body) if self.marked else f'"{crc32(body):08x}"'

    def change(self, body: bytes) -> None:
        """Serve another document from now on."""
        self.before, self.body = self.body, body
        self.revision += 1

    def announce(self, event_id: str | None = None) -> None:
        """Tell all streams of a document, by default of the present one."""
        self.send(event("unleash-updated", self.event_id if event_id is None else event_id))

    def send(self, item: bytes | UpstreamError | None) -> None:
        """Send bytes over all streams, or end them: in order (None) or with an error."""
        for stream in self.streams:
            stream.put_nowait(item)


class WalkUpstream(RecordingUpstream):
    """A session with that server. The next `late` polls reach a replica that does not have the last change."""

    def __init__(self, server: WalkServer) -> None:
        super().__init__()
        self.server = server
        self.late = 0
        self.polls = 0

    async def get_features(self, etag: str | None) -> Fetched:
        """Answer a poll."""
        server = self.server
        self.polls += 1
        for _ in range(server.random.randrange(4)):
            await asyncio.sleep(0)
        if server.down is not None:
            raise server.down
        body = server.before if self.late > 0 else server.body
        self.late -= 1
        found = server.etag(body)
        for _ in range(server.random.randrange(4)):
            await asyncio.sleep(0)
        return Fetched(None, etag) if etag == found else Fetched(body, found)

    async def follow_stream(self, last_id: str, open_sink: Callable[[], Sink]) -> None:
        """Send what the server sends, in pieces of any size."""
        server = self.server
        await asyncio.sleep(0)
        refusal = server.down or server.refusal
        if refusal is not None:
            raise refusal
        sink = open_sink()
        stream: asyncio.Queue[bytes | UpstreamError | None] = asyncio.Queue()
        server.streams.add(stream)
        try:
            if last_id != server.event_id:
                stream.put_nowait(event("unleash-connected", server.event_id))
            while (item := await stream.get()) is not None:
                if isinstance(item, UpstreamError):
                    raise item
                cut = server.random.randrange(len(item) + 1)
                sink.feed(item[:cut])
                sink.feed(item[cut:])
        finally:
            server.streams.discard(stream)


class FollowWalk:
    """The walk. `done` counts its steps by name, `soon` and `settled` how often the two proxies were compared."""

    def __init__(self, seed: int, *, marked: bool) -> None:
        self.random = Random(seed)
        self.clock, self.log = FakeClock(), RecordingLog()
        self.server = WalkServer(self.random, marked=marked)
        self.done: Counter[str] = Counter()
        self.soon = self.settled = 0
        self.last: deque[str] = deque(maxlen=12)
        self.is_faultless = True
        self.streamed_upstream, self.polled_upstream = WalkUpstream(self.server), WalkUpstream(self.server)
        self.source = HttpSource(self.streamed_upstream, self.clock)
        self.streamed = PollerScene(self.source, clock=self.clock, log=self.log)
        self.polled = PollerScene(HttpSource(self.polled_upstream, self.clock), clock=self.clock, log=self.log)
        self.follower = StreamFollower(
            self.streamed_upstream,
            self.source,
            self.streamed.holder,
            mode=AUTO,
            clock=self.clock,
            log=self.log,
            draw=self.random.random,
        )

    # ---- steps

    def change(self) -> None:
        """Change a flag, and tell."""
        self.server.change(self._other_document())
        self.server.announce()

    def change_twice(self) -> None:
        """Change something and take it back, within one interval."""
        body = self.server.body
        self.change()
        self.server.change(body)
        self.server.announce()

    def heartbeat(self) -> None:
        """Send a comment."""
        self.server.send(b":\n\n")

    def replay(self) -> None:
        """Tell of an older document again."""
        self.server.announce(id_of(self.server.before) if self.server.marked else str(max(0, self.server.revision - 1)))

    def reorder(self) -> None:
        """Change twice, and tell in the wrong order."""
        self.server.change(self._other_document())
        first = self.server.event_id
        self.server.change(self._other_document())
        self.server.announce()
        self.server.announce(first)

    def empty(self) -> None:
        """Lose all flags, and tell."""
        self.server.change(EMPTY)
        self.server.announce()

    def lose(self) -> None:
        """Change a flag, and lose the event."""
        self.server.change(self._other_document())

    def lag(self) -> None:
        """Change a flag, and tell before every replica has it."""
        self.streamed_upstream.late = self.random.randrange(1, 7)
        self.change()

    def cut(self) -> None:
        """Cut all streams."""
        self.server.send(self.random.choice([UpstreamError("network", "x"), UpstreamError("silent", "x"), None]))

    def restart(self) -> None:
        """Restart the server: it may have other flags, and its revisions begin again."""
        self.server.down = self.random.choice([DOWN, UpstreamError("server", "x", status=503, retry_after=20.0)])
        self.cut()
        self.server.revision = 0
        if self.random.random() < 0.5:
            self.server.change(self._other_document())

    def come_back(self) -> None:
        """Answer again, and have every replica there."""
        self.server.down = self.server.refusal = None
        self.streamed_upstream.late = 0

    def refuse(self) -> None:
        """Offer no streams from now on."""
        self.server.refusal = self.random.choice(REFUSALS)
        self.cut()

    def ask_for_polls(self) -> None:
        self.server.send(event("fetch-mode", "1", "polling"))

    def garble(self) -> None:
        """Send bytes that mean nothing."""
        self.server.send(
            self.random.choice([self.random.randbytes(30), b"data: x", b"id: 1\n", b"event: unleash-updated\n", b"\r"])
        )

    def renew(self) -> None:
        """Use a new token."""
        self.source.renew()
        self.follower.renew()

    def _other_document(self) -> bytes:
        """Return a document with flags that is not the present one."""
        while (body := document(*self.random.sample(NAMES, self.random.randrange(1, 4)))) == self.server.body:
            pass
        return body

    # ---- the walk

    async def run(self, steps: int) -> None:
        """Start both proxies, make so many steps, and stop them."""
        for part in (self.streamed.poller, self.polled.poller, self.follower):
            part.start()
        try:
            await turns()
            for _ in range(steps):
                await self._step()
            await self._settle()
        finally:
            for part in (self.streamed.poller, self.polled.poller, self.follower):
                await part.stop()
        assert self.streamed.poller.restarts == self.polled.poller.restarts == self.follower.restarts == 0, self.log.lines
        assert self.clock.sleeping == []

    async def _step(self) -> None:
        faultless = self.random.random() < 0.5
        step = self.random.choice(FAULTLESS if faultless else FAULTS)
        step(self)
        self.last.append(step.__name__)
        self.done[step.__name__] += 1
        self.is_faultless = self.is_faultless and faultless
        if self.is_faultless and self.streamed.holder.stream.is_open:
            await self._compare_soon()
        else:
            await self.clock.advance(self.random.choice(PAUSES))
            self._check_served()
            if self.random.random() < 0.2:
                await self._settle()

    async def _compare_soon(self) -> None:
        """Over a stream a change is there at once, and by polls within an interval."""
        await self.clock.advance(SOON_S)
        assert self._streamed_body() == self.server.body, self._story()
        await self.clock.advance(INTERVAL_S)
        self._compare()
        self.soon += 1

    async def _settle(self) -> None:
        """Let the server work again, and both proxies find the truth: with an open stream, or without."""
        self.come_back()
        self.server.send(b"\n\n")  # what was garbled ends here
        await self.clock.advance(SETTLED_S)
        self._compare()
        if not self.streamed.holder.stream.is_open:
            self.follower.renew()
            await self.clock.advance(SOON_S)
        self.settled += 1
        self.is_faultless = True

    def _compare(self) -> None:
        """Both serve what the server has, byte for byte, and know that."""
        streamed, polled = self.streamed.holder, self.polled.holder
        assert streamed.document is not None and polled.document is not None
        assert self._streamed_body() == polled.document.body == self.server.body, self._story()
        assert streamed.document.etag == polled.document.etag, self._story()
        assert streamed.state == polled.state == State.FRESH, self._story()

    def _check_served(self) -> None:
        """What is served is a document, also in the middle of all faults."""
        assert self._streamed_body().startswith(b'{"version": 2')

    def _streamed_body(self) -> bytes:
        assert self.streamed.holder.document is not None
        return self.streamed.holder.document.body

    def _story(self) -> str:
        notes = self.streamed.holder.stream
        return (
            f"after {self.done.total()} steps, the last {list(self.last)}: {notes}, {[str(line) for line in self.log.lines[-20:]]}"
        )


FAULTLESS = (FollowWalk.change, FollowWalk.change, FollowWalk.change_twice, FollowWalk.heartbeat)
"""Steps after which a stream that is open stays so, and says all that is new."""
FAULTS = (
    FollowWalk.replay,
    FollowWalk.reorder,
    FollowWalk.empty,
    FollowWalk.lose,
    FollowWalk.lag,
    FollowWalk.cut,
    FollowWalk.restart,
    FollowWalk.come_back,
    FollowWalk.refuse,
    FollowWalk.ask_for_polls,
    FollowWalk.garble,
    FollowWalk.renew,
)


ways = pytest.mark.parametrize("marked", [True, False], ids=["the ETag tells the id", "revisions"])


@ways
async def test_both_serve_the_same_bytes(marked: bool) -> None:
    """A change over a healthy stream at once, and any faults within some polls (behaviour: Following the upstream)."""
    walk = FollowWalk(7, marked=marked)
    await walk.run(examples(600))
    assert walk.soon and walk.settled
    if examples(600) == 600:
        assert walk.done.keys() == {step.__name__ for step in (*FAULTLESS, *FAULTS)}
        assert all(walk.streamed.holder.stream.ends[reason] for reason in ("closed", "broken", "silent", "polling", "not-offered"))


STEPS = int(os.environ.get("FOLLOW_STEPS", "100000"))
"""The number of steps of all long walks."""
SEED = int(os.environ.get("FOLLOW_SEED", "1"))
WALKS = 10


@pytest.mark.long
@ways
@pytest.mark.parametrize("seed", range(SEED, SEED + WALKS))
def test_a_long_walk(marked: bool, seed: int) -> None:
    """The same for ten walks with seeds of their own. The figures are printed with `-s`."""
    walk = FollowWalk(seed, marked=marked)
    asyncio.run(walk.run(STEPS // WALKS // 2))
    notes = walk.streamed.holder.stream
    print(f"\nseed {seed}: {notes.opened} streams, {sum(notes.events.values())} events, ends {notes.ends};", end=" ")
    print(f"{walk.streamed_upstream.polls} polls beside {walk.polled_upstream.polls}; {dict(walk.done)};", end=" ")
    print(f"compared {walk.soon} times at once and {walk.settled} times later")
