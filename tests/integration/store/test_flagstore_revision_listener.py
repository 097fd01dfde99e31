"""The listener notices other servers' changes within a second, also after the database was away."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.store import Store, Tx, open_store
from flagsvc.testing import RecordingLog
from support.processes import ROOT
from support.waiting import wait_until

WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from flagsvc.core.clock import SystemClock
from flagsvc.server.store.store import open_store
from flagsvc.testing import RecordingLog
store = open_store(sys.argv[2], SystemClock(), RecordingLog())
for line in sys.stdin:
    with store.writing(None) as tx:
        tx.record_event("test")
    print(store.revision(), flush=True)
store.close()
"""
AT_ALL_S = 30.0
"""Seconds within which a change is noticed, also on a slow machine."""


class Ear:
    """A store, and the revisions that its callback got."""

    def __init__(self, url: str) -> None:
        self.log = RecordingLog()
        self.store = open_store(url, SystemClock(), self.log)
        self.heard: list[int] = []
        self.news = threading.Condition()
        self.store.watch(self._hear)

    def _hear(self, revision: int) -> None:
        with self.news:
            self.heard.append(revision)
            self.news.notify_all()

    def hears(self, revision: int, seconds: float = AT_ALL_S) -> bool:
        """Return whether a revision is noticed in time."""
        with self.news:
            return self.news.wait_for(lambda: revision in self.heard, seconds)

    def said(self, event: str) -> bool:
        """Return whether an event was logged."""
        return any(line.event == event for line in self.log.lines)


@pytest.fixture
def ear(database_url: str) -> Iterator[Ear]:
    """Return a store with a callback that has got the initial revision."""
    ear = Ear(database_url)
    assert ear.hears(ear.store.revision())
    yield ear
    ear.store.close()


@pytest.fixture
def no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the store read the revision only after a notification."""
    monkeypatch.setattr("flagsvc.server.store.revision_listener.POLLS_BETWEEN_READS", 10**9)


@pytest.fixture
def other(ear: Ear, database_url: str) -> Iterator[Store]:
    """Give a second store on the same database, without a callback."""
    store = open_store(database_url, SystemClock(), RecordingLog())
    yield store
    store.close()


def write(store: Store) -> int:
    """Change something, and return the revision that this made."""
    with store.writing(None) as tx:
        tx.record_event("test")
    return store.revision()


def fail_half_way(tx: Tx) -> None:
    """Write something, and fail."""
    tx.record_event("test")
    raise RuntimeError("half way")


def test_a_change_elsewhere_is_heard_within_a_second(ear: Ear, other: Store, no_probe: None) -> None:
    """The database notifies a store of another store's write, again and again, without a poll."""
    assert all(ear.hears(write(other)) for _ in range(3))


def test_a_change_here_is_heard_once(ear: Ear) -> None:
    """A writer's own callbacks are called when its transaction ends; the database's later notification is ignored."""
    before = ear.store.revision()
    assert write(ear.store) == before + 1
    assert ear.heard.count(before + 1) == 1
    assert write(ear.store) == before + 2
    assert not ear.hears(0, 0.6)
    assert ear.heard.count(before + 1) == 1


def test_a_write_that_fails_is_not_heard(ear: Ear, other: Store) -> None:
    """A transaction that was rolled back is no change."""
    before = other.revision()
    with pytest.raises(RuntimeError, match="half way"), other.writing(None) as tx:
        fail_half_way(tx)
    assert other.revision() == before
    assert not ear.hears(before + 1, 0.6)


def test_what_only_notes_is_not_heard(ear: Ear, other: Store) -> None:
    """Usage and other records without a revision call no callback."""
    before = other.revision()
    with other.recording():
        pass
    assert not ear.hears(before + 1, 0.6)


def test_a_change_of_another_process_is_heard(ear: Ear, database_url: str, no_probe: None) -> None:
    """Processes that share only the database notice each other's changes."""
    line, pipe = [sys.executable, "-c", WRITER, str(ROOT / "src"), database_url], subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdin is not None and program.stdout is not None
        for _ in range(2):
            program.stdin.write("\n")
            program.stdin.flush()
            assert ear.hears(int(program.stdout.readline()))
        program.stdin.close()
        assert program.wait(30) == 0


def test_a_watcher_that_fails_is_asked_again(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback that failed gets the revision again, so its state does not stay outdated."""
    monkeypatch.setattr("flagsvc.server.store.revision_listener.POLLS_BETWEEN_READS", 1)
    failures = [RuntimeError("the first time"), None]
    taken: list[int] = []

    def take(revision: int) -> None:
        if failures and (failure := failures.pop(0)):
            raise failure
        taken.append(revision)

    ear.store.watch(take)
    revision = write(ear.store)
    wait_until(lambda: revision in taken)
    assert ear.said("a watcher of changes failed")


def test_a_closed_store_leaves_no_thread(database_url: str) -> None:
    """The listener's thread ends with the store."""
    before = set(threading.enumerate())
    Ear(database_url).store.close()
    wait_until(lambda: set(threading.enumerate()) <= before)


def test_changes_are_heard_after_the_database_was_away(postgresql_url: str, outage: Callable[[bool], None]) -> None:
    """After a lost connection the thread reconnects, with a log line at each end, and no change is lost."""
    ear = Ear(postgresql_url)
    other = open_store(postgresql_url, SystemClock(), RecordingLog())
    try:
        assert ear.hears(write(other))
        outage(True)
        wait_until(lambda: ear.said("changes of other servers are not noticed"))
        with pytest.raises(DatabaseError):
            other.revision()
        outage(False)
        revision = write(other)
        assert ear.hears(revision)
        assert ear.hears(write(other))
        wait_until(lambda: ear.said("changes of other servers are noticed again"))
        assert sum(line.event == "changes of other servers are not noticed" for line in ear.log.lines) == 1
        assert postgresql_url not in str(ear.log.lines)
    finally:
        ear.store.close()
        other.close()
