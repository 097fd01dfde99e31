"""Callers with lasting keys, which check each answer, and the memory and files of the processes that answer."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from support.processes import Proxy
from support.waiting import setting, threads
from support.worker_pools import toggle, workers

Answer = tuple[str, ...] | int
"""The names of the flags in an answer, or the status of a refusal."""

UNAUTHORIZED, NOT_READY = 401, 503
PROJECTS = {"one": "p1", "two": "p2", "three": "p1"}
"""The flags of each document, each with its project."""
SERVER_TOKEN = "sdk-token"
"""How the keys begin that are tokens of server-side SDKs."""
OFF = "off"
"""How the names of flags begin that are off."""
DISABLED = 200
"""Flags of each document that are off: a configuration that stays behind shows in the memory."""


@dataclass(frozen=True)
class Side:
    """What decides which flags an environment has: an upstream, the environment that the token names, and options."""

    upstream: int
    scope: str
    prefix: str = ""
    project: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of the flags that callers see."""
        return tuple(
            f"{name}-{self.upstream}-{self.scope}"
            for name, project in PROJECTS.items()
            if name.startswith(self.prefix) and self.project in ("", project)
        )

    def document(self) -> dict[str, Any]:
        """Return the document of the upstream for this scope."""
        on = [{**toggle(f"{name}-{self.upstream}-{self.scope}"), "project": project} for name, project in PROJECTS.items()]
        off = [{**toggle(f"{OFF}-{number}-{self.scope}"), "project": "p1", "enabled": False} for number in range(DISABLED)]
        return {"version": 2, "features": on + off}


@dataclass(frozen=True)
class Table:
    """An environment as the file says it. `secret` and `options` do not change its flags."""

    side: Side
    keys: tuple[str, ...]
    secret: int = 0
    options: tuple[tuple[str, object], ...] = ()

    @property
    def token(self) -> str:
        return f"*:{self.side.scope}.api-token-{self.secret}"

    @property
    def origin(self) -> str:
        """The only origin of browsers that the environment allows."""
        return str(dict(self.options).get("cors.origin", "https://first.example"))

    def text(self, url: str) -> dict[str, object]:
        """Return the options of the file."""
        tokens = [key for key in self.keys if key.startswith(SERVER_TOKEN)]
        given: dict[str, object] = {"flagsvcUrl": url, "flagsvcApiToken": self.token}
        given["clientKeys"] = [key for key in self.keys if key not in tokens]
        given["expServerSideSdkConfig.tokens"] = tokens
        chosen = {"namePrefix": self.side.prefix, "projectName": self.side.project}
        rest = {"refreshInterval": 1000, "cors.origin": self.origin, **dict(self.options)}
        return given | {name: value for name, value in chosen.items() if value} | rest


@dataclass(frozen=True)
class Former:
    """What may still answer for an environment, and the keys that open it. Without a side it has no configuration."""

    side: Side | None
    keys: frozenset[str]

    def after(self, table: Table) -> Former:
        """Return it after a change of the file: no new key opens former flags, and no key that was taken away."""
        wanted = frozenset(table.keys)
        return Former(self.side, wanted if self.side == table.side else self.keys & wanted)

    def answer(self, key: str) -> Answer:
        """Return the answer to a key while this answers."""
        return self.side.flags if self.side is not None and key in self.keys else NOT_READY


@dataclass(frozen=True)
class Expected:
    """What an environment may answer: with the options of the file, or as one of those before, until those of the file answer."""

    table: Table
    formers: tuple[Former, ...] = ()

    def after(self, table: Table) -> Expected:
        """Return what it may answer after a change of the file."""
        is_replaced = (table.side, table.options) != (self.table.side, self.table.options)
        now = (Former(self.table.side, frozenset(self.table.keys)),) if is_replaced else ()
        return Expected(table, tuple(each.after(table) for each in (*self.formers, *now)))

    def answers(self, key: str) -> frozenset[Answer]:
        """Return the answers that a key of it may get."""
        return frozenset([self.table.side.flags, *(each.answer(key) for each in self.formers)])


def added(table: Table) -> Expected:
    """Return what an environment may answer that was not there before."""
    return Expected(table, (Former(None, frozenset()),))


@dataclass
class Model:
    """What each environment may answer. `published` has for each lasting key all that it could be answered so far, in order."""

    environments: dict[str, Expected]
    published: dict[str, list[frozenset[Answer]]] = field(default_factory=dict)

    def publish(self) -> None:
        """Publish what the lasting keys may be answered from now on."""
        for key, answers in self.published.items():
            now = self.answers(key)
            if not answers or answers[-1] != now:
                answers.append(now)

    def answers(self, key: str) -> frozenset[Answer]:
        """Return the answers that a key may get from now on."""
        for each in self.environments.values():
            if key in each.table.keys:
                return each.answers(key)
        return frozenset([UNAUTHORIZED])

    @property
    def tables(self) -> dict[str, Table]:
        """The environments as the file says them."""
        return {name: each.table for name, each in self.environments.items()}

    def change(self, tables: Mapping[str, Table]) -> None:
        """Take other environments, as the file says them now."""
        known = self.environments
        self.environments = {name: known[name].after(table) if name in known else added(table) for name, table in tables.items()}
        self.publish()

    def settle(self, names: Iterable[str]) -> None:
        """Take it that these environments answer with the options of the file."""
        for name in names:
            self.environments[name] = Expected(self.environments[name].table)
        self.publish()


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
    return OF_SERVERS if key.startswith(SERVER_TOKEN) else OF_APPS


def converse(connection: http.client.HTTPConnection, key: str, requested: Requested, headers: Mapping[str, str]) -> Reply:
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
    """Asks with lasting keys until told to stop: on a connection that stays, or on a new connection for each request.

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
    with threads(*(caller.run for caller in callers), stop=setting(*(caller.over for caller in callers))):
        yield callers


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
    folder = Path(f"/proc/{pid}")
    memory = int((folder / "statm").read_text().split()[1]) * 4096
    return Size(memory, len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir())))
