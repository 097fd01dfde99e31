"""A process is killed while it stores: at any moment the storage holds the old or the new generation, complete."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from flagsvc.proxy.configuration.stores import FileStore
from support.fake_upstream import FEATURES, FakeUpstream, Reply, fake_upstream
from support.processes import Proxy, our_proxy
from support.waiting import threads
from support.worker_pools import document

PROXY_KILLS, LONG_PROXY_KILLS = 3, 60
TOGGLES = 300
VERSION = re.compile(rb"-of-(\d+)")


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
