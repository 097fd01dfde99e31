"""What a leader tells: heartbeats, and the configuration that it has accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger
from flagsvc.proxy.configuration.stores.file import frame
from flagsvc.proxy.replicas.checks import UpstreamChecks
from flagsvc.proxy.replicas.client import off_loop
from flagsvc.proxy.replicas.configurations import Configurations
from flagsvc.proxy.replicas.coordinator import Coordinator
from flagsvc.proxy.replicas.heartbeat import HEAD_BYTES, Heartbeat, digest_in


@dataclass(frozen=True)
class LocalState:
    """What the fleet asks of the rest of the process.

    Whether anything is served, how many seconds ago the last check was that went well (None for never), and whether the last one
    brought a document that cannot be used.
    """

    serving: Callable[[], bool]
    age: Callable[[], float | None]
    rejecting: Callable[[], bool]


class Publisher:
    """Tells as the leader, while `leads` returns true.

    `published` are the epoch seconds of the last configuration that was given to the fleet, 0.0 for never. `telling` is held while
    something is told: what is told after the lease is given back would take it again.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        configurations: Configurations,
        checks: UpstreamChecks,
        local: LocalState,
        leads: Callable[[], bool],
        clock: Clock,
        log: Logger,
    ) -> None:
        self.coordinator = coordinator
        self.published = 0.0
        self.telling = asyncio.Lock()
        self._configurations = configurations
        self._checks = checks
        self._local = local
        self._leads = leads
        self._clock = clock
        self._log = log
        self._stored = ""

    def forget(self) -> None:
        """Know nothing any more of what is stored."""
        self._stored = ""

    async def renew(self) -> bool:
        """Renew the lease and tell a heartbeat; store what is accepted where something else is stored, or nothing.

        Return whether this replica still leads. Raises StoreError.
        """
        async with self.telling:
            if not await self._tell():
                return False
            accepted, digest = self._configurations.accepted, await self._configurations.accepted_digest()
            other = self._stored != digest and (self._checks.confirmed or not self._stored)
            if accepted is None or not other or not self._leads():
                return True
            return await self._tell(await off_loop(frame, accepted.pack()))

    async def _tell(self, framed: bytes | None = None) -> bool:
        """Tell a heartbeat, with a configuration to store if one is given; return whether this replica still leads."""
        digest = self._stored if framed is None else digest_in(framed[:HEAD_BYTES])
        heartbeat = await self._heartbeat(digest, stores=framed is not None)
        stored = await self.coordinator.tell(heartbeat, framed) if self._leads() else None
        if stored is None:
            return False
        self._stored = stored
        if framed is not None:
            self.published = self._clock.now()
            self._log.info("configuration given to the fleet", digest=digest[:12])
        return True

    async def _heartbeat(self, digest: str, *, stores: bool) -> Heartbeat:
        """Return the next heartbeat; it has the digest only where that is of what the upstream has confirmed."""
        checks = self._checks
        told = checks.confirmed and (stores or digest == await self._configurations.accepted_digest())
        failing = checks.failing or ("document" if self._local.rejecting() else "")
        return Heartbeat(self.coordinator.token, checks.number, digest if told else "", self._local.age(), failing)
