"""What is said about a database that takes no changes: one line for each change of it, also on a disk that is nearly full."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError, TimeoutError

from flagsvc.core.errors import DatabaseError, UnwritableError
from flagsvc.server.store.writability import (
    BY_SQLITE_CODE,
    DISK,
    FILE,
    FULL,
    LOG_PAUSE_S,
    MOVED,
    NOT_WRITTEN,
    Obstacle,
    Writability,
    WritabilityThread,
    find_obstacle,
    trouble,
)
from flagsvc.testing import FakeClock, RecordingLog
from support.flagservers import app_client
from support.waiting import wait_until

AGAIN = "the database can be written again"


def made() -> tuple[Writability, FakeClock, RecordingLog]:
    """Make one with its clock and its log."""
    clock, log = FakeClock(), RecordingLog()
    writability = Writability("flags.db", clock)
    writability.announce(log)
    return writability, clock, log


def test_a_line_for_each_change() -> None:
    """Many refused changes are one line, another reason is another line, and so is the end."""
    writability, _, log = made()
    for obstacle in (FULL, FULL, FULL, FILE, FILE, None, None):
        writability.note(obstacle)
    assert log.at("warn") == [NOT_WRITTEN, NOT_WRITTEN]
    assert log.at("info") == [AGAIN]
    assert log.lines[0].fields == {"reason": FULL.why, "todo": FULL.remedy, "database": "flags.db"}


async def test_a_disk_that_is_nearly_full() -> None:
    """It takes small changes and no large ones: the reason is said once a minute, each time with its end."""
    writability, clock, log = made()
    for _ in range(10):
        writability.note(FULL)
        writability.note(None)
    assert (log.at("warn"), log.at("info")) == ([NOT_WRITTEN], [AGAIN])
    await clock.advance(LOG_PAUSE_S)
    writability.note(FULL)
    writability.note(None)
    assert (len(log.at("warn")), len(log.at("info"))) == (2, 2)


def test_a_command_says_it_itself() -> None:
    """Without a log nothing is written: the error of the command says the same."""
    writability = Writability("flags.db", FakeClock())
    writability.note(FULL)
    assert writability.obstacle == FULL


def failure(code: int | None) -> OperationalError:
    """Return an error of SQLite."""
    cause = sqlite3.OperationalError("x")
    if code is not None:
        cause.sqlite_errorcode = code
    return OperationalError("x", {}, cause)


@pytest.mark.parametrize(
    ("code", "obstacle"),
    [
        *BY_SQLITE_CODE.items(),
        (sqlite3.SQLITE_READONLY_DIRECTORY, FILE),
        (sqlite3.SQLITE_READONLY_DBMOVED, MOVED),
        (sqlite3.SQLITE_IOERR_WRITE, DISK),
        (sqlite3.SQLITE_IOERR_READ, None),
        (sqlite3.SQLITE_BUSY, None),
        (sqlite3.SQLITE_CANTOPEN, None),
        (None, None),
    ],
)
def test_failures_of_sqlite(code: int | None, obstacle: Obstacle | None) -> None:
    """What keeps a change out has a reason. A locked or absent database has none."""
    assert find_obstacle(failure(code)) == obstacle


def test_other_failures() -> None:
    """No other error is a refusal."""
    assert find_obstacle(TimeoutError()) is None
    assert find_obstacle(OperationalError("x", {}, Exception("gone"))) is None


def test_background_tasks_are_quiet() -> None:
    """A task writes a warning for a failure of its own, and a debug line for a database that takes no changes."""
    log = RecordingLog()
    trouble(log, UnwritableError("the disk is full"))("quiet")
    trouble(log, DatabaseError("gone"))("loud")
    assert (log.at("debug"), log.at("warn")) == (["quiet"], ["loud"])


def test_it_is_probed_while_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """While there is an obstacle each look probes with a commit; without one, some looks do so without a commit."""
    monkeypatch.setattr("flagsvc.server.store.writability.PROBE_S", 0.001)
    writability, _, _ = made()
    probed: list[bool] = []
    looked: list[int] = []

    def probe(commit: bool) -> None:
        probed.append(commit)
        writability.note(None)

    writability.note(FULL)
    thread = WritabilityThread(lambda: looked.append(1), probe, writability)
    try:
        wait_until(lambda: len(probed) >= 3)
    finally:
        thread.close()
    assert probed[:3] == [True, False, False] and len(looked) > 20


def test_readiness_and_metrics_tell(tmp_path: Path) -> None:
    """Readiness stays 200, because reads go on; its body and a gauge say that changes are refused."""
    with app_client(str(tmp_path / "flags.db")) as client:
        assert "flagsvc_database_writable 1.0" in client.get("/metrics", token=None).text
        client.server.store.writability.note(FULL)
        assert "flagsvc_database_writable 0.0" in client.get("/metrics", token=None).text
        answer = client.get("/ready", token=None)
        assert (answer.status, answer.json()) == (200, {"health": "GOOD", "writable": False, "reason": "full"})
        answer = client.get("/readyz", token=None)
        assert (answer.status, answer.text) == (200, "ready, read-only: full")
        client.server.process.draining = True
        assert client.get("/readyz", token=None).text == "draining"
