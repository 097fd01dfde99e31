"""A poller with everything around it, for the tests of the loop that keeps the configuration current."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from flagsvc.core.errors import UpstreamError
from flagsvc.engine.compile import CompileOptions, Compiler, compile_document
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.configuration import Holder, Poller, Preparer
from flagsvc.proxy.configuration.prepare import PreparedDocument
from flagsvc.proxy.configuration.stores import DocumentStorage, StoredDocument
from flagsvc.testing import FakeClock, FakeSource, MemoryStore, RecordingLog


def document(*names: str, **more: object) -> bytes:
    return json.dumps({"version": 2, "features": [{"name": name} for name in names], **more}).encode()


def snapshot_of(*names: str) -> Snapshot:
    return compile_document(json.loads(document(*names)), CompileOptions()).snapshot


PREPARE = Preparer(Compiler(CompileOptions()))
ONE, TWO, EMPTY = document("one"), document("two"), document()
DOWN = UpstreamError("network", "nobody there")
PATIENT_S = 60.0
"""A head start for storage that a busy machine does not use up. A test of a slow storage gives a shorter one."""
REFUSED = UpstreamError("unauthorized", "no", status=401)


class WatchedPreparer(Preparer):
    """Calls `watch` with each document, and with the configuration that it may replace."""

    def __init__(self, watch: Callable[[bytes, Snapshot | None], None]) -> None:
        super().__init__(Compiler(CompileOptions()))
        self.watch = watch

    async def __call__(self, body: bytes, previous: Snapshot | None) -> PreparedDocument:
        self.watch(body, previous)
        return await super().__call__(body, previous)


@dataclass
class PollerScene:
    """A poller and everything around it."""

    source: Any
    bootstrap: FakeSource | None = None
    store: MemoryStore = field(default_factory=MemoryStore)
    clock: FakeClock = field(default_factory=FakeClock)
    log: RecordingLog = field(default_factory=RecordingLog)
    refresh_ms: int = 5000
    head_start_s: float = PATIENT_S
    prepare: Preparer = PREPARE

    def __post_init__(self) -> None:
        self.holder = Holder()
        self.document_storage = DocumentStorage(self.store, "key", self.log)
        self.poller = Poller(
            self.source,
            self.holder,
            self.prepare,
            self.document_storage,
            clock=self.clock,
            log=self.log,
            draw=lambda: 0.0,
            refresh_ms=self.refresh_ms,
            bootstrap=self.bootstrap,
            head_start_s=self.head_start_s,
        )

    @property
    def serves(self) -> list[str] | None:
        """The names of the toggles that are served, None when there is no configuration."""
        return None if self.holder.current is None else list(self.holder.current.names)

    async def round(self) -> float:
        """Wait until a poll is over and return the seconds to the next; then let them pass, so that the next has begun."""
        delay = await self.clock.next_sleep()
        await self.clock.advance(delay)
        return delay


def stored(body: bytes, etag: str | None) -> MemoryStore:
    store = MemoryStore()
    store.data["key"] = StoredDocument(body, etag).pack()
    return store


@asynccontextmanager
async def running(*script: Any, **changes: Any) -> AsyncIterator[PollerScene]:
    world = PollerScene(changes.pop("source", None) or FakeSource(*script), **changes)
    world.poller.start()
    try:
        yield world
    finally:
        await world.poller.stop()
        assert not world.poller.is_running
