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


class WatchedStore:
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
def watched_store(database_url: str) -> Iterator[WatchedStore]:
    """Return a store with a callback that has got the initial revision."""
    watched = WatchedStore(database_url)
    assert watched.hears(watched.store.revision())
    yield watched
    watched.store.close()


@pytest.fixture
def no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the store read the revision only after a notification."""
    monkeypatch.setattr("flagsvc.server.store.revision_listener.POLLS_BETWEEN_READS", 10**9)


@pytest.fixture
def other(watched_store: WatchedStore, database_url: str) -> Iterator[Store]:
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


def test_a_change_elsewhere_is_heard_within_a_second(watched_store: WatchedStore, other: Store, no_probe: None) -> None:
    """The database notifies a store of another store's write, again and again, without a poll."""
    assert all(watched_store.hears(write(other)) for _ in range(3))


def test_a_change_here_is_heard_once(watched_store: WatchedStore) -> None:
    """A writer's own callbacks are called when its transaction ends; the database's later notification is ignored."""
    before = watched_store.store.revision()
    assert write(watched_store.store) == before + 1
    assert watched_store.heard.count(before + 1) == 1
    assert write(watched_store.store) == before + 2
    assert not watched_store.hears(0, 0.6)
    assert watched_store.heard.count(before + 1) == 1


def test_what_is_no_change_is_not_heard(watched_store: WatchedStore, other: Store) -> None:
    """A transaction that was rolled back is no change, and neither are usage and other records without a revision."""
    before = other.revision()
    with pytest.raises(RuntimeError, match="half way"), other.writing(None) as tx:
        fail_half_way(tx)
    with other.recording():
        pass
    assert other.revision() == before
    assert not watched_store.hears(before + 1, 0.6)


def test_a_change_of_another_process_is_heard(watched_store: WatchedStore, database_url: str, no_probe: None) -> None:
    """Processes that share only the database notice each other's changes."""
    line, pipe = [sys.executable, "-c", WRITER, str(ROOT / "src"), database_url], subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdin is not None and program.stdout is not None
        for _ in range(2):
            program.stdin.write("\n")
            program.stdin.flush()
            assert watched_store.hears(int(program.stdout.readline()))
        program.stdin.close()
        assert program.wait(30) == 0


def test_a_watcher_that_fails_is_asked_again(watched_store: WatchedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback that failed gets the revision again, so its state does not stay outdated."""
    monkeypatch.setattr("flagsvc.server.store.revision_listener.POLLS_BETWEEN_READS", 1)
    failures = [RuntimeError("the first time"), None]
    taken: list[int] = []

    def take(revision: int) -> None:
        if failures and (failure := failures.pop(0)):
            raise failure
        taken.append(revision)

    watched_store.store.watch(take)
    revision = write(watched_store.store)
    wait_until(lambda: revision in taken)
    assert watched_store.said("a watcher of changes failed")


def test_a_closed_store_leaves_no_thread(database_url: str) -> None:
    """The listener's thread ends with the store."""
    before = set(threading.enumerate())
    WatchedStore(database_url).store.close()
    wait_until(lambda: set(threading.enumerate()) <= before)


def test_changes_are_heard_after_the_database_was_away(postgresql_url: str, outage: Callable[[bool], None]) -> None:
    """After a lost connection the thread reconnects, with a log line at each end, and no change is lost."""
    watched_store = WatchedStore(postgresql_url)
    other = open_store(postgresql_url, SystemClock(), RecordingLog())
    try:
        assert watched_store.hears(write(other))
        outage(True)
        wait_until(lambda: watched_store.said("changes of other servers are not noticed"))
        with pytest.raises(DatabaseError):
            other.revision()
        outage(False)
        revision = write(other)
        assert watched_store.hears(revision)
        assert watched_store.hears(write(other))
        wait_until(lambda: watched_store.said("changes of other servers are noticed again"))
        assert sum(line.event == "changes of other servers are not noticed" for line in watched_store.log.lines) == 1
        assert postgresql_url not in str(watched_store.log.lines)
    finally:
        watched_store.store.close()
        other.close()
