"""The changes of an environment: each revision once, compared in slices of the event loop."""

from __future__ import annotations

from flagsvc.engine.compile import compile_document
from flagsvc.engine.options import CompileOptions
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.configuration.change_log import SLICE_FLAGS, ChangeLog
from support.aio import asynchronous, until

DOCUMENT = ConfigurationDocument(b"", '"e"')


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
        holder.replace(snapshot(*names), DOCUMENT, 0)
        log.follow()
    first, second = log.revisions
    assert (first.is_first, second.added.first, second.is_compared) == (True, ["b"], True)


@asynchronous
async def test_many_flags_are_compared_in_slices() -> None:
    """One turn of the loop does not compare them all; a revision that comes meanwhile waits for its turn."""
    holder, log = watched()
    names = [f"flag-{number}" for number in range(3 * SLICE_FLAGS)]
    holder.replace(snapshot(*names), DOCUMENT, 0)
    log.follow()
    holder.replace(snapshot(*names[1:], "new"), DOCUMENT, 0)
    log.follow()
    second = log.revisions[-1]
    assert not second.is_compared
    await until(lambda: second.is_compared)
    assert (second.added.first, second.removed.first, second.changed.count) == (["new"], names[:1], 0)
