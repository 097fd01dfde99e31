"""One replica in its fleet: it takes and renews the lease, receives messages and publishes them (decision 0029).

`roles` has the table of roles and events. The leader renews its lease with every heartbeat, five times in the time of a lease. A
request does not use this module, and needs nothing from it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine

from flagsvc.core.background import SupervisedTask
from flagsvc.core.clock import Clock
from flagsvc.core.errors import StoreError
from flagsvc.core.log import Logger
from flagsvc.core.outages import OutageLog
from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.replicas.checks import UpstreamChecks
from flagsvc.proxy.replicas.client import Subscription, off_loop
from flagsvc.proxy.replicas.configurations import Configurations, digest_of
from flagsvc.proxy.replicas.coordinator import Coordinator
from flagsvc.proxy.replicas.heartbeat import Heartbeat, unpack
from flagsvc.proxy.replicas.leader import LeaderView
from flagsvc.proxy.replicas.publisher import LocalState, Publisher
from flagsvc.proxy.replicas.roles import TABLE, ReplicaAction, ReplicaEvent, ReplicaRole
from flagsvc.proxy.replicas.schedule import Schedule
from flagsvc.proxy.replicas.waits import happens_within


class Fleet:
    """One replica in the fleet, from `start` to `stop`.

    `news` is set when there is something that `FleetSource` has not returned yet, and `decided` once the role is known.
    `changes` counts how often this replica took or lost the lease. `applied` is when it last took a configuration from the
    fleet, in epoch seconds; 0.0 for never.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        local: LocalState,
        *,
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
        lease_ms: int,
        spread_ms: int,
    ) -> None:
        """Take what is on the server, and the state of the process. `draw` returns random numbers in [0, 1).

        If the server is lost, replicas that serve a configuration poll the upstream after a random time of up to
        `spread_ms`.
        """
        self.role = ReplicaRole.ALONE
        self.configurations = Configurations()
        self.news = asyncio.Event()
        self.decided = asyncio.Event()
        self.changes = 0
        self.applied = 0.0
        self._local = local
        self._clock = clock
        self._log = log
        self._schedule = Schedule(clock, draw, lease_ms / 1000, spread_ms / 1000)
        self._leader = LeaderView(clock)
        self._checks = UpstreamChecks()
        self._publisher = Publisher(
            coordinator, self.configurations, self._checks, local, lambda: self.leads, clock, log
        )
        self._outages = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._outage_log = OutageLog(log, "there is no fleet, this replica polls by itself", "the fleet is back")
        self._loop = SupervisedTask("fleet", self._run, clock=clock, log=log, draw=draw)

    @property
    def leads(self) -> bool:
        """Whether this replica polls the upstream for all."""
        return self.role is ReplicaRole.LEADER

    @property
    def follows(self) -> bool:
        """Whether another replica polls, and was heard recently. Otherwise this replica polls itself."""
        return self.role is ReplicaRole.FOLLOWER and not self._schedule.gone(self._leader.silence())

    @property
    def errors(self) -> int:
        """How often a request to the server failed."""
        return self._coordinator.client.errors

    @property
    def restarts(self) -> int:
        """How often the loop failed for an unexpected reason and was started again."""
        return self._loop.restarts

    @property
    def failing(self) -> str:
        """The kind of error of the leader's last poll; empty if it succeeded."""
        return self._leader.heartbeat.failing

    @property
    def published(self) -> float:
        """When this replica last published a configuration, in epoch seconds; 0.0 for never."""
        return self._publisher.published

    def age(self) -> float | None:
        """Return how many seconds ago the leader's last successful poll was; None for never."""
        return self._leader.age()

    def start(self) -> None:
        """Join the fleet."""
        self._loop.start()

    async def stop(self) -> None:
        """Leave the fleet. If this replica leads, another one takes over at once."""
        led = self.leads
        await self._loop.stop()
        if self._tasks:
            await asyncio.wait(self._tasks)  # a publication after the lease was given back would take it again
        if led:
            await ignore_store_errors(self._coordinator.release())
        await self._coordinator.client.aclose()

    async def wait_to_ask(self) -> None:
        """Return when this replica may poll the upstream: at once, unless all replicas have just lost the server."""
        await happens_within(self._clock, self._schedule.asks_at - self._schedule.now(), self.news)

    def note_check(self, failing: str, *, known: bool = False) -> None:
        """Record a poll of the upstream: the kind of its error, if it failed, and whether it returned what is `known`."""
        self._checks.note(failing, known)
        if self.leads:
            self._run_beside(self._renew())

    def accept(self, record: StoredDocument) -> None:
        """Record that this replica serves a configuration."""
        self.configurations.accept(record)
        if self.follows:
            self.applied = self._clock.now()

    async def publish(self, data: bytes) -> None:
        """Store a packed configuration that this replica, the leader, has accepted, and publish it. Raises StoreError.

        Does nothing if a newer one was accepted meanwhile.
        """
        digest = await off_loop(digest_of, data)
        if self.leads and digest == await self.configurations.accepted_digest():
            self._checks.confirmed = True
            await self._renew()

    @property
    def _coordinator(self) -> Coordinator:
        return self._publisher.coordinator

    async def _run(self) -> None:
        while True:
            try:
                async with self._coordinator.listening() as subscription:
                    await self._attend(subscription)
            except StoreError as error:
                self._outage_log.log_failure(error)
            finally:
                self._step(ReplicaEvent.REDIS_LOST)
            self._outages += 1
            await self._schedule.pause_after_outage(self._outages)

    async def _attend(self, subscription: Subscription) -> None:
        """Receive and publish until the server fails. Raises StoreError."""
        self._schedule.received = self._schedule.now()
        await self._seek()
        self._outages = 0
        self._outage_log.log_recovery()
        while True:
            message = await subscription.receive(self._schedule.left())
            heartbeat = None if message is None else unpack(message)
            if heartbeat is not None and heartbeat.leader != self._coordinator.token:
                await self._hear(heartbeat)
            if not self._schedule.left():
                await self._on_due()

    async def _on_due(self) -> None:
        """React to the time of a heartbeat.

        The leader publishes one. Another replica seeks the lease if the leader is silent.
        """
        self._schedule.next_heartbeat()
        action, silence = self._step(ReplicaEvent.DUE), self._leader.silence()
        if action is ReplicaAction.RENEW:
            await self._renew()
            await self._hand_over()
        elif (
            action is ReplicaAction.SEEK_IF_SILENT
            and self._schedule.silent(silence)
            and not self._schedule.is_paused(silence)
        ):
            await self._seek()

    async def _hear(self, heartbeat: Heartbeat) -> None:
        """Handle a heartbeat of another replica. Raises StoreError."""
        self._schedule.received = self._schedule.now()
        if heartbeat.leaving:
            await self._schedule.pause_after_release()
        if (
            self._step(ReplicaEvent.LEASE_RELEASED if heartbeat.leaving else ReplicaEvent.HEARTBEAT)
            is ReplicaAction.SEEK
        ):
            await self._seek()
        else:
            await self._follow(heartbeat, 0.0)

    async def _seek(self) -> None:
        """Take the lease if it is free; otherwise follow the replica that has it. Raises StoreError."""
        schedule, now = self._schedule, self._schedule.now()
        schedule.due = now + schedule.heartbeat_s
        own = Heartbeat(self._coordinator.token, self._checks.number, "", self._local.age())
        found = await self._coordinator.seek(own)
        if found is None:
            self._step(ReplicaEvent.LEASE_TAKEN)
            await self._renew()
            return
        heartbeat, ago = found
        ago = self._leader.told_ago(heartbeat, now, ago)
        self._step(ReplicaEvent.LEASE_HELD)
        if schedule.deaf(now) and not schedule.silent(ago):
            raise StoreError("the storage server does not pass on what replicas tell")
        if heartbeat is not None:
            await self._follow(heartbeat, ago)

    async def _follow(self, heartbeat: Heartbeat, ago: float) -> None:
        """Handle what a leader published this many seconds ago. Raises StoreError."""
        checked = self._leader.take(heartbeat, ago)
        wanted = heartbeat.digest and not self._older(heartbeat, ago)
        if wanted and not await self.configurations.has(heartbeat.digest):
            await self._read()
        self._leader.take_age()
        if checked or self.configurations.offer_again():
            self.news.set()

    def _older(self, heartbeat: Heartbeat, ago: float) -> bool:
        """Return whether this replica has polled the upstream itself, while it was alone, long after the leader did."""
        own = self._local.age()
        if own is None or heartbeat.age_s is None:
            return False
        return heartbeat.age_s + ago > own + self._schedule.heartbeat_s

    async def _read(self) -> None:
        """Offer the stored configuration of the fleet to the poller.

        Raises StoreError; if the stored data are damaged, this replica polls itself.
        """
        found = await self._coordinator.read()
        if found is None:
            raise StoreError("what the fleet stores is not whole")
        if not await self.configurations.has(found[1]):
            self.configurations.offer(*found)
            self.news.set()

    async def _renew(self) -> None:
        """Renew the lease and publish a heartbeat, as the leader. Raises StoreError."""
        if not await self._publisher.renew() and self._step(ReplicaEvent.LEASE_LOST) is ReplicaAction.SEEK_SOON:
            self._schedule.due = 0.0
            self._leader.heard -= self._schedule.lease_s

    async def _hand_over(self) -> None:
        """Let another replica lead, if there is one and this one is of no use as the leader. Raises StoreError."""
        useless = self._checks.useless(self.configurations.accepted is not None)
        if useless and await self._coordinator.listeners() > 1:
            self._schedule.rest()
            async with self._publisher.telling:
                self._step(ReplicaEvent.HAND_OVER)
                await self._coordinator.release()

    def _step(self, event: ReplicaEvent) -> ReplicaAction:
        """Change to the role that follows from an event, and return the action."""
        role, action = TABLE[self.role, event]
        self.decided.set()
        if role is not self.role:
            self._change(role)
        if action is ReplicaAction.SPREAD and self._local.serving():
            self._schedule.spread()
        return action

    def _change(self, role: ReplicaRole) -> None:
        """Change the role, and forget what was known in the former role."""
        self.changes += ReplicaRole.LEADER in (self.role, role)
        self.role = role
        self._checks.forget()
        self._publisher.forget()
        self._schedule.asks_at = 0.0
        self._leader.heard = self._schedule.now()
        self._log.info("the role in the fleet has changed", role=str(role))
        self.news.set()

    def _run_beside(self, work: Coroutine[None, None, None]) -> None:
        """Run work beside the loop. The loop notices by itself if the server is lost."""
        task = asyncio.get_running_loop().create_task(ignore_store_errors(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def ignore_store_errors(work: Coroutine[None, None, None]) -> None:
    """Run work that may fail because the server is lost."""
    with contextlib.suppress(StoreError):
        await work
