"""A disk that gets full while the configuration is stored: a small real one, or a limit on the size of files.

A restore that is killed leaves the database as it was: with all that it had, or empty.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, select

from flagsvc.cli import main
from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import FileStore
from flagsvc.server.store.engines import make_engine
from flagsvc.server.store.schema import METADATA
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import RecordingLog
from support.aio import until
from support.backups import backup_of, fill
from support.databases import KINDS
from support.needs import missing
from support.processes import ROOT
from support.scene import Proxy, Scene, document, scene, toggle

KEY = "0123abc"
DISK_KB = 64
SMALL, LARGE = b"small " * 500, b"large " * 40_000


def mounted(folder: Path) -> bool:
    """Return whether a file system of a few kilobytes could be mounted at a folder."""
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        return False
    command = [mount, "-t", "tmpfs", "-o", f"size={DISK_KB}k", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0


@pytest.fixture(params=["disk", "limit"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder with little room: on its own disk where possible, and under a limit on the size of files."""
    folder = tmp_path / "small"
    folder.mkdir()
    if request.param == "limit":
        with limited():
            yield folder
    elif mounted(folder):
        try:
            yield folder
        finally:
            subprocess.run(["umount", str(folder)], timeout=20, check=True)
    else:
        missing("no file system can be mounted here (that takes root and `mount`)")


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Let no file of this process grow beyond the size of the disk until the block ends."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_KB * 1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_generation_that_does_not_fit(small: Path) -> None:
    """The previous generation stays, no partial file is left, and the next generation that fits is stored."""
    store = FileStore(small)
    store.set(KEY, SMALL)
    for _ in range(20):
        with pytest.raises(StoreError) as raised:
            store.set(KEY, LARGE)
        cause = raised.value.__cause__
        assert isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EFBIG)
        assert store.get(KEY) == SMALL
    assert [path.name for path in small.iterdir()] == [f"{KEY}.flags"]
    store.set(KEY, SMALL[1:])
    assert store.get(KEY) == SMALL[1:]


LONG = [f"toggle-{number:05d}" for number in range(2_000)]


async def test_a_proxy_goes_on(small: Path) -> None:
    """It serves what cannot be stored and logs this once. A restart finds the last stored one, and later ones are stored."""
    async with scene(small) as around:
        options = around.options(metrics_interval=0, storage=small.as_uri(), log_level="info")
        around.served = document(toggle("fits"))
        async with around.proxy(options) as proxy:
            around.served = document(*map(toggle, LONG))
            await around.next_poll()
            await until(lambda: any("could not be stored" in line for line in around.log))
            for _ in range(5):
                await around.next_poll()
                assert await proxy.names() == LONG
            told = [line for line in around.log if "could not be stored" in line]
            assert len(told) == 1, around.log
        await restarts(around, small, ["fits"])
        around.replies.clear()
        async with around.proxy(options) as proxy:
            await until_served(around, proxy, LONG)
            around.served = document(toggle("later"))
            await until_served(around, proxy, ["later"])
        assert any("is stored again" in line for line in around.log), around.log
        await restarts(around, small, ["later"])


async def until_served(around: Scene, proxy: Proxy, names: list[str]) -> None:
    """Poll until these toggles are served, and once more."""
    while await proxy.names() != names:
        await around.next_poll()
    await around.next_poll()


async def restarts(around: Scene, folder: Path, names: list[str]) -> None:
    """Check what a start serves while the upstream is away."""
    around.replies["features"] = b"HTTP/1.1 500 Away\r\nContent-Length: 0\r\n\r\n"
    async with around.proxy(around.options(metrics_interval=0, storage=folder.as_uri())) as proxy:
        assert await proxy.names() == names


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
