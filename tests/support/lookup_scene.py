"""A look-up of tokens over an upstream in memory, in one event loop, with a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from flagsvc.core.errors import StoreError, UpstreamError
from flagsvc.proxy.tokens import Budget, TokenGrant, TokenLookup, TokenScope, UnavailableError, WaitingPlaces
from flagsvc.proxy.tokens.lookup import MAX_ASKED, answer_deadline
from flagsvc.proxy.upstream import Upstream
from flagsvc.testing import FakeClock, RecordingLog, turns

RATE = 5
INTERVAL_S = 3600.0
FRONTEND = TokenGrant(False, TokenScope("production", frozenset("a")))
SERVER = TokenGrant(True, TokenScope("production", None))
AWAY = UpstreamError("network", "no")


def told(token: str, grant: TokenGrant) -> dict[str, object]:
    """Return an entry of an upstream's answer."""
    projects = ["*"] if grant.scope.projects is None else sorted(grant.scope.projects)
    kind = "client" if grant.is_server else "frontend"
    return {"token": token, "type": kind, "environment": grant.scope.environment, "projects": projects}


class MemoryTokens:
    """A store of tokens in memory. If `gate` is an event, each call waits for it; while it `is_full`, nothing is stored, and
    while it `is_away`, nothing can be read."""

    def __init__(self, data: bytes | None = None) -> None:
        self.data = data
        self.saved = 0
        self.is_closed = False
        self.is_full = self.is_away = False
        self.gate: asyncio.Event | None = None

    async def load(self) -> bytes | None:
        await self._pass()
        if self.is_away:
            raise StoreError("away")
        return self.data

    async def save(self, data: bytes) -> bool:
        await self._pass()
        self.saved += 1
        if not self.is_full:
            self.data = data
        return not self.is_full

    async def aclose(self) -> None:
        self.is_closed = True

    async def _pass(self) -> None:
        if self.gate is not None:
            await self.gate.wait()


class LookupScene:
    """A look-up with its upstream: it knows `grants`, fails with `fault`, and answers when `gate` is open.

    `questions` are the tokens of each request, `moments` when each came, `revoked` the tokens that were taken back.
    `restored` are the digests that storage has told, of each time.
    """

    def __init__(self, store: MemoryTokens | None = None, clock: FakeClock | None = None, **more: Any) -> None:
        self.clock, self.log = clock or FakeClock(), RecordingLog()
        self.store = store or MemoryTokens()
        self.grants: dict[str, TokenGrant] = {}
        self.fault: Exception | None = None
        self.restarts = 0
        self.is_closed = False
        self.gate: asyncio.Event | None = None
        self.questions: list[list[str]] = []
        self.moments: list[float] = []
        self.revoked: list[str] = []
        self.restored: list[list[str]] = []
        self.budget: Budget = more.pop("budget", None) or Budget(RATE, self.clock, lambda: 0.0)
        self.places: WaitingPlaces = more.pop("places", None) or WaitingPlaces()
        self.lookup = TokenLookup(
            cast("Upstream", self),
            self.budget,
            self.places,
            self.store,
            clock=self.clock,
            log=self.log,
            draw=lambda: 0.0,
            interval_s=INTERVAL_S,
            on_revoke=self.revoked.append,
            on_restore=self.restored.append,
        )

    async def validate(self, tokens: Sequence[str]) -> list[object]:
        self.questions.append(list(tokens))
        self.moments.append(self.clock.monotonic())
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return [told(token, self.grants[token]) for token in tokens if token in self.grants]

    async def aclose(self) -> None:
        self.is_closed = True

    async def find(self, token: str, network: bytes = b"") -> TokenGrant | float | None:
        """Return what a token opens; the seconds to wait if that cannot be said."""
        try:
            return await self.lookup.find(token, network, answer_deadline())
        except UnavailableError as error:
            return error.seconds

    async def start_find(self, token: str, network: bytes = b"") -> asyncio.Task[TokenGrant | float | None]:
        """Begin to ask; return the task when it can go no further."""
        task = asyncio.ensure_future(self.find(token, network))
        await turns()
        return task

    async def know(self, *tokens: str) -> None:
        """Have the upstream know these tokens, and callers use them; forget the questions."""
        self.grants |= dict.fromkeys(tokens, FRONTEND)
        finds = [asyncio.ensure_future(self.find(token)) for token in tokens]
        await turns()
        await self.clock.advance(len(tokens) / MAX_ASKED / RATE)
        assert await asyncio.gather(*finds) == [FRONTEND] * len(tokens)
        await self.clock.advance(1)
        self.questions.clear()


@asynccontextmanager
async def lookup_scene(
    store: MemoryTokens | None = None, clock: FakeClock | None = None, **more: Any
) -> AsyncIterator[LookupScene]:
    """Run a look-up until the block ends. Its loops have failed `restarts` times then."""
    made = LookupScene(store, clock, **more)
    made.lookup.start(made)
    await turns()
    try:
        yield made
    finally:
        await made.lookup.stop(made)
        await turns()
    assert made.lookup.restarts == made.restarts, made.log.lines
    assert made.is_closed and made.store.is_closed
    assert not made.lookup._waiting and made.places.tokens.taken == made.places.requests.taken == 0
