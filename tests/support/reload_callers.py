"""Callers with lasting keys, which check each answer, and the memory and files of the processes that answer."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from support.processes import Proxy
from support.reload_model import OFF, SERVER_TOKEN, Answer, Model
from support.worker_pools import workers

PAUSE_S = 0.002
"""Seconds between an answer and the next request of a caller: the proxy, the upstreams and the callers share the processors."""
Requested = tuple[str, str, bytes]
"""Method, path and body of a request."""
OF_APPS: tuple[Requested, ...] = (("GET", "/proxy", b""), ("POST", "/proxy", b"{}"), ("GET", "/api/frontend", b""))
OF_SERVERS: tuple[Requested, ...] = (("GET", "/proxy/client/features", b""), ("GET", "/api/client/features", b""))
Tags = dict[tuple[str, str], tuple[str, Answer]]
"""Key and path → the last entity tag, and the answer that it stands for."""


class Reply(NamedTuple):
    """What a key is answered: the flags or the status, the allowed origin, and the entity tag."""

    answer: Answer
    origin: str
    tag: str


def requests_of(key: str) -> tuple[Requested, ...]:
    """Return the requests that a key opens."""
    return OF_SERVERS if key.startswith(SERVER_TOKEN) else OF_APPS


def converse(
    connection: http.client.HTTPConnection, key: str, requested: Requested, headers: Mapping[str, str]
) -> Reply:
    """Send a request on a connection, and return the reply; 304 stands for itself. Raises OSError and HTTPException."""
    method, path, body = requested
    own = {"Authorization": key, **({"Content-Type": "application/json"} if body else {})}
    connection.request(method, path, body or None, {**own, **headers})
    response = connection.getresponse()
    text = response.read()
    answer: Answer = response.status
    if answer == 200:
        read = json.loads(text)
        names = [each["name"] for each in read["features" if "features" in read else "toggles"]]
        answer = tuple(name for name in names if not name.startswith(OFF))
    return Reply(answer, response.getheader("access-control-allow-origin", ""), response.getheader("etag", ""))


@dataclass
class Caller:
    """Asks with lasting keys until told to stop: on one connection, or on a new one each time.

    `wrong` has what was not an answer that the key may get at that moment.
    """

    port: int
    model: Model
    random: Random
    keeps_connection: bool
    answered: int = 0
    wrong: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Ask until told to stop."""
        while not self.over.is_set():
            tags: Tags = {}
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
                while self._ask(connection, tags) and self.keeps_connection and not self.over.is_set():
                    time.sleep(PAUSE_S)  # the pace of the caller
            time.sleep(PAUSE_S)

    def _ask(self, connection: http.client.HTTPConnection, tags: Tags) -> bool:
        """Ask once, and check the answer. Returns whether the connection can be used again."""
        key = self.random.choice(list(self.model.published))
        requested = self.random.choice(requests_of(key))
        method, path, _ = requested
        tag, tagged = tags.get((key, path), ("", 304))
        more = {"If-None-Match": tag} if tag and method == "GET" and self.random.random() < 0.5 else {}
        published = self.model.published[key]
        first = len(published) - 1
        try:
            answer, _, tag = converse(connection, key, requested, more)
        except (OSError, http.client.HTTPException) as error:
            self.wrong.append(f"{method} {path} with {key}: {error!r}")
            return False
        answer = tagged if answer == 304 and more else answer
        may = frozenset().union(*published[first:])
        self.answered += 1
        if answer not in may:
            self.wrong.append(f"{method} {path} with {key}: {answer} and not {sorted(map(str, may))}")
        if method == "GET" and tag:
            tags[key, path] = tag, answer
        return connection.sock is not None


@contextmanager
def calling(port: int, model: Model, random: Random, kept: int, fresh: int) -> Iterator[list[Caller]]:
    """Have callers ask until the block ends: some keep their connections, and some do not."""
    callers = [Caller(port, model, Random(random.random()), number < kept) for number in range(kept + fresh)]
    threads = [threading.Thread(target=caller.run) for caller in callers]
    for thread in threads:
        thread.start()
    try:
        yield callers
    finally:
        for caller in callers:
            caller.over.set()
        for thread in threads:
            thread.join()


class Size(NamedTuple):
    """What a process has: bytes of resident memory, open files with sockets, and threads."""

    memory: int
    files: int
    threads: int


def sizes(proxy: Proxy, times: int = 10) -> list[Size]:
    """Return the sizes of the parent and of each worker: of each number the least of some moments, without what comes and goes."""
    pids = [proxy.program.process.pid, *sorted(workers(proxy))]
    found: list[list[Size]] = []
    for _ in range(times):
        found.append([size_of(pid) for pid in pids])
        time.sleep(0.1)  # another moment
    return [Size(*map(min, zip(*moments, strict=True))) for moments in zip(*found, strict=True)]


def size_of(pid: int) -> Size:
    """Return the size of a process now."""
    folder = Path(f"/proc/{pid}")
    memory = int((folder / "statm").read_text().split()[1]) * 4096
    return Size(memory, len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir())))
