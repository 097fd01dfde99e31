"""The parent's holder and preparer, which pass each step on to all workers."""

from __future__ import annotations

from typing import cast

import pytest

from flagsvc.core.errors import DocumentError
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.process.serve_workers import SharedHolder, SharedPreparer
from flagsvc.proxy.configuration import ConfigurationDocument
from flagsvc.proxy.configuration.lifecycle import Event
from flagsvc.proxy.workers.distribution import DocumentDistribution
from flagsvc.testing import FakeClock
from support.aio import asynchronous
from support.polling import document, snapshot_of


class Notes:
    """A distribution that records its calls."""

    def __init__(self) -> None:
        self.prepared: list[tuple[object, bytes]] = []
        self.switched: list[object] = []
        self.confirmed: list[float] = []
        self.failures = 0

    async def prepare(self, key: object, body: bytes) -> None:
        """Note it."""
        self.prepared.append((key, body))

    def switch(self, key: object) -> None:
        """Note it."""
        self.switched.append(key)

    def confirm(self, moment: float) -> None:
        """Note it."""
        self.confirmed.append(moment)

    def report_failure(self) -> None:
        """Note it."""
        self.failures += 1


def shared(notes: Notes) -> SharedPreparer:
    """Return a preparer with this distribution."""
    return SharedPreparer(Compiler(CompileOptions()), None, cast("DocumentDistribution", notes))


@asynchronous
async def test_what_is_prepared_here_is_prepared_everywhere() -> None:
    """The workers get the bytes as they were received. The key is the document that the parent serves later."""
    notes = Notes()
    prepared = await shared(notes)(document("a"), None)
    assert notes.prepared == [(prepared.document, document("a"))]
    assert notes.prepared[0][0] is prepared.document


@asynchronous
async def test_a_bad_document_goes_nowhere() -> None:
    """A document that cannot be compiled here is sent to no worker."""
    notes = Notes()
    with pytest.raises(DocumentError):
        await shared(notes)(b"no document", None)
    assert notes.prepared == []


def test_a_replacement_is_one_everywhere() -> None:
    """A replacement is passed on to the workers. Without workers the parent just serves it."""
    notes, holder = Notes(), SharedHolder()
    snapshot, served = snapshot_of(), ConfigurationDocument(b"{}", '"tag"')
    holder.replace(snapshot, served, 0)
    assert holder.current is snapshot and notes.switched == []
    holder.distribution = cast("DocumentDistribution", notes)
    holder.replace(snapshot, served, 2)
    assert (notes.switched, holder.problems) == ([served], 2)


@asynchronous
async def test_freshness_is_one_everywhere() -> None:
    """Workers get the time of a successful check. Without workers it is only recorded."""
    notes, holder, clock = Notes(), SharedHolder(), FakeClock()
    await clock.advance(7)
    holder.confirm(clock)
    assert (holder.checked_at, notes.confirmed) == (7.0, [])
    holder.distribution = cast("DocumentDistribution", notes)
    await clock.advance(1)
    holder.confirm(clock)
    assert (holder.checked_at, notes.confirmed) == (8.0, [8.0])


def test_the_first_failure_is_told_everywhere() -> None:
    """Workers learn that the start has gone wrong: once, and only while there is no configuration."""
    notes, holder = Notes(), SharedHolder()
    holder.record_check(Event.FAILED, 1)
    assert (holder.failures, notes.failures) == (1, 0)
    for failures in (1, 2, 0):
        holder.distribution = cast("DocumentDistribution", notes)
        holder.record_check(Event.FAILED, failures)
    assert (holder.failures, notes.failures) == (0, 1)
    holder.replace(snapshot_of(), ConfigurationDocument(b"{}", '"tag"'), 0)
    holder.record_check(Event.FAILED, 1)
    assert notes.failures == 1
