"""Publishes as the leader: heartbeats, and the configuration that it has accepted."""

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
    """What the fleet needs to know of the rest of the process.

    `serving` tells whether there is a configuration, `age` how many seconds ago the last successful poll was (None for never),
    and `rejecting` whether the last poll returned a document that cannot be used.
    """

    serving: Callable[[], bool]
    age: Callable[[], float | None]
    rejecting: Callable[[], bool]


class Publisher:
    """Publishes while `leads` returns true.

    `published` is when a configuration was last published, in epoch seconds; 0.0 for never. `telling` is held during a
    publication, because one that comes after the lease was given back would take the lease again.
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
        """Forget what is stored."""
        self._stored = ""

    async def renew(self) -> bool:
        """Renew the lease and publish a heartbeat. If nothing or something else is stored, store the accepted configuration.

        Returns whether this replica still leads. Raises StoreError.
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
        """Publish a heartbeat, with a configuration to store if one is given. Returns whether this replica still leads."""
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
        """Return the next heartbeat. It has a digest only if the upstream has confirmed that configuration."""
        checks = self._checks
        told = checks.confirmed and (stores or digest == await self._configurations.accepted_digest())
        failing = checks.failing or ("document" if self._local.rejecting() else "")
        return Heartbeat(self.coordinator.token, checks.number, digest if told else "", self._local.age(), failing)
