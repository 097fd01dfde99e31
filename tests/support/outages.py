"""Workers that fall, hang and crash, and what callers and probes see meanwhile: how long until everybody is answered again."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.fake_upstream import FakeUpstream
from support.processes import Proxy, ask, free_port
from support.waiting import setting, threads, wait_until
from support.worker_pools import HEADERS, worker_pool, workers

CODE = """
import os, pathlib, sys
from flagsvc import Strategy
folder = pathlib.Path(__file__).parent
if (folder / 'broken').exists():
    os._exit(3)
class Trap(Strategy):
    name = 'trap'
    def is_enabled(self, parameters, context):
        if (folder / 'crash').exists():
            os._exit(4)
        if (folder / f'hang-{os.getpid()}').exists():
            while True:
                pass
        return True
strategies = [Trap()]
"""
"""A custom strategy that hangs in given processes, ends a process that evaluates it, or prevents a start. Files request that."""
CALLERS = 16
"""Enough callers for each worker to have some of their connections."""
PAUSE_S = 0.06
SLOW_S = 0.3
"""A caller that waits longer for an answer has noticed the outage."""
LOST_S = 1.0
"""A request that takes longer counts as lost."""
CLOSE_DELAY_S = 1.5
"""If no caller has waited for this time, the outage is over."""
PATIENCE_S = 30.0


def trapped(*names: str) -> dict[str, Any]:
    """Return a document with toggles that ask the strategy of CODE."""
    toggles = [{"name": name, "enabled": True, "strategies": [{"name": "trap"}]} for name in names]
    return {"version": 2, "features": toggles}


@dataclass
class Opener:
    """Requests the toggles on one new connection after the other.

    `slow` and `lost` have the end times of attempts that took too long or failed. A closed or refused connection and any other
    status than 200 are failures.
    """

    port: int
    slow: list[float] = field(default_factory=list)
    lost: list[float] = field(default_factory=list)
    began: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.over.wait(PAUSE_S):
            self.began = time.monotonic()
            good, now = self._ask(), time.monotonic()
            if not good or now - self.began > SLOW_S:
                self.slow.append(now)
            if not good or now - self.began > LOST_S:
                self.lost.append(now)
            self.began = 0.0

    def _ask(self) -> bool:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as connection:
            try:
                connection.request("GET", "/proxy", headers=HEADERS)
                answer = connection.getresponse()
                return answer.status == 200 and answer.read() != b""
            except (OSError, http.client.HTTPException):
                return False


@dataclass
class Outage:
    """A proxy with workers, callers with new connections all the time, and a probe at the operators' address.

    `said` has the answers of the probe at each change.
    """

    proxy: Proxy
    folder: Path
    admin: int
    openers: list[Opener]
    said: list[tuple[float, str]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def touch(self, *names: str) -> None:
        for name in names:
            (self.folder / name).touch()

    def unlink(self, name: str) -> None:
        (self.folder / name).unlink()

    def probe(self) -> None:
        while not self.over.wait(PAUSE_S):
            said = self.readiness()
            if not self.said or self.said[-1][1] != said:
                self.said.append((time.monotonic(), said))

    def readiness(self) -> str:
        """Return the answer to a probe."""
        try:
            answer = ask(f"http://127.0.0.1:{self.admin}/readyz", seconds=5)
        except OSError:
            return "nothing"
        return answer.body.decode()

    def told(self, since: float) -> list[str]:
        """Return the answers of the probe since a time."""
        before = [said for moment, said in self.said if moment <= since][-1:]
        return before + [said for moment, said in self.said if moment > since]

    def seconds(self, since: float) -> float:
        """Wait until everybody is answered again, and return after how many seconds that was so."""
        self.proxy.program.wait(lambda: self._calm(since), "answering everybody", 2 * PATIENCE_S)
        return max([0.0, *(each - since for opener in self.openers for each in opener.slow)])

    def _calm(self, since: float) -> bool:
        """Return whether no request was slow or failed for a while."""
        now = time.monotonic()
        waiting = any(opener.began and now - opener.began > LOST_S for opener in self.openers)
        last = max([since, *(each for opener in self.openers for each in opener.lost)])
        return not waiting and now - last > CLOSE_DELAY_S

    def restored(self, number: int) -> None:
        self.proxy.program.wait(lambda: self.scraped().get("flagsvc_workers") == number, "replacing workers")

    def scraped(self) -> dict[str, float]:
        """Return the text of a scrape at the operators' address."""
        lines = ask(f"http://127.0.0.1:{self.admin}/metrics").body.decode().splitlines()
        parts = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {name: float(value) for name, _, value in parts}

    def workers(self) -> list[int]:
        return workers(self.proxy)


@contextmanager
def outage(upstream: FakeUpstream, folder: Path, number: int = 2, callers: int = CALLERS, **env: str) -> Iterator[Outage]:
    """Run a proxy with workers, and callers and a probe, until the block ends; all is well when it begins."""
    (folder / "code.py").write_text(CODE)
    upstream.replace(trapped("first"))
    admin = free_port()
    given = {"FLAGSVC_ADMIN_ADDRESS": f"127.0.0.1:{admin}", "FLAGSVC_CUSTOM_STRATEGIES_FILE": str(folder / "code.py")}
    with worker_pool(upstream, number, **given, **env) as proxy:
        made = Outage(proxy, folder, admin, [Opener(proxy.port) for _ in range(callers)])
        stop = setting(made.over, *(opener.over for opener in made.openers))
        with threads(made.probe, *(opener.run for opener in made.openers), stop=stop):
            wait_until(lambda: made.said and made.said[-1][1] == "ready")
            yield made
