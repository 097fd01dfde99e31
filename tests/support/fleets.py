"""Replicas of a fleet in one event loop, on a real Redis server and over one upstream that counts requests."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.configuration import Holder, Poller, Preparer, State
from flagsvc.proxy.replicas import (
    Access,
    Client,
    Coordinator,
    Fleet,
    FleetSource,
    LocalState,
    ReplicaRole,
    ServerStore,
    SharedDocumentStorage,
)
from flagsvc.proxy.upstream import Fetched
from flagsvc.settings.storage import RedisAddress
from flagsvc.testing import RecordingLog
from support.tiny_engine import TinySnapshot, tiny_compile

KEY = "k" * 40
PREFIX = "test"
LEASE_MS = 500
WAIT_S = 1.0
"""Seconds that a fetch waits for the fleet."""
ANSWER_S = 10.0
"""Seconds that the storage server may take to answer. A machine that stalls for a moment does not make it look lost."""


class Clock(SystemClock):
    """The clock of one replica: `ahead` seconds more have passed for it than for the server and for others."""

    ahead = 0.0

    def monotonic(self) -> float:
        """Return seconds that never run backwards, unless `ahead` is made less."""
        return super().monotonic() + self.ahead


class CountedUpstream:
    """An upstream with `body`; `polls` has the name of every replica that asked, `moments` when it did.

    `down` is the error that all get, if there is one; those that are `cut_off` do not get here.
    """

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.polls: list[str] = []
        self.moments: list[float] = []
        self.down: UpstreamError | None = None
        self.cut_off: set[str] = set()

    def ask(self, name: str, etag: str | None) -> Fetched:
        """Answer as a flag server does."""
        self.polls.append(name)
        self.moments.append(time.monotonic())
        if self.down is not None:
            raise self.down
        if name in self.cut_off:
            raise UpstreamError("network", "no way there")
        mine = f'"{hashlib.sha256(self.body).hexdigest()[:12]}"'
        return Fetched(None, mine) if etag == mine else Fetched(self.body, mine)


class ReplicaSource:
    """The source of one replica."""

    pace: float | None = None

    def __init__(self, upstream: CountedUpstream, name: str) -> None:
        self._upstream = upstream
        self._name = name

    async def fetch(self, etag: str | None) -> Fetched:
        """Ask."""
        return self._upstream.ask(self._name, etag)


class Replica:
    """A poller with everything that a fleet puts around it."""

    def __init__(
        self,
        name: str,
        server: RedisAddress,
        upstream: CountedUpstream,
        refresh_ms: int,
        lease_ms: int = LEASE_MS,
        timeout_s: float = ANSWER_S,
    ) -> None:
        self.name = name
        self.log = RecordingLog()
        self.holder: Holder[TinySnapshot] = Holder()
        clock, draw = Clock(), random.Random(name).random
        client = Client(Access(server, timeout_s=timeout_s))
        self.store = ServerStore(client, PREFIX)
        self.fleet = Fleet(
            Coordinator(client, PREFIX, KEY, lease_ms),
            LocalState(lambda: self.holder.is_ready, self.age, lambda: self.holder.state == State.REFUSED),
            clock=clock,
            log=self.log,
            draw=draw,
            lease_ms=lease_ms,
            spread_ms=refresh_ms,
        )
        self.clock = clock
        self.poller = Poller(
            FleetSource(ReplicaSource(upstream, name), self.fleet, clock, WAIT_S),
            self.holder,
            Preparer(tiny_compile),
            SharedDocumentStorage(self.fleet, self.store, KEY, self.log),
            clock=clock,
            log=self.log,
            draw=draw,
            refresh_ms=refresh_ms,
        )

    def age(self) -> float | None:
        """Return how many seconds ago the last check was that went well."""
        return None if self.holder.checked_at is None else self.clock.monotonic() - self.holder.checked_at

    @property
    def role(self) -> ReplicaRole:
        """Its role."""
        return self.fleet.role

    @property
    def serves(self) -> list[str] | None:
        """The names of the toggles that are served, None when there is no configuration."""
        return None if self.holder.current is None else list(self.holder.current.names)

    def start(self) -> None:
        """Begin."""
        self.fleet.start()
        self.poller.start()

    async def stop(self) -> None:
        """End in order."""
        await self.poller.stop()
        await self.fleet.stop()

    async def die(self) -> None:
        """End as one that is killed: nothing is said, and connections are cut."""
        await self.poller.stop()
        self.fleet.role = ReplicaRole.ALONE
        await self.fleet.stop()


def leaders(replicas: list[Replica]) -> list[Replica]:
    """Return those that lead."""
    return [each for each in replicas if each.role is ReplicaRole.LEADER]


def settled(replicas: list[Replica]) -> bool:
    """Return whether one leads, and all others follow."""
    roles = sorted(str(each.role) for each in replicas)
    return roles == ["follower"] * (len(replicas) - 1) + ["leader"]


def served(replicas: list[Replica], *names: str) -> bool:
    """Return whether all serve exactly these toggles."""
    return all(each.serves == list(names) for each in replicas)


@asynccontextmanager
async def replicas(
    count: int,
    port: int,
    upstream: CountedUpstream,
    refresh_ms: int = 60_000,
    lease_ms: int = LEASE_MS,
    user: str | None = None,
    password: str | None = None,
    timeout_s: float = ANSWER_S,
) -> AsyncIterator[list[Replica]]:
    """Run so many replicas until the block ends."""
    server = RedisAddress("127.0.0.1", port, user=user, password=password)
    names = [f"replica-{number}" for number in range(count)]
    made = [Replica(name, server, upstream, refresh_ms, lease_ms, timeout_s) for name in names]
    async with AsyncExitStack() as stack:
        for each in made:
            stack.push_async_callback(each.stop)
            each.start()
        yield made
