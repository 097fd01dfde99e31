"""A random walk over configuration files of a running proxy, under load: after each reload the keys open what the file says.

    file ─→ flagsvc proxy ←─ callers with lasting keys
                └─→ upstreams, one of which is away now and then

`reload_callers` tells what each key may get.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from reload_callers import (
    SERVER_TOKEN,
    Answer,
    Caller,
    Model,
    Reply,
    Side,
    Size,
    Table,
    added,
    calling,
    converse,
    requests_of,
    sizes,
)

from support.environment_samples import write_toml
from support.fake_upstream import FakeUpstream, fake_upstream
from support.processes import Proxy, free_port, our_proxy
from support.worker_pools import document, workers

Tables = Mapping[str, Table]
Change = Callable[[dict[str, Table]], None]

LASTING, PASSING = 6, 4
"""Environments that stay, with a lasting key each, and environments at the start that may go."""
MOST = 12
PASSING_KEY = "client-key-passing"
"""How the keys at the start begin that may go."""
UPSTREAMS = 3
AWAY = UPSTREAMS
"""The number of the upstream that is away now and then."""
CALLERS = 4, 2
"""Callers that keep their connections, and callers that connect for each request."""
EACH_WORKER = 10
"""New connections for each worker: each gets one, most likely."""
REVOKED = 20
"""So many keys that were revoked before are asked about after each reload."""
SECRETS = ("client-key", SERVER_TOKEN, "api-token")
"""What is in each secret of a walk."""
REFUSED = "the configuration cannot be read again, the old one stays"
CHANGED = ("environments have changed", "keys and tokens have changed", "options have changed")
OPTIONS: Mapping[str, tuple[object, ...]] = {
    "cors.origin": ("https://second.example", "https://third.example", "https://fourth.example"),
    "refreshInterval": (900, 1100, 1200),
    "metricsInterval": (2000, 3000, 4000),
    "flagsvcAppName": ("some-proxy", "another-proxy"),
    "enableAllEndpoint": (False,),
    "answerCacheBytes": (0, 100_000, 200_000),
}
"""Options of an environment that do not change its flags, each with values that it does not have at the start."""
ENV = {
    "UNLEASH_API_TOKEN": "",
    "UNLEASH_PROXY_CLIENT_KEYS": "",
    "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": "",
    "FLAGSVC_KEY_OVERLAP": "0",
    "FLAGSVC_WATCH_INTERVAL": "1",
    "FLAGSVC_STORAGE": "none",
    "LOG_LEVEL": "info",
    "JSON_LOGGER": "true",
}
SCAN = """
import flagsvc.core.garbage as garbage
garbage.UNFREEZE_S = {}
strategies = []
"""
"""Custom code that has a process scan all objects for garbage at other intervals."""


class Upstreams:
    """Upstream servers at lasting ports. Each can be away, and has a document for each known token."""

    def __init__(self) -> None:
        self.ports = [free_port() for _ in range(UPSTREAMS + 1)]
        self.sides: dict[tuple[int, str], Side] = {}
        self._running: dict[int, tuple[FakeUpstream, ExitStack]] = {}

    def url(self, upstream: int) -> str:
        return f"http://127.0.0.1:{self.ports[upstream]}/api"

    def know(self, table: Table) -> None:
        """Have the upstream know the token of an environment."""
        side = replace(table.side, prefix="", project="")
        self.sides[side.upstream, table.token] = side
        if side.upstream in self._running:
            self._running[side.upstream][0].serve(table.token, side.document())

    def open(self, upstream: int) -> None:
        stack = ExitStack()
        server = stack.enter_context(fake_upstream(document("foreign"), self.ports[upstream]))
        self._running[upstream] = server, stack
        for (number, token), side in self.sides.items():
            if number == upstream:
                server.serve(token, side.document())

    def close(self, upstream: int) -> None:
        """Let an upstream refuse connections."""
        if upstream in self._running:
            self._running.pop(upstream)[1].close()

    def is_away(self, upstream: int) -> bool:
        return upstream not in self._running

    def forget(self) -> None:
        for server, _ in self._running.values():
            server.forget()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let all answer until the block ends."""
        try:
            for upstream in range(UPSTREAMS + 1):
                self.open(upstream)
            yield
        finally:
            for upstream in range(UPSTREAMS + 1):
                self.close(upstream)


class ReloadWalk:
    """One walk with so many workers. `done` counts the reloads of each kind, `seen` what keys were answered after them.

    A single environment has no name. `scan_s` are the seconds after which a process scans all objects for garbage; without them it
    does so as usual, after ten minutes.
    """

    def __init__(
        self, folder: Path, upstreams: Upstreams, seed: int, number: int, *, single: bool = False, scan_s: float = 0.0
    ) -> None:
        self.random = Random(seed)
        self.upstreams = upstreams
        self.file = folder / "flagsvc.toml"
        self.number = number
        self.single = single
        self.scan_s = scan_s
        self.done: Counter[str] = Counter()
        self.revoked: list[str] = []
        self.seen: Counter[str] = Counter()
        self._made = 0
        self._cycle: list[str] = []
        self.first = self._first()
        self.model = Model({name: added(table) for name, table in self.first.items()})
        self.callers: list[Caller] = []

    def _first(self) -> dict[str, Table]:
        names = [""] if self.single else [f"e{number}" for number in range(LASTING + PASSING)]
        tables = {
            name: Table(
                Side(at % UPSTREAMS, self._scope(name)), (f"client-key-{at}", f"{SERVER_TOKEN}-{at}", f"{PASSING_KEY}-{at}")
            )
            for at, name in enumerate(names)
        }
        for table in tables.values():
            self.upstreams.know(table)
        return tables

    def _make(self) -> int:
        """Return a number that no other part of the walk has."""
        self._made += 1
        return self._made

    def _scope(self, name: str) -> str:
        """Return the name of an environment at an upstream that no other one has."""
        return f"{name or 'only'}s{self._make()}"

    # ---- the process

    @contextmanager
    def proxy(self) -> Iterator[Proxy]:
        """Run the proxy until the block ends. It begins when every environment answers."""
        self._write(self._text(self.first))
        env = {**ENV, "FLAGSVC_CONFIG": str(self.file), "FLAGSVC_WORKERS": str(self.number)}
        if self.scan_s:
            code = self.file.with_name("scan.py")
            code.write_text(SCAN.format(self.scan_s))
            env["FLAGSVC_CUSTOM_STRATEGIES_FILE"] = str(code)
        with our_proxy("", wait_ready=False, **env) as self.running:
            self.running.program.wait(lambda: "flagsvc ready" in self.running.program.output(), "ready")
            self.settle()
            yield self.running

    @contextmanager
    def load(self) -> Iterator[None]:
        """Have callers with lasting keys ask until the block ends."""
        self.model.published = {key: [] for name in self.lasting for key in self.first[name].keys if is_lasting(key)}
        self.model.publish()
        with calling(self.running.port, self.model, self.random, *CALLERS) as self.callers:
            yield
        assert not self.wrong(), self.wrong()[:5]

    @property
    def lasting(self) -> list[str]:
        return list(self.first)[:LASTING]

    def end(self) -> None:
        """Stop the proxy: it ends well, and leaves no process behind. Its log has no error but the refused files."""
        pids = [self.running.program.process.pid, *workers(self.running)]
        assert self.running.program.stop() == 0
        assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
        output = self.running.program.output()
        assert not [line for line in self.lines() if line["level"] == "error" and line["message"] != REFUSED]
        assert "Traceback" not in output and not [secret for secret in SECRETS if secret in output]

    def wrong(self) -> list[str]:
        return [each for caller in self.callers for each in caller.wrong]

    # ---- reloads

    def _text(self, tables: Tables, head: str = "") -> str:
        """Return the text of a file with these environments."""
        texts = {name: table.text(self.upstreams.url(table.side.upstream)) for name, table in tables.items()}
        if self.single:
            head = "\n".join([head, *(f"{option} = {json.dumps(value)}" for option, value in texts.pop("").items())])
        return write_toml(self.file.with_suffix(".new"), texts, head).read_text()

    def _write(self, text: str) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.rename(self.file)

    def lines(self, *events: str) -> list[dict[str, str]]:
        """Return the lines that the process has written; of these events, if any are named."""
        written = [json.loads(line) for line in self.running.program.output().splitlines() if line.endswith("}")]
        return [line for line in written if not events or line["message"] in events]

    def _load(self, text: str, read: Callable[[], object]) -> None:
        """Replace the file, and wait until the process says that it has read the file; half of the time, it is told to read."""
        self._write(text)
        if self.random.random() < 0.5:
            self.running.program.process.send_signal(signal.SIGHUP)
        self.running.program.wait(read, "saying that the file was read")

    def _said_again(self, *events: str) -> Callable[[], bool]:
        """Return whether lines of these events were written since now."""
        before = len(self.lines(*events))
        return lambda: len(self.lines(*events)) > before

    def use(self, tables: Tables) -> None:
        """Reload with other environments, and check at once what all keys open."""
        before = self.model.tables
        for table in tables.values():
            self.upstreams.know(table)
        self.model.change(tables)
        self._load(self._text(tables), self._said_again(*CHANGED))
        self.check(before)

    def check(self, before: Tables) -> None:
        """Check that each changed key and each revoked key gets what it may get, in every process."""
        present = {key for table in self.model.tables.values() for key in table.keys}
        gone = [key for table in before.values() for key in table.keys if key not in present]
        self.revoked = [key for key in (*self.revoked, *gone) if key not in present]
        changed = {key for name, table in self.model.tables.items() if table != before.get(name) for key in table.keys}
        for key in {*changed, *self.revoked[-REVOKED:]}:
            got, may = self._compare(key)
            self.seen.update(f"{each if isinstance(each, int) else 200} of {len(may)} answers" for each in got)
        assert not self.wrong(), self.wrong()[:5]

    def _compare(self, key: str) -> tuple[set[Answer], frozenset[Answer]]:
        """Check that a key gets what it may get in every process. Returns both."""
        got, may = {each.answer for each in self.ask_all(key)}, self.model.answers(key)
        assert got <= may, f"{key}: {got} and not {may}"
        return got, may

    def ask_all(self, key: str, origin: str = "") -> Iterator[Reply]:
        """Ask on so many new connections that each worker gets one, most likely, and yield the replies."""
        for _ in range(EACH_WORKER * self.number):
            yield self._ask(key, origin)

    def _ask(self, key: str, origin: str = "") -> Reply:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=20)) as connection:
            return converse(connection, key, requests_of(key)[0], {"Origin": origin} if origin else {})

    def settle(self, *but: str) -> None:
        """Wait until each environment answers with the options of the file in every process, but these."""
        names = [name for name, each in self.model.environments.items() if each.formers and name not in but]
        for name in names:
            self.running.program.wait(lambda: self.has_settled(name), f"answering for {name} as the file says")  # noqa: B023
        self.model.settle(names)

    def has_settled(self, name: str) -> bool:
        """Return whether every process answers for an environment with the options of the file."""
        table = self.model.tables[name]
        wanted = (table.side.flags, table.origin)
        return all((each.answer, each.origin) == wanted for each in self.ask_all(table.keys[0], table.origin))

    # ---- the walk

    def run(self, reloads: int) -> list[list[Size]]:
        """Reload so often, and return the sizes of the processes after each quarter."""
        found: list[list[Size]] = []
        for _ in range(4):
            self.steps(reloads // 4 - 1)
            self.return_to_start()
            found.append(sizes(self.running))
        return found

    def steps(self, number: int) -> None:
        for _ in range(number):
            self.step()
            self.upstreams.forget()

    def return_to_start(self) -> None:
        """Have the environments of the start again, with other secrets, each with its upstream."""
        self.done["all at once"] += 1
        if self.upstreams.is_away(AWAY):
            self.upstreams.open(AWAY)
        secret = self._make()
        self.use({name: replace(table, secret=secret) for name, table in self.first.items()})
        self.settle()

    def step(self, wanted: str = "") -> None:
        """Take one step, of any kind or of the wanted kind: a reload with one change, or two, or with a file that is refused."""
        tables = dict(self.model.tables)
        while tables == self.model.tables:
            kind = wanted or self._draw_kind()
            self.kinds[kind](tables)
            if kind not in self.refusals and self.random.random() < 0.3:
                self.kinds[self.random.choice([each for each in self.kinds if each not in self.refusals])](tables)
        self.done[kind] += 1
        if kind not in self.refusals:
            self.use(tables)
            if self.random.random() < 0.6:
                self.settle(*self.waiting())

    def _draw_kind(self) -> str:
        """Return a kind of reload: each comes once before any comes again."""
        if not self._cycle:
            self._cycle = self.random.sample(list(self.kinds), len(self.kinds))
        return self._cycle.pop()

    def waiting(self) -> list[str]:
        """Return the names of the environments that wait for the upstream that is away."""
        is_away = self.upstreams.is_away(AWAY)
        return [name for name, table in self.model.tables.items() if is_away and table.side.upstream == AWAY]

    @property
    def kinds(self) -> dict[str, Change]:
        """The kinds of reloads, each with what it changes."""
        of_one: dict[str, Change] = {
            "a key comes": self.add_key,
            "a key goes": self.remove_key,
            "a key for another": self.exchange_key,
            "a token of the same scope": self.renew_secret,
            **self.refusals,
        }
        of_each: dict[str, Change] = {
            "an option": self.change_option,
            "an option that decides the flags": self.change_flags,
            "another upstream": self.move,
            "an upstream that is away": self.move_away,
            "the upstream is back": self.bring_back,
            "a token of another scope": self.change_scope,
        }
        if self.single:
            return of_one | of_each
        return (
            of_one | of_each | {"a key moves": self.move_key, "an environment comes": self.add, "an environment goes": self.remove}
        )

    def draw(self, tables: dict[str, Table]) -> str:
        return self.random.choice(list(tables))

    def add_key(self, tables: dict[str, Table]) -> None:
        name = self.draw(tables)
        kind = self.random.choice(("client-key", "client-key", SERVER_TOKEN))
        tables[name] = replace(tables[name], keys=(*tables[name].keys, f"{kind}-more-{self._make()}"))

    def remove_key(self, tables: dict[str, Table]) -> None:
        """Take a key away that does not last. An environment without such a key gets one."""
        self._take_key(tables)

    def exchange_key(self, tables: dict[str, Table]) -> None:
        """Put a key in the place of another one: without an overlap, the other one ends."""
        name, _ = self._take_key(tables)
        tables[name] = replace(tables[name], keys=(*tables[name].keys, f"client-key-other-{self._make()}"))

    def move_key(self, tables: dict[str, Table]) -> None:
        name, key = self._take_key(tables)
        other = self.random.choice([each for each in tables if each != name])
        tables[other] = replace(tables[other], keys=(*tables[other].keys, key))

    def _take_key(self, tables: dict[str, Table]) -> tuple[str, str]:
        """Take a key away from an environment. Returns both, also if there is no key to take: then the key is a new one."""
        found = [(name, key) for name, table in tables.items() for key in table.keys[1:] if key not in self.model.published]
        if not found:
            self.add_key(tables)
            return self.draw(tables), f"client-key-new-{self._make()}"
        name, gone = self.random.choice(found)
        tables[name] = replace(tables[name], keys=tuple(key for key in tables[name].keys if key != gone))
        return name, gone

    def change_option(self, tables: dict[str, Table]) -> None:
        """Give an environment another value of an option that does not change its flags."""
        name, option = self.draw(tables), self.random.choice(list(OPTIONS))
        options = dict(tables[name].options)
        former = options.pop(option, None)
        values = [each for each in OPTIONS[option] if each != former]
        if values:
            options[option] = self.random.choice(values)
        tables[name] = replace(tables[name], options=tuple(sorted(options.items())))

    def change_flags(self, tables: dict[str, Table]) -> None:
        """Give an environment a part of the flags, or others, by an option; and a key at the same time."""
        name = self.draw(tables)
        side = tables[name].side
        if self.random.random() < 0.5:
            side = replace(side, prefix="" if side.prefix else "t")
        else:
            side = replace(side, project=self.random.choice([each for each in ("", "p1", "p2") if each != side.project]))
        self._to(tables, name, side)

    def add(self, tables: dict[str, Table]) -> None:
        free = [name for name in (f"e{number}" for number in range(LASTING, MOST)) if name not in tables]
        if free:
            name = self.random.choice(free)
            side = Side(self.random.randrange(UPSTREAMS), self._scope(name))
            tables[name] = Table(side, (f"client-key-new-{self._make()}",))

    def remove(self, tables: dict[str, Table]) -> None:
        passing = [name for name in tables if name not in self.lasting]
        if passing:
            del tables[self.random.choice(passing)]

    def move(self, tables: dict[str, Table]) -> None:
        name = self.draw(tables)
        side = tables[name].side
        self._to(tables, name, replace(side, upstream=(side.upstream + 1) % UPSTREAMS))

    def move_away(self, tables: dict[str, Table]) -> None:
        """Give an environment an upstream that is away."""
        self.upstreams.close(AWAY)
        name = self.draw(tables)
        self._to(tables, name, Side(AWAY, self._scope(name)))

    def bring_back(self, tables: dict[str, Table]) -> None:
        """Let the upstream answer that is away; the environments that wait for it get their flags without a reload."""
        if self.upstreams.is_away(AWAY):
            self.upstreams.open(AWAY)
            self.settle()
            self.check(self.model.tables)
        self.add_key(tables)

    def change_scope(self, tables: dict[str, Table]) -> None:
        """Give an environment a token of another environment of its upstream."""
        name = self.draw(tables)
        self._to(tables, name, replace(tables[name].side, scope=self._scope(name)))

    def renew_secret(self, tables: dict[str, Table]) -> None:
        name = self.draw(tables)
        tables[name] = replace(tables[name], secret=self._make())

    def _to(self, tables: dict[str, Table], name: str, side: Side) -> None:
        """Give an environment other flags, and exchange one of its keys."""
        gone = [key for key in tables[name].keys[1:] if key not in self.model.published][:1]
        keys = [key for key in tables[name].keys if key not in gone]
        tables[name] = replace(tables[name], side=side, keys=(*keys, f"client-key-with-{self._make()}"))

    # ---- files that are refused

    @property
    def refusals(self) -> dict[str, Change]:
        """The kinds of files that are refused."""
        found: dict[str, Change] = {"a wrong value": self.wrong_value, "broken TOML": self.broken}
        return found if self.single else found | {"one that cannot start": self.cannot_start}

    def wrong_value(self, tables: dict[str, Table]) -> None:
        """Write a file with a value that is none."""
        value = f"often-{self._make()}"
        self.refuse(tables, value, {"refreshInterval": value})

    def cannot_start(self, tables: dict[str, Table]) -> None:
        """Write a file with an environment that cannot start, beside others that can."""
        path = self.file.with_name(f"no-such-file-{self._make()}.pem")
        self.refuse(tables, path.name, {"upstreamCa": str(path)})

    def broken(self, tables: dict[str, Table]) -> None:
        """Write a file that is no TOML."""
        line = self._make()
        self.refuse(tables, f"(at line {line},", {}, "\n" * (line - 1) + "= 1")

    def refuse(self, tables: dict[str, Table], problem: str, wrong: Mapping[str, object], head: str = "") -> None:
        """Reload with a file that is refused, although it also has other keys and environments: nothing changes.

        The line in the log contains the problem, which no other file has.
        """
        for change in (self.exchange_key, *(() if self.single else (self.change_flags, self.remove, self.add))):
            change(tables)
        name = self.draw(tables)
        tables[name] = replace(tables[name], options=tuple({**dict(tables[name].options), **wrong}.items()))
        self._load(self._text(tables, head), lambda: [line for line in self.lines(REFUSED) if problem in line["problems"]])
        tried = {key for table in tables.values() for key in table.keys}
        for key in {key for table in self.model.tables.values() for key in table.keys} | tried:
            self._compare(key)
        assert not self.wrong(), self.wrong()[:5]


def is_lasting(key: str) -> bool:
    """Return whether a key of the start is there until the end."""
    return not key.startswith(PASSING_KEY)


@contextmanager
def walking(folder: Path, *, seed: int, number: int, **more: Any) -> Iterator[ReloadWalk]:
    """Run a proxy with upstreams and callers until the block ends; then the proxy ends as it should."""
    upstreams = Upstreams()
    with upstreams.running():
        walk = ReloadWalk(folder, upstreams, seed, number, **more)
        with walk.proxy():
            with walk.load():
                yield walk
            walk.end()
