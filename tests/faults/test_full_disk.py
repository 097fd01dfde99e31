"""A disk that gets full while the configuration is stored: a small real one, or a limit on the size of files."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import FileStore
from support.aio import asynchronous, until
from support.needs import missing
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


@asynchronous
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
