"""The cell that holds the served configuration.

The changes of an environment: each revision once, compared in slices of the event loop.
"""

from __future__ import annotations

import asyncio

from flagsvc.engine.compile import compile_document
from flagsvc.engine.options import CompileOptions
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.configuration import ConfigurationDocument, Holder, State
from flagsvc.proxy.configuration.change_log import SLICE_FLAGS, ChangeLog
from flagsvc.proxy.configuration.lifecycle import Event
from flagsvc.testing import FakeClock, turns
from support.aio import asynchronous, until
from support.polling import snapshot_of

SNAPSHOT = snapshot_of()
DOCUMENT = ConfigurationDocument(b"secret", '"e"')


@asynchronous
async def test_a_holder_is_ready_with_the_first_snapshot() -> None:
    """Those who wait for it wait no longer, those who come later do not wait."""
    holder = Holder()
    assert (holder.is_ready, holder.current, holder.document, holder.state) == (False, None, None, "cold")
    waiting = asyncio.create_task(holder.wait_ready())
    await turns()
    assert not waiting.done()
    holder.replace(SNAPSHOT, DOCUMENT, 3)
    await waiting
    await holder.wait_ready()
    assert (holder.is_ready, holder.current, holder.document, holder.problems) == (True, SNAPSHOT, DOCUMENT, 3)


@asynchronous
async def test_only_fresh_is_synchronised() -> None:
    """A restored or bootstrapped configuration makes the proxy ready, but not synchronised."""
    holder = Holder()
    waiting = asyncio.create_task(holder.wait_synchronised())
    for state in (State.RESTORED, State.BOOTSTRAPPED):
        holder.set_state(state)
        await turns()
        assert not waiting.done() and holder.state == state
    holder.set_state(State.FRESH)
    await waiting
    holder.set_state(State.STALE)
    await holder.wait_synchronised()


def test_the_document_is_in_no_repr() -> None:
    """Flag configurations do not belong into tracebacks."""
    assert "secret" not in repr(DOCUMENT)


@asynchronous
async def test_how_fresh_it_is() -> None:
    """The time of the last successful check, and its date."""
    clock, holder = FakeClock(now=1000.0), Holder()
    assert (holder.checked_at, holder.last_fetch_ms) == (None, 0.0)
    await clock.advance(50)
    holder.confirm(clock)
    assert (holder.checked_at, holder.last_fetch_ms) == (50.0, 1_050_000.0)


def test_what_the_checks_brought() -> None:
    """Every kind of answer has a number from the start, so that a first one is seen as an increase."""
    holder = Holder()
    assert set(holder.event_counts) == {"fetched", "same", "not-modified", "empty", "unusable", "refused", "failed"}
    assert set(holder.event_counts.values()) == {0}
    holder.record_check(Event.FAILED, 1)
    holder.record_check(Event.FAILED, 2)
    assert (holder.event_counts["failed"], holder.failures) == (2, 2)
    holder.record_check(Event.SAME, 0)
    assert (holder.event_counts["same"], holder.failures) == (1, 0)


@asynchronous
async def test_what_has_been_tried() -> None:
    """A first configuration ends the wait, and so does the first check of the upstream, however it ended."""
    by_check, by_configuration = Holder(), Holder()
    waiting = [asyncio.create_task(each.wait_tried()) for each in (by_check, by_configuration)]
    await turns()
    assert not [task for task in waiting if task.done()]
    by_check.record_check(Event.FAILED, 1)
    by_configuration.replace(SNAPSHOT, DOCUMENT, 0)
    await asyncio.wait(waiting)
    assert (by_check.is_tried, by_configuration.is_tried, Holder().is_tried) == (True, True, False)
    assert not by_check.is_ready


DOCUMENT_OF_CHANGES = ConfigurationDocument(b"", '"e"')


def snapshot(*names: str) -> Snapshot:
    """Return a snapshot with these flags."""
    features = [{"name": name, "enabled": True, "strategies": []} for name in names]
    return compile_document({"features": features}, CompileOptions()).snapshot


def watched() -> tuple[Holder, ChangeLog]:
    """Return a holder and the log of its changes."""
    holder = Holder()
    log = ChangeLog(lambda: 1.0, lambda names: None)
    log.watch(holder)
    return holder, log


def test_a_revision_is_noted_once() -> None:
    """Without an event loop it is compared at once. What is served again is no new revision."""
    holder, log = watched()
    log.follow()
    assert not log.revisions
    for names in (("a",), ("a",), ("a", "b")):
        holder.replace(snapshot(*names), DOCUMENT_OF_CHANGES, 0)
        log.follow()
    first, second = log.revisions
    assert (first.is_first, second.added.first, second.is_compared) == (True, ["b"], True)


@asynchronous
async def test_many_flags_are_compared_in_slices() -> None:
    """One turn of the loop does not compare them all; a revision that comes meanwhile waits for its turn."""
    holder, log = watched()
    names = [f"flag-{number}" for number in range(3 * SLICE_FLAGS)]
    holder.replace(snapshot(*names), DOCUMENT_OF_CHANGES, 0)
    log.follow()
    holder.replace(snapshot(*names[1:], "new"), DOCUMENT_OF_CHANGES, 0)
    log.follow()
    second = log.revisions[-1]
    assert not second.is_compared
    await until(lambda: second.is_compared)
    assert (second.added.first, second.removed.first, second.changed.count) == (["new"], names[:1], 0)
