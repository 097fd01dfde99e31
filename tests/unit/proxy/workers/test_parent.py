"""The parent's holder and preparer: what they do here is done in all workers."""

from __future__ import annotations

from typing import cast

import pytest

from flagsvc.core.errors import DocumentError
from flagsvc.proxy.configuration import ConfigurationDocument
from flagsvc.proxy.workers.parent import SharedHolder, SharedPreparer
from flagsvc.proxy.workers.rollout import DocumentRollout
from flagsvc.testing import FakeClock
from support.aio import asynchronous
from support.tiny_engine import TinySnapshot, document, tiny_compile


class Notes:
    """A rollout that notes what it is asked to do."""

    def __init__(self) -> None:
        self.prepared: list[tuple[object, bytes]] = []
        self.switched: list[object] = []
        self.confirmed: list[float] = []

    async def prepare(self, key: object, body: bytes) -> None:
        """Note it."""
        self.prepared.append((key, body))

    def switch(self, key: object) -> None:
        """Note it."""
        self.switched.append(key)

    def confirm(self, moment: float) -> None:
        """Note it."""
        self.confirmed.append(moment)


def shared(notes: Notes) -> SharedPreparer[TinySnapshot]:
    """Return a preparer that shares with these notes."""
    return SharedPreparer(tiny_compile, None, cast("DocumentRollout", notes))


@asynchronous
async def test_what_is_prepared_here_is_prepared_everywhere() -> None:
    """The workers get the bytes as they came, under the object that is served here later."""
    notes = Notes()
    prepared = await shared(notes)(document("a"), None)
    assert notes.prepared == [(prepared.document, document("a"))]
    assert notes.prepared[0][0] is prepared.document


@asynchronous
async def test_a_bad_document_goes_nowhere() -> None:
    """What cannot be compiled here no worker gets to see."""
    notes = Notes()
    with pytest.raises(DocumentError):
        await shared(notes)(b"no document", None)
    assert notes.prepared == []


def test_a_replacement_is_one_everywhere() -> None:
    """Serving another configuration tells the workers which; without workers it is just done."""
    notes, holder = Notes(), SharedHolder[TinySnapshot]()
    snapshot, served = TinySnapshot("1", {}), ConfigurationDocument(b"{}", '"tag"')
    holder.replace(snapshot, served, 0)
    assert holder.current is snapshot and notes.switched == []
    holder.rollout = cast("DocumentRollout", notes)
    holder.replace(snapshot, served, 2)
    assert (notes.switched, holder.problems) == ([served], 2)


@asynchronous
async def test_freshness_is_one_everywhere() -> None:
    """When a check went well the workers hear of it, and of the moment that counts; without workers it is just noted."""
    notes, holder, clock = Notes(), SharedHolder[TinySnapshot](), FakeClock()
    await clock.advance(7)
    holder.confirm(clock)
    assert (holder.checked, notes.confirmed) == (7.0, [])
    holder.rollout = cast("DocumentRollout", notes)
    await clock.advance(1)
    holder.confirm(clock)
    holder.confirm(clock, 5.0)
    assert (holder.checked, notes.confirmed) == (8.0, [8.0, 8.0])
