"""Enrichers at work."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.api.enrich import EnricherError, Enrichment
from flagsvc.api.log import Sparing
from flagsvc.engine.context import Context
from flagsvc.testing import FakeClock, RecordingLog


def named(name: str) -> Context:
    """Return a context of this user."""
    return Context(user_id=name)


def test_one_after_the_other() -> None:
    """Each is given what the one before it returned."""

    def add(context: Context) -> Context:
        return context.replace(user_id=f"{context.user_id}+")

    async def double(context: Context) -> Context:
        return context.replace(user_id=f"{context.user_id}{context.user_id}")

    enrichment = Enrichment((add, double), RecordingLog(), Sparing(FakeClock(), 60))
    assert asyncio.run(enrichment.apply(named("a"))).user_id == "a+a+"


def test_what_is_raised_stays_inside() -> None:
    """The error carries the enricher's name, the log its name and place; neither the text."""

    def broken(context: Context) -> Context:
        raise KeyError(context.user_id)

    log = RecordingLog()
    enrichment = Enrichment((broken,), log, Sparing(FakeClock(), 60))
    for _ in range(2):
        with pytest.raises(EnricherError, match=r"^broken$") as caught:
            asyncio.run(enrichment.apply(named("jane")))
        assert caught.value.__cause__ is None
    assert len(log.lines) == 1
    assert "jane" not in str(log.lines)
