"""Flags that OpenFeature providers ask for one at a time are counted (decision 0035)."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock

from flagsvc.frontend.contract import FlagCounter
from flagsvc.frontend.report_store import ReportStore
from flagsvc.http.messages import HttpError
from flagsvc.http.reports import ReportedUsage
from flagsvc.server.store.actors import ClientToken
from flagsvc.testing import FakeClock, RecordingLog

ONE, OTHER = ClientToken("backend", "development", ("*",)), ClientToken("frontend", "production", ("shop",))


async def pass_a_second(clock: FakeClock, store: AsyncMock, calls: int) -> None:
    """Let counts be stored that wait, until the store was asked so often."""
    while store.save.await_count < calls:
        await clock.advance(1.0)
        await asyncio.sleep(0)


async def test_counts_of_a_second_are_stored_together() -> None:
    """Each token has a report, with how often a flag was on, off, and had each variant; a failure drops its counts alone."""
    clock, log, store = FakeClock(), RecordingLog(), AsyncMock(ReportStore)
    counter = FlagCounter(store, clock, log)
    for name, variant in (("a", "enabled"), ("a", "disabled"), ("a", "disabled"), ("b", "green")):
        counter.add(ONE, name, variant)
    counter.add(OTHER, "a", "enabled")
    store.save.side_effect = [HttpError(503, "the database is away", []), None]
    await pass_a_second(clock, store, 2)
    told = {call.args[0]: (call.args[1].app_name, call.args[1].counts) for call in store.save.await_args_list}
    of_one = [ReportedUsage("a", 1, 0, {}), ReportedUsage("a", 0, 2, {}), ReportedUsage("b", 1, 0, {"green": 1})]
    assert told == {ONE: ("ofrep", of_one), OTHER: ("ofrep", [ReportedUsage("a", 1, 0, {})])}
    assert len(log.at("warn")) == 1
    store.save.side_effect = None
    counter.add(ONE, "a", "enabled")
    await pass_a_second(clock, store, 3)
    assert store.save.await_args.args[1].counts == [ReportedUsage("a", 1, 0, {})]
