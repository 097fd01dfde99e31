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
from support.aio import asynchronous
from support.polling import snapshot_of


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
async def test_a_bad_document_goes_nowhere() -> None:
    """A document that cannot be compiled here is sent to no worker."""
    notes = Notes()
    with pytest.raises(DocumentError):
        await shared(notes)(b"no document", None)
    assert notes.prepared == []


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
