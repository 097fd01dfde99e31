"""Enrichers at work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from flagsvc.core.log import Throttle
from flagsvc.engine.context import Context
from flagsvc.http import deadlines
from flagsvc.http.reached_limits import ENRICHER_STUCK, ENRICHER_TIME, Reached
from flagsvc.proxy.api.enrich import EnricherError, Enrichment
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import until

SOON_S = 0.02


class Scene:
    """Enrichers with a log and counters."""

    def __init__(self, *enrichers: Callable[[Context], Any], **given: Any) -> None:
        self.log = RecordingLog()
        self.reached = Reached()
        self.enrichment = Enrichment(enrichers, self.log, Throttle(FakeClock(), 60), self.reached, **given)

    def counted(self) -> dict[str, int]:
        """Return the limits that were reached."""
        return {limit: count for limit, count in self.reached.counts.items() if count}


def plus(context: Context) -> Context:
    """Return the context of another user."""
    return context.replace(user_id=f"{context.user_id}+")


async def hang(context: Context) -> Context:
    """Write into the context and never return."""
    context.user_id = "somebody else"
    context.properties["more"] = "yes"
    await asyncio.Event().wait()
    return context


def broken(context: Context) -> Context:
    """Write into the context and raise."""
    context.user_id = "somebody else"
    raise KeyError(context.user_id)


async def cancelled(context: Context) -> Context:
    """Be cancelled by somebody else."""
    raise asyncio.CancelledError


@pytest.mark.parametrize(("fault", "error"), [(broken, "KeyError"), (cancelled, "CancelledError")])
async def test_what_is_raised_stays_inside(fault: Callable[[Context], Any], error: str) -> None:
    """The error carries the enricher's name, the log its name and place; neither the text."""
    scene = Scene(fault)
    for _ in range(2):
        with pytest.raises(EnricherError, match=f"^{fault.__name__}$") as caught:
            await scene.enrichment.apply(Context(user_id="jane"))
        assert caught.value.__cause__ is None and caught.value.__context__ is None
    [line] = scene.log.lines
    assert error in str(line) and "jane" not in str(line) and "else" not in str(line)
    assert scene.counted() == {}


@pytest.mark.parametrize("fault", [hang, broken, cancelled])
async def test_a_request_can_go_on_without(fault: Callable[[Context], Any]) -> None:
    """With `lenient`, a request continues with its original context after any failure, even if the enricher changed it."""
    context = Context(user_id="jane", properties={"tier": "gold"})
    given = await Scene(plus, fault, seconds=SOON_S, lenient=True).enrichment.apply(context)
    assert given.as_dict() == {"userId": "jane", "properties": {"tier": "gold"}}


async def test_all_together_have_so_much_time() -> None:
    """The error names the enricher that ran at the end of the time; the error is that of one that raises."""
    before = asyncio.all_tasks()
    scene = Scene(plus, hang, plus, seconds=SOON_S)
    for _ in range(2):
        with pytest.raises(EnricherError, match=r"^hang$"):
            await scene.enrichment.apply(Context(user_id="jane"))
    [line] = scene.log.lines
    assert "too long" in str(line) and "hang" in str(line) and "20" in str(line) and "jane" not in str(line)
    assert scene.counted() == {ENRICHER_TIME: 2}
    await until(lambda: asyncio.all_tasks() == before)


async def test_one_that_catches_its_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    """An enricher that catches its cancellation does not hold up the request."""
    before = asyncio.all_tasks()
    monkeypatch.setattr(deadlines, "CANCEL_S", SOON_S)
    release, seen = asyncio.Event(), list[str]()

    async def stubborn(context: Context) -> Context:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                seen.append("caught")
        return context

    def next_one(context: Context) -> Context:
        seen.append("next")
        return context

    scene = Scene(stubborn, next_one, seconds=SOON_S)
    with pytest.raises(EnricherError, match=r"^stubborn$"):
        await scene.enrichment.apply(Context(user_id="jane"))
    await until(lambda: scene.counted() == {ENRICHER_TIME: 1, ENRICHER_STUCK: 1})
    assert "goes on although it was cancelled" in str(scene.log.lines[-1]) and "stubborn" in str(scene.log.lines[-1])
    release.set()
    await until(lambda: asyncio.all_tasks() == before)
    assert seen == ["caught"]


async def test_too_many_that_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is begun: that is a failure like any other."""
    monkeypatch.setattr(deadlines, "MAX_STUCK", 0)
    scene = Scene(plus)
    with pytest.raises(EnricherError):
        await scene.enrichment.apply(Context(user_id="jane"))
    assert scene.counted() == {ENRICHER_STUCK: 1} and len(scene.log.lines) == 1
