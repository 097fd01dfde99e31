"""Who this replica is in its fleet, from moment to moment (decision 0029).

    alone ──── the server is there ───→ follower ──── the lease was free ───→ leader
      ↑                                   │   ↑                                 │
      └──── the server does not answer ───┘   └── another has it, or handed over ┘

Whoever is alone or leads asks the upstream; a follower is told. The leader renews its lease with every beat, five times in the
time it holds. Nothing here is on the way of a request, and nothing of it is needed to serve one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum

from flagsvc.core.background import SupervisedTask
from flagsvc.core.backoff import delay_after_failure
from flagsvc.core.clock import Clock
from flagsvc.core.errors import StoreError
from flagsvc.core.log import Logger
from flagsvc.core.outages import OutageLog
from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.configuration.stores.file import frame
from flagsvc.proxy.replicas.beat import HEAD_BYTES, Beat, digest_in, unpack
from flagsvc.proxy.replicas.client import Ears, aside
from flagsvc.proxy.replicas.known import Known, digest_of
from flagsvc.proxy.replicas.post import Post
from flagsvc.proxy.replicas.waits import first

BEATS = 5
"""Beats in the time of a lease."""
SILENT_BEATS = 1.6
"""After so many beats without one the lease is looked at."""
SILENT_LEASES = 3
"""Who has followed nobody for the time of so many asks the upstream itself."""
DEAF_BEATS = 4.0
"""Who has heard nothing for so many, while the lease is renewed, subscribes anew."""
FREED_S = 0.05
"""When a lease is given back, the others reach for it within this many seconds, each at its own moment."""
FAILURES = 3
"""A leader that cannot reach the upstream, or has nothing to serve and gets nothing, so many times in a row lets another try,"""
REST_LEASES = 3
"""and does not reach for the lease itself for the time of so many, unless nobody has it."""


class Role(StrEnum):
    """Who a replica is."""

    ALONE = "alone"
    FOLLOWER = "follower"
    LEADER = "leader"


@dataclass(frozen=True)
class Neighbours:
    """What the fleet asks of the rest of the process: whether anything is served, how many seconds ago the last check was that went
    well, None for never, and whether the last one brought a document that cannot be used.
    """

    serving: Callable[[], bool]
    age: Callable[[], float | None]
    rejecting: Callable[[], bool]


class Fleet:
    """One replica's part in the fleet, from `start` to `stop`.

    `news` is set when there is something that `FleetSource` has not brought yet, `decided` once it is known who this replica is.
    `changes` counts how often it took or lost the lease; `published` and `applied` are the epoch seconds of the last configuration
    that it gave to the fleet or took from it, 0.0 for never.
    """

    def __init__(
        self,
        post: Post,
        near: Neighbours,
        *,
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
        lease_ms: int,
        spread_ms: int,
    ) -> None:
        """Take what is said on the server, and the neighbours; `draw` gives random numbers of [0, 1).

        When the server goes away, replicas that serve something ask the upstream at a moment each of its own within `spread_ms`.
        """
        self.role = Role.ALONE
        self.known = Known()
        self.news = asyncio.Event()
        self.decided = asyncio.Event()
        self.changes = 0
        self.published = 0.0
        self.applied = 0.0
        self._post = post
        self._near = near
        self._clock = clock
        self._log = log
        self._draw = draw
        self._lease_s = lease_ms / 1000
        self._beat_s = self._lease_s / BEATS
        self._spread_s = spread_ms / 1000
        self._due = self._beaten = self._said = self._heard = self._turn_at = self._resting = 0.0
        self._beat = Beat("")
        self._as_of: float | None = None
        self._checks = self._failures = 0
        self._failing = self._stored = ""
        self._confirmed = False
        self._outages = 0
        self._telling = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._trouble = OutageLog(log, "there is no fleet, this replica polls by itself", "the fleet is back")
        self._loop = SupervisedTask("fleet", self._run, clock=clock, log=log, draw=draw)

    # ---- what others see

    @property
    def leads(self) -> bool:
        """Whether this replica asks the upstream for all."""
        return self.role is Role.LEADER

    @property
    def follows(self) -> bool:
        """Whether another does, and was heard of not too long ago: whatever goes wrong in here, somebody asks."""
        silent = self._clock.monotonic() - self._beaten
        return self.role is Role.FOLLOWER and silent < SILENT_LEASES * self._lease_s

    @property
    def errors(self) -> int:
        """How often the server did not do what it was asked."""
        return self._post.client.errors

    @property
    def restarts(self) -> int:
        """How often the loop failed for a reason nobody thought of and was started again."""
        return self._loop.restarts

    @property
    def failing(self) -> str:
        """The kind of error that the leader's last check brought, empty where it went well."""
        return self._beat.failing

    def age(self) -> float | None:
        """Return how many seconds ago the leader's last check was that went well, None for never."""
        return None if self._as_of is None else max(0.0, self._clock.monotonic() - self._as_of)

    # ---- what others tell

    def start(self) -> None:
        """Join."""
        self._loop.start()

    async def stop(self) -> None:
        """Leave; if this replica leads, another takes over at once."""
        led = self.leads
        await self._loop.stop()
        if self._tasks:
            await asyncio.wait(self._tasks)  # what is told after the lease is given back would take it again
        if led:
            await quietly(self._post.leave())
        await self._post.client.aclose()

    async def turn_to_ask(self) -> None:
        """Return when this replica may ask the upstream; that is now, unless all have just begun to do so by themselves."""
        await first(self._clock, self._turn_at - self._clock.monotonic(), self.news)

    def checked(self, failing: str, *, known: bool = False) -> None:
        """Note that this replica has asked the upstream: the kind of error, if it met one, or that it brought what is `known`."""
        self._checks += 1
        self._failing = failing
        self._failures = self._failures + 1 if failing else 0
        self._confirmed = self._confirmed or known
        if self.leads:
            self._soon(self._tell())

    def take(self, record: StoredDocument) -> None:
        """Note that a record is what this replica serves."""
        self.known.take(record)
        if self.follows:
            self.applied = self._clock.now()

    async def publish(self, data: bytes) -> None:
        """Store a packed record that this replica, the leader, has accepted, and tell the others. Raises StoreError.

        Does nothing where a newer one was accepted meanwhile.
        """
        digest = await aside(digest_of, data)
        if self.leads and digest == await self.known.own_digest():
            self._confirmed = True
            await self._tell()

    # ---- the loop

    async def _run(self) -> None:
        while True:
            try:
                async with self._post.listening() as ears:
                    await self._attend(ears)
            except StoreError as error:
                self._trouble.log_failure(error)
            finally:
                self._turn(Role.ALONE)
            self._outages += 1
            most = BEATS * self._beat_s
            await self._clock.sleep(delay_after_failure(self._outages, self._draw(), self._beat_s, ceiling=most))

    async def _attend(self, ears: Ears) -> None:
        """Be one of the fleet until the server fails. Raises StoreError."""
        self._heard = self._clock.monotonic()
        await self._seek()
        self._outages = 0
        self._trouble.log_recovery()
        while True:
            message = await ears.hear(max(0.0, self._due - self._clock.monotonic()))
            beat = None if message is None else unpack(message)
            if beat is not None and beat.leader != self._post.token:
                await self._hear(beat)
            if self._clock.monotonic() >= self._due:
                await self._tick()

    async def _tick(self) -> None:
        """Do what is done with every beat: the leader beats, the others see to it that there is one."""
        now = self._clock.monotonic()
        self._due = now + self._beat_s * (0.9 + self._draw() / 5)
        if self.leads:
            await self._tell()
            await self._hand_over()
        elif now - self._beaten >= SILENT_BEATS * self._beat_s and not self._rests(now):
            await self._seek()

    async def _hear(self, beat: Beat) -> None:
        """Take another replica's beat."""
        self._heard = self._clock.monotonic()
        if beat.leaving:
            await self._clock.sleep(self._draw() * FREED_S)
        if beat.leaving or self.leads:
            await self._seek()
        else:
            await self._note(beat, 0.0)

    async def _seek(self) -> None:
        """Take the lease if it is free, else follow whoever has it."""
        now = self._clock.monotonic()
        self._due = now + self._beat_s
        found = await self._post.seek(Beat(self._post.token, self._checks, "", self._near.age()))
        if found is None:
            self._turn(Role.LEADER)
            return await self._tell()
        beat, ago = found
        if beat == self._beat:  # nobody has said anything since, whatever time the lease has left
            ago = max(ago, now - self._said)
        self._turn(Role.FOLLOWER)
        if now - self._heard > DEAF_BEATS * self._beat_s and ago < SILENT_BEATS * self._beat_s:
            raise StoreError("the storage server does not pass on what replicas tell")
        if beat is not None:
            await self._note(beat, ago)
        return None

    async def _note(self, beat: Beat, ago: float) -> None:
        """Take what a leader said so many seconds ago."""
        told, said = self._beat, self._clock.monotonic() - ago
        self._beat, self._beaten, self._said = beat, said, said
        if beat.digest and not self._older(beat, ago) and not await self.known.has(beat.digest):
            await self._fetch()
        if beat.age_s is not None:  # not before what the leader has checked is here
            self._as_of = said - beat.age_s
        if (beat.leader, beat.number) != (told.leader, told.number) or self.known.due():
            self.news.set()

    def _older(self, beat: Beat, ago: float) -> bool:
        """Return whether this replica has asked the upstream itself, while it was alone, long after the leader did."""
        own = self._near.age()
        return own is not None and beat.age_s is not None and beat.age_s + ago > own + self._beat_s

    async def _fetch(self) -> None:
        """Have what the fleet serves offered to the poller. Raises StoreError, also where that is not whole: then this one asks."""
        found = await self._post.read()
        if found is None:
            raise StoreError("what the fleet stores is not whole")
        if not await self.known.has(found[1]):
            self.known.present(*found)
            self.news.set()

    # ---- leading

    async def _tell(self) -> None:
        """Beat; store ours where another is stored, or none. Raises StoreError."""
        async with self._telling:
            await self._say()
            own, digest = self.known.own, await self.known.own_digest()
            if self.leads and own is not None and self._stored != digest and (self._confirmed or not self._stored):
                await self._say(await aside(frame, own.pack()))

    async def _say(self, framed: bytes | None = None) -> None:
        """Beat, with a configuration to store if one is given. Raises StoreError."""
        digest = self._stored if framed is None else digest_in(framed[:HEAD_BYTES])
        ours = self._confirmed and (framed is not None or digest == await self.known.own_digest())
        failing = self._failing or ("document" if self._near.rejecting() else "")
        beat = Beat(self._post.token, self._checks, digest if ours else "", self._near.age(), failing)
        stored = await self._post.tell(beat, framed) if self.leads else None
        if stored is None:
            return self._lost()
        self._stored = stored
        if framed is not None:
            self.published = self._clock.now()
            self._log.info("configuration given to the fleet", digest=digest[:12])
        return None

    def _lost(self) -> None:
        """Follow whoever has taken the lease."""
        if self.leads:
            self._turn(Role.FOLLOWER)
            self._due, self._beaten = 0.0, self._beaten - self._lease_s

    async def _hand_over(self) -> None:
        """Let another replica lead, if there is one, where this one cannot reach the upstream, or has nothing and gets nothing.

        Raises StoreError.
        """
        useless = self._failures >= FAILURES and (self._failing == "network" or self.known.own is None)
        if useless and await self._post.listeners() > 1:
            self._resting = self._clock.monotonic() + REST_LEASES * self._lease_s
            async with self._telling:  # what is told after it would take the lease again
                self._turn(Role.FOLLOWER)
                await self._post.leave()

    def _rests(self, now: float) -> bool:
        """Return whether this replica leaves the lease to others for now."""
        return now < self._resting and now - self._beaten < 2 * self._lease_s

    # ---- turning

    def _turn(self, role: Role) -> None:
        """Be somebody else from now on."""
        before, self.role = self.role, role
        self.decided.set()
        if before is role:
            return
        self.changes += Role.LEADER in (before, role)
        self._failures, self._failing, self._confirmed, self._stored = 0, "", False, ""
        self._turn_at, self._beaten = 0.0, self._clock.monotonic()
        if role is Role.ALONE and self._near.serving():
            self._turn_at = self._clock.monotonic() + self._draw() * self._spread_s
        self._log.info("the role in the fleet has changed", role=str(role))
        self.news.set()

    def _soon(self, work: Coroutine[None, None, None]) -> None:
        """Have something done beside the loop, which notices for itself when the server is away."""
        task = asyncio.get_running_loop().create_task(quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def quietly(work: Coroutine[None, None, None]) -> None:
    """Do something that may fail because the server is away."""
    with contextlib.suppress(StoreError):
        await work
