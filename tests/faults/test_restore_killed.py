"""A restore that is killed leaves the database as it was: with all that it had, or empty."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, select

from flagsvc.cli import main
from flagsvc.core.clock import SystemClock
from flagsvc.server.store.engines import make_engine
from flagsvc.server.store.schema import METADATA
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import RecordingLog
from support.backups import backup_of, fill
from support.databases import KINDS
from support.processes import ROOT

RESTORE = """
import sys
sys.path.insert(0, sys.argv[1])
from flagsvc.cli import main
from flagsvc.server.store.backup import restoring

at, real = sys.argv[2], getattr(restoring, sys.argv[2])

def stop(*given, **named):
    found = real(*given, **named)
    print("at " + at, flush=True)
    sys.stdin.readline()
    return found

setattr(restoring, at, stop)
main(["server", "restore", sys.argv[3], "--replace", "--database", sys.argv[4]])
"""
"""A restore that waits at one of its steps, after it."""
STEPS = ("_empty", "_insert", "set_sequences", "upgrade")


def killed(step: str, file: Path, database: str) -> None:
    """Restore a backup, and kill the process after a step."""
    command = [sys.executable, "-c", RESTORE, str(ROOT / "src"), step, str(file), database]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == f"at {step}\n"
        process.send_signal(signal.SIGKILL)


def opened(database: str) -> Store:
    """Open a database as a server does."""
    return open_store(database, SystemClock(), RecordingLog())


def everything(store: Store) -> dict[str, Any]:
    """Return every row of every table."""
    with store.reading() as tx:
        return {name: list(tx.db.execute(select(table))) for name, table in METADATA.tables.items()}


@pytest.fixture
def file(tmp_path: Path, sqlite_url: str) -> Path:
    """Give a backup."""
    store = opened(sqlite_url)
    fill(store)
    path = tmp_path / "flags.backup"
    path.write_bytes(backup_of(store).getvalue())
    store.close()
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_database_in_use(kind: str, new_database: Any, file: Path) -> None:
    """Killed after any step, the restore has changed no row, and the next one works."""
    url = new_database(kind)
    store = opened(url)
    fill(store)
    before = everything(store)
    for step in STEPS:
        killed(step, file, url)
        assert everything(store) == before
    assert main(["server", "restore", str(file), "--replace", "--database", url]) == 0
    assert everything(store) != before
    store.close()


def test_an_empty_database(empty_url: str, file: Path) -> None:
    """Killed after any step, the restore has made no table."""
    for step in STEPS:
        killed(step, file, empty_url)
        engine = make_engine(empty_url)
        assert inspect(engine).get_table_names() == []
        engine.dispose()
