"""The cell that holds the served configuration, and the changes of an environment: each revision once, compared in slices."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.proxy.configuration import ConfigurationDocument, Holder, State
from flagsvc.proxy.configuration.change_log import SLICE_FLAGS, ChangeLog
from flagsvc.proxy.configuration.lifecycle import Event
from flagsvc.testing import turns
from support.aio import until
from support.polling import snapshot_of

DOCUMENT = ConfigurationDocument(b"secret", '"e"')


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


MARKED = b'"meta":{"revisionId":12,"etag":"\\"%s:12:v1\\"","queryHash":"%s"}}'
OURS = b"0123456789abcdef"


@pytest.mark.parametrize(
    ("end", "revision"),
    [
        (MARKED % (OURS, OURS), "01234567"),
        (MARKED % (OURS, b"76d8bb0e"), "tag-of-u"),
        (MARKED % (b"76d8bb0e", b"76d8bb0e"), "tag-of-u"),
        (MARKED % (OURS, OURS) + b" ", "tag-of-u"),
        (b'"version":2}', "tag-of-u"),
    ],
)
def test_the_revision_that_people_compare(end: bytes, revision: str) -> None:
    """It is the digest of our flag server, which the document has at its end; of other documents it is from their tag."""
    document = ConfigurationDocument(b'{"features":[' + b" " * 10_000 + b"]," + end, '"tag-of-us"')
    assert document.revision == revision


async def test_what_has_been_tried() -> None:
    """A first configuration ends the wait, and so does the first check of the upstream, however it ended."""
    by_check, by_configuration = Holder(), Holder()
    waiting = [asyncio.create_task(each.wait_tried()) for each in (by_check, by_configuration)]
    await turns()
    assert not [task for task in waiting if task.done()]
    by_check.record_check(Event.FAILED, 1)
    by_configuration.replace(snapshot_of(), DOCUMENT, 0)
    await asyncio.wait(waiting)
    assert (by_check.is_tried, by_configuration.is_tried, Holder().is_tried) == (True, True, False)
    assert not by_check.is_ready


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
        holder.replace(snapshot_of(*names), DOCUMENT, 0)
        log.follow()
    first, second = log.revisions
    assert (first.is_first, second.added.first, second.is_compared) == (True, ["b"], True)


async def test_many_flags_are_compared_in_slices() -> None:
    """One turn of the loop does not compare them all; a revision that comes meanwhile waits for its turn."""
    holder, log = watched()
    names = [f"flag-{number}" for number in range(3 * SLICE_FLAGS)]
    holder.replace(snapshot_of(*names), DOCUMENT, 0)
    log.follow()
    holder.replace(snapshot_of(*names[1:], "new"), DOCUMENT, 0)
    log.follow()
    second = log.revisions[-1]
    assert not second.is_compared
    await until(lambda: second.is_compared)
    assert (second.added.first, second.removed.first, second.changed.count) == (["new"], names[:1], 0)
