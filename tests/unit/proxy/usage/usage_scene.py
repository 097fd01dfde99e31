"""A reporter with everything around it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import Identity
from flagsvc.proxy.usage import Reporter, UnsentUsage, UsageCounters
from flagsvc.testing import FakeClock, MemoryRecordStore, RecordingLog, RecordingUpstream, turns

DOWN = UpstreamError("network", "nobody there")


class HangingUpstream(RecordingUpstream):
    """An upstream that accepts metrics when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        await self.gate.wait()
        await super().send_metrics(payload)


@dataclass
class ReporterScene:
    """A reporter and everything around it."""

    upstream: RecordingUpstream = field(default_factory=RecordingUpstream)
    clock: FakeClock = field(default_factory=FakeClock)
    log: RecordingLog = field(default_factory=RecordingLog)
    draw: Callable[[], float] = lambda: 0.0
    interval_ms: int = 30_000
    jitter_ms: int = 0
    batch: int = 10_000
    record_store: MemoryRecordStore | None = None

    def __post_init__(self) -> None:
        self.usage = UsageCounters(lambda: {"a": (), "b": ()}, self.clock.now)
        self.unsent_usage: UnsentUsage | None = None
        if self.record_store is not None:
            self.unsent_usage = UnsentUsage(self.record_store, clock=self.clock, log=self.log, interval_ms=self.interval_ms)
        self.reporter = Reporter(
            self.usage,
            self.upstream,
            Identity("app", "instance", "connection"),
            clock=self.clock,
            log=self.log,
            draw=lambda: self.draw(),
            interval_ms=self.interval_ms,
            jitter_ms=self.jitter_ms,
            batch=self.batch,
            unsent_usage=self.unsent_usage,
            custom_strategies=["mine"],
            synchronised=lambda: asyncio.sleep(0),
        )

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The toggles of each metrics post that was taken."""
        return [payload["bucket"]["toggles"] for payload in self.upstream.metrics]  # type: ignore[index]

    async def interval(self) -> float:
        """Let the time until the next sending pass and return it."""
        delay = await self.clock.next_sleep()
        await self.clock.advance(delay)
        return delay


@asynccontextmanager
async def running(**changes: Any) -> AsyncIterator[ReporterScene]:
    world = ReporterScene(**changes)
    world.reporter.start()
    await turns()
    try:
        yield world
    finally:
        await world.reporter.stop()


def tally(yes: int, no: int) -> dict[str, object]:
    """Return the counts of a toggle without variants in a post."""
    return {"yes": yes, "no": no, "variants": {}}
