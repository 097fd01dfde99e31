"""A proxy that looks up tokens under a flood of random ones, while callers with known tokens ask, and new ones come."""

from __future__ import annotations

import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.fake_upstream import FakeUpstream, granted
from support.processes import KEY, Proxy, our_proxy
from support.token_scene import BACK, FRONT, FRONT_A, UP, knowing_upstream
from support.waiting import setting, threads
from support.worker_pools import workers

BUDGET = 5
ATTACKER = "127.0.0.77"
KNOWN = (("/proxy", KEY), ("/proxy", FRONT), ("/api/frontend", FRONT_A), ("/api/client/features", BACK))
PAUSE_S = 0.005
A_CONNECTION = 20
"""Rounds of known callers on one connection."""
CONNECTIONS = 6
"""Connections of a new caller after it was let in."""
NEWCOMER_S = 5.0
"""Seconds between two callers with new tokens; a short flood has two of them."""


@dataclass
class Figures:
    """What was seen: times in seconds, memory in bytes.

    `before` and `during` are the times of answers to known callers without and with the flood. `newcomers` has for each new token
    the tries and the seconds until it was let in, `memory` the size of the proxy each second. `questions` came in `seconds`.
    `dead` are the processes that ended.
    """

    before: list[float] = field(default_factory=list)
    during: list[float] = field(default_factory=list)
    newcomers: list[tuple[int, float]] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    questions: int = 0
    largest: int = 0
    seconds: float = 0.0
    flood: dict[str, Any] = field(default_factory=dict)
    dead: set[int] = field(default_factory=set)

    def lines(self) -> str:
        p99 = [statistics.quantiles(times, n=100)[98] * 1000 for times in (self.before, self.during)]
        middle = [statistics.median(times) * 1000 for times in (self.before, self.during)]
        waits = [seconds for _, seconds in self.newcomers]
        sizes = [size / 1e6 for size in self.memory]
        return (
            f"flood: {self.flood}\n"
            f"questions: {self.questions} of at most {self.largest} tokens in {self.seconds:.1f} s,"
            f" allowed {BUDGET * (self.seconds + 1):.0f}\n"
            f"known callers: {len(self.during)} answers; median {middle[0]:.2f} ms without the flood, {middle[1]:.2f} with it;"
            f" p99 {p99[0]:.2f} and {p99[1]:.2f} ms, slowest {max(self.during) * 1000:.0f} ms\n"
            f"new tokens: {len(waits)}, let in after {[round(each, 1) for each in waits]} s,"
            f" tries {[tries for tries, _ in self.newcomers]}\n"
            f"memory: {sizes[0]:.1f} MB at the start, {sizes[min(20, len(sizes) - 1)]:.1f} after 20 s, {sizes[-1]:.1f} at the end,"
            f" {max(sizes):.1f} at most"
        )


class KnownCallers:
    """Asks with known tokens and a listed key until told to stop; writes down how long each answer took.

    It opens a new connection now and then, so that each worker gets each token, some of them only during the flood.
    """

    def __init__(self, port: int, figures: Figures) -> None:
        self.over = threading.Event()
        self.times = figures.before
        self._figures = figures
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def run(self) -> None:
        with contextlib.closing(self._connection):
            rounds = 0
            while not self.over.wait(PAUSE_S):
                rounds += 1
                if rounds % A_CONNECTION == 0:
                    self._connection.close()
                for path, token in KNOWN:
                    self.ask(path, token)

    def ask(self, path: str, token: str) -> None:
        began, times = time.perf_counter(), self.times
        self._connection.request("GET", path, headers={"Authorization": token})
        response = self._connection.getresponse()
        response.read()
        self._figures.statuses.add(response.status)
        times.append(time.perf_counter() - began)


@dataclass
class Newcomers:
    """Every few seconds a caller with a token that was made a moment ago: it tries again when it is told to, until it is let in.

    From then on it counts as a known caller, whichever worker gets its connections.
    """

    port: int
    upstream: FakeUpstream
    figures: Figures
    pause_s: float
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.over.wait(self.pause_s):
            assert self.upstream.tokens is not None
            token = f"*:production.hidden-new-{len(self.figures.newcomers)}"
            self.upstream.tokens[token] = granted("frontend")
            began, tries = time.perf_counter(), 1
            while (pause := self.ask(token)) and tries < 100:
                time.sleep(pause)  # the caller waits as long as Retry-After says
                tries += 1
            self.figures.newcomers.append((tries, time.perf_counter() - began))
            self.figures.statuses |= {503 if self.ask(token) else 200 for _ in range(CONNECTIONS)}

    def ask(self, token: str) -> int:
        """Ask once; return how many seconds to wait, 0 for a caller that was let in."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            headers = {"Authorization": token, "X-Forwarded-For": "203.0.113.5"}
            connection.request("GET", "/proxy", headers=headers)
            response = connection.getresponse()
            response.read()
            assert response.status in (200, 503), response.status
            return 0 if response.status == 200 else int(response.headers["retry-after"])


def flooded(seconds: float, rate: float, *, many: bool, quiet_s: float, number: int = 1, route: str = "proxy") -> Figures:
    """Run a proxy with so many workers under a flood, from one address or from many; return what was seen.

    `quiet_s` is the time without the flood before it, and `route` is what is flooded: `proxy` or `validate`.
    """
    env = {
        "FLAGSVC_TOKEN_VALIDATION": "upstream",
        "FLAGSVC_TOKEN_LOOKUP_RATE": str(BUDGET),
        "UNLEASH_API_TOKEN": UP,
        "FLAGSVC_WORKERS": str(number),
        **({"TRUST_PROXY": "true"} if many else {}),
    }
    figures = Figures()
    with knowing_upstream() as upstream, our_proxy(upstream.url, **env) as proxy:
        callers = KnownCallers(proxy.port, figures)
        newcomers = Newcomers(proxy.port, upstream, figures, min(NEWCOMER_S, seconds / 3))
        with threads(callers.run, stop=callers.over.set):
            time.sleep(quiet_s)  # the known callers are measured for so long without the flood
            callers.times, began = figures.during, time.monotonic()
            upstream.forget()
            with threads(newcomers.run, stop=setting(callers.over, newcomers.over)):
                alive = set(workers(proxy))
                attack(proxy, figures, seconds, rate, "many" if many else ATTACKER, route)
                figures.dead = alive - set(workers(proxy))
        asked, figures.seconds = upstream.asked_tokens(), time.monotonic() - began
        figures.questions, figures.largest = len(asked), max(len(each) for each in asked)
        assert "hidden" not in proxy.program.output() and "Traceback" not in proxy.program.output()
    return figures


def attack(proxy: Proxy, figures: Figures, seconds: float, rate: float, source: str, route: str) -> None:
    """Run the flood, and write down the size of the proxy while it runs."""
    program = Path(__file__).with_name("token_flood.py")
    command = [sys.executable, str(program), str(proxy.port), str(seconds), str(rate), source, route]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as flood:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                text, _ = flood.communicate(timeout=1)
                break
            figures.memory.append(resident(proxy))
    figures.flood = json.loads(text)
    figures.memory.append(resident(proxy))


def resident(proxy: Proxy) -> int:
    """Return the bytes of memory that all processes of a proxy have."""
    pids = [proxy.program.process.pid, *workers(proxy)]
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 for pid in pids)
