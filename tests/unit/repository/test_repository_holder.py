"""The cell that holds what is served."""

from __future__ import annotations

import asyncio

from aio import asynchronous
from flagsvc.repository import ConfigurationDocument, Holder, State
from flagsvc.testing import turns
from tiny_engine import TinySnapshot

SNAPSHOT = TinySnapshot("r", {})
DOCUMENT = ConfigurationDocument(b"secret", '"e"')


@asynchronous
async def test_a_holder_is_ready_with_the_first_snapshot() -> None:
    """Those who wait for it wait no longer, those who come later do not wait."""
    holder: Holder[TinySnapshot] = Holder()
    assert (holder.ready, holder.current, holder.document, holder.state) == (False, None, None, "cold")
    waiting = asyncio.create_task(holder.wait_ready())
    await turns()
    assert not waiting.done()
    holder.replace(SNAPSHOT, DOCUMENT, 3)
    await waiting
    await holder.wait_ready()
    assert (holder.ready, holder.current, holder.document, holder.problems) == (True, SNAPSHOT, DOCUMENT, 3)


@asynchronous
async def test_only_fresh_is_synchronised() -> None:
    """What was restored or bootstrapped makes the proxy ready, but the upstream has not spoken."""
    holder: Holder[TinySnapshot] = Holder()
    waiting = asyncio.create_task(holder.wait_synchronised())
    for state in (State.RESTORED, State.BOOTSTRAPPED):
        holder.mark(state)
        await turns()
        assert not waiting.done() and holder.state == state
    holder.mark(State.FRESH)
    await waiting
    holder.mark(State.STALE)
    await holder.wait_synchronised()


def test_the_document_is_in_no_repr() -> None:
    """Flag configurations do not belong into tracebacks."""
    assert "secret" not in repr(DOCUMENT)
