"""`flagsvc proxy --workers N` for tests: its processes, callers with kept connections, and scrapes."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.fake_upstream import METRICS, FakeUpstream
from support.processes import KEY, Proxy, answers, our_proxy
from support.waiting import setting, threads

LOOK_UP = json.dumps({"toggles": ["first"]}).encode()
HEADERS = {"Authorization": KEY, "Content-Type": "application/json"}


def toggle(name: str) -> dict[str, Any]:
    return {"name": name, "enabled": True, "strategies": [{"name": "default"}]}


def document(*names: str) -> dict[str, Any]:
    return {"version": 2, "features": [toggle(name) for name in names]}


@contextmanager
def worker_pool(upstream: FakeUpstream, number: Any = 2, **env: str) -> Iterator[Proxy]:
    """Run our proxy with several workers while the block runs. The block begins when the proxy has printed that it is ready."""
    given: dict[str, Any] = {"FLAGSVC_FETCH_INTERVAL": "100", "FLAGSVC_WORKERS": str(number), **env}
    with our_proxy(upstream.url, **given) as proxy:
        proxy.program.wait(lambda: "flagsvc ready" in proxy.program.output(), "saying that it is ready")
        yield proxy


def state(pid: int) -> tuple[str, int]:
    """Return the state of a process, Z for one that is only waited for, and its parent; both empty when it is gone."""
    try:
        parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return parts[0], int(parts[1])


def alive(pid: int) -> bool:
    return state(pid)[0] not in ("", "Z", "X")


def workers(proxy: Proxy) -> list[int]:
    """Return the ids of the worker processes that run."""
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [pid for pid in numbers if alive(pid) and state(pid)[1] == proxy.program.process.pid]


def samples(proxy: Proxy) -> dict[str, float]:
    answer = proxy.get("/internal-backstage/prometheus")
    assert answer.status == 200, answer
    lines = [line.rpartition(" ") for line in answer.body.decode().splitlines() if not line.startswith("#")]
    assert len({name for name, _, _ in lines}) == len(lines), "each sample is there once"
    return {name: float(value) for name, _, value in lines}


def report(yes: int, no: int) -> dict[str, Any]:
    """Return what an SDK posts that has looked up the first toggle so often."""
    moments = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z"}
    bucket = moments | {"toggles": {"first": {"yes": yes, "no": no}}}
    return {"appName": "a", "instanceId": "b", "bucket": bucket}


def answered(scraped: dict[str, float], method: str = "POST", status: int = 200) -> float:
    """Return how many requests to /proxy a scrape counts."""
    return scraped.get(f'flagsvc_http_requests_total{{method="{method}",route="/proxy",status="{status}"}}', 0.0)


def counted(upstream: FakeUpstream, name: str = "first") -> int:
    """Return how many look-ups of a toggle the upstream was told."""
    buckets = [seen.json()["bucket"]["toggles"] for seen in upstream.received(METRICS, 202)]
    return sum(bucket[name]["yes"] + bucket[name]["no"] for bucket in buckets if name in bucket)


@dataclass
class Caller:
    """Looks up one toggle over and over on one connection, and again on a new one when that is closed.

    `times` has the moment of each answer, `broken` the connections that were closed instead of answering a request: of those
    `fresh` had not answered one before, `halves` stopped in the middle of an answer.
    """

    port: int
    times: list[float] = field(default_factory=list)
    broken: int = 0
    fresh: int = 0
    halves: int = 0
    refused: bool = False
    strange: list[int] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Ask until told to stop, or refused."""
        while not self.over.is_set() and not self.refused:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
                self._converse(connection)

    def _converse(self, connection: http.client.HTTPConnection) -> None:
        answers = 0
        try:
            connection.connect()
        except OSError:
            self.refused = True
            return
        while not self.over.is_set():
            try:
                connection.request("POST", "/proxy", LOOK_UP, HEADERS)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException):
                self.broken += 1
                self.fresh += answers == 0
                return
            answers += 1
            if not self._read(response):
                return

    def _read(self, response: http.client.HTTPResponse) -> bool:
        try:
            response.read()
        except (OSError, http.client.HTTPException):
            self.halves += 1
            return False
        if response.status != 200:
            self.strange.append(response.status)
        self.times.append(time.time())
        return response.getheader("connection") != "close"


@contextmanager
def load(proxy: Proxy, number: int = 8) -> Iterator[list[Caller]]:
    """Have callers ask until the block ends; each has had an answer when it begins."""
    with calling(proxy.port, number) as callers:
        proxy.program.wait(lambda: all(caller.times for caller in callers), "answering every caller")
        yield callers


@contextmanager
def calling(port: int, number: int = 8) -> Iterator[list[Caller]]:
    callers = [Caller(port) for _ in range(number)]
    with threads(*(caller.run for caller in callers), stop=setting(*(caller.over for caller in callers))):
        yield callers


def ready(proxy: Proxy) -> bool:
    return answers(f"{proxy.url}/health")
