"""A process is killed while it stores: at any moment the storage holds the old or the new generation, complete."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
import storage_writer
from storage_writer import KEY, generation

from flagsvc.proxy.configuration.stores import FileStore, frame
from support.fake_upstream import FEATURES, FakeUpstream, Reply, fake_upstream
from support.processes import Proxy, clean_environment, our_proxy
from support.waiting import threads
from support.worker_pools import document

KILLS, LONG_KILLS = 50, 1000
HOW = ("moment", "byte", "step")
"""When a process is killed: at any moment, after so many bytes, before one of the file operations."""
MOST_STEPS = 12
PROXY_KILLS, LONG_PROXY_KILLS = 3, 60
TOGGLES = 300
VERSION = re.compile(rb"-of-(\d+)")


class Writer:
    """The process whose children store generations. `last` is the newest generation that was reported as stored, -1 before the
    first."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.last = -1

    def killed(self, first: int, how: str, step: int, random: Random) -> None:
        """Store generations from this one on in a child that is killed in a later one; `step` is for `how` step."""
        assert self._process.stdin
        size = len(frame(generation(first + 1)))
        at = {"byte": random.randint(0, size), "step": step, "moment": 0}[how]
        begun = time.monotonic()
        self._process.stdin.write(f"{first} {how} {at}\n".encode())
        self._process.stdin.flush()
        child = self._read_until("pid")
        while self.last < first:
            self._read()
        if how == "moment":
            deadline = time.monotonic() + random.uniform(0, 2 * (time.monotonic() - begun))
            while time.monotonic() < deadline:  # the very moment is the point
                time.sleep(0)
            os.kill(child, signal.SIGKILL)
        self._read_until("ended")

    def _read_until(self, word: str) -> int:
        while (line := self._read())[0] != word:
            pass
        return int(line[-1]) if len(line) > 1 else 0

    def _read(self) -> list[str]:
        """Return the words of the next line, and note its generation."""
        assert self._process.stdout
        line = self._process.stdout.readline().decode().split()
        assert line, "the writer has ended by itself"
        if line[0].isdecimal():
            self.last = int(line[0])
        return line


@contextmanager
def writer(folder: Path) -> Iterator[Writer]:
    """Run the process until the block ends."""
    command = [sys.executable, storage_writer.__file__, str(folder / "state")]
    with subprocess.Popen(
        command, env=clean_environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            yield Writer(process)
        finally:
            assert process.stdin
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("kills", [KILLS, pytest.param(LONG_KILLS, marks=pytest.mark.long)])
def test_killed_while_storing(kills: int, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Storage holds the last generation that was reported as stored, or the next one, complete, at any moment of the kill."""
    random, store = Random(kills), FileStore(tmp_path / "state")
    found = Counter[str]()
    begin = 0
    with writer(tmp_path) as process:
        for at in range(kills):
            process.killed(begin, HOW[at % len(HOW)], 1 + at // len(HOW) % MOST_STEPS, random)
            stored = store.get(KEY)
            assert stored in (generation(process.last), generation(process.last + 1))
            found["the old one"] += stored == generation(process.last)
            found["the new one"] += stored != generation(process.last)
            found["half a file"] += bool(list((tmp_path / "state").glob("*.tmp")))
            found["no newest file"] += not (tmp_path / "state" / f"{KEY}.flags").exists()
            begin = process.last + 2
            for left in (tmp_path / "state").glob("*.tmp"):
                left.unlink()
    assert all(found[each] for each in ("the old one", "the new one", "half a file", "no newest file")), found
    record_property("summary", f"{kills} kills while storing left {dict(found)}")


def toggles(version: int) -> dict[str, object]:
    """Return a document whose toggles have this version in their names."""
    return document(*(f"toggle-{number}-of-{version}" for number in range(TOGGLES)))


class DocumentChanger:
    """Replaces the document of an upstream without pause; `version` is the last one."""

    def __init__(self, upstream: FakeUpstream) -> None:
        self._upstream = upstream
        self._over = threading.Event()
        self.version = 0

    def run(self) -> None:
        """Replace documents until told to stop."""
        while not self._over.wait(0.005):
            self._upstream.replace(toggles(self.version + 1))
            self.version += 1

    @contextmanager
    def going(self) -> Iterator[None]:
        """Replace documents until the block ends."""
        self._over.clear()
        with threads(self.run, stop=self._over.set):
            yield


def version_of(proxy: Proxy) -> int:
    """Return the one version that all toggles of an answer have."""
    names = list(proxy.toggles())
    [version] = {int(name.rpartition("-")[2]) for name in names}
    assert len(names) == TOGGLES
    return version


def stored(folder: Path) -> int:
    """Return the one version that all toggles in storage have, -1 where nothing is stored."""
    for path in (*folder.glob("*.flags"), *folder.glob("*.previous")):
        if (data := FileStore(folder).get(path.stem)) is not None:
            [version] = set(VERSION.findall(data))
            return int(version)
    return -1


@pytest.mark.parametrize("kills", [PROXY_KILLS, pytest.param(LONG_PROXY_KILLS, marks=pytest.mark.long)])
def test_a_proxy_killed_while_it_stores(kills: int, tmp_path: Path) -> None:
    """The proxy starts without its upstream, with one complete configuration that it had, newer than the first one it stored."""
    random, folder, before = Random(kills), tmp_path / "state", -1
    env = {"FLAGSVC_STORAGE": folder.as_uri(), "FLAGSVC_METRICS_INTERVAL": "0"}
    with fake_upstream(toggles(0)) as upstream:
        hurry = DocumentChanger(upstream)
        for _ in range(kills):
            upstream.replies.clear()
            with our_proxy(upstream.url, **env, FLAGSVC_FETCH_INTERVAL="10") as proxy, hurry.going():
                upstream.forget()
                upstream.wait(lambda: len(upstream.received(FEATURES, 200)) >= 5)
                proxy.program.wait(lambda: stored(folder) > before, "storing")  # noqa: B023
                first = stored(folder)
                proxy.program.wait(lambda: stored(folder) > first, "storing again")  # noqa: B023
                time.sleep(random.uniform(0, 0.1))  # the moment is the point
                proxy.program.process.kill()
                proxy.program.process.wait()
            upstream.replies[FEATURES] = Reply(500)
            with our_proxy(upstream.url, **env) as proxy:
                restored = version_of(proxy)
                assert first < restored <= hurry.version
                before = restored
