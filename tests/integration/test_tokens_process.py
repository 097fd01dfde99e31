"""Processes that look up tokens: restarts, several workers, proxies below proxies.

Floods of random tokens, from one address and from many: the upstream, known callers and new ones do not suffer. In the long run,
FLOOD_SECONDS=60 is the length of each flood, FLOOD_RATE=1000 its requests a second; the figures are printed with `-s`.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.fake_upstream import FakeUpstream, granted
from support.processes import KEY, Proxy, ask, our_proxy
from support.token_scene import ADMIN, BACK, BACK_B, DEV, FRONT, FRONT_A, UNKNOWN, UP, knowing_upstream
from support.waiting import setting, threads, wait_until
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
LOOKING = {"FLAGSVC_TOKEN_VALIDATION": "upstream", "UNLEASH_API_TOKEN": UP, "FLAGSVC_TOKEN_LOOKUP_RATE": "100"}


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


@pytest.fixture(name="upstream")
def _upstream() -> Iterator[FakeUpstream]:
    """Run a flag server that knows tokens."""
    with knowing_upstream() as upstream:
        yield upstream


def status(proxy: Proxy, token: str, path: str = "") -> int:
    """Return the status of a request with a token, on a connection of its own."""
    return ask(proxy.url + path, headers={"Authorization": token}).status


def flags(proxy: Proxy, token: str, path: str = "/proxy") -> list[str]:
    """Return the names of the flags that a token gets."""
    answer = ask(proxy.url.removesuffix("/proxy") + path, headers={"Authorization": token})
    assert answer.status == 200, (answer.status, answer.body)
    content = answer.json()
    return [each["name"] for each in content.get("toggles") or content["features"]]


def test_workers(upstream: FakeUpstream) -> None:
    """Any worker accepts a token, and the upstream is asked once for all. A revocation reaches all of them."""
    given = {**LOOKING, "FLAGSVC_WORKERS": "2", "FLAGSVC_TOKEN_REVALIDATION_INTERVAL": "1", "LOG_LEVEL": "debug"}
    assert upstream.tokens is not None
    with our_proxy(upstream.url, **given) as proxy:
        proxy.program.wait(lambda: "flagsvc ready" in proxy.program.output(), "ready")
        assert [flags(proxy, FRONT_A) for _ in range(12)] == [["of-a", "free"]] * 12
        assert [status(proxy, UNKNOWN) for _ in range(12)] == [401] * 12
        assert [status(proxy, FRONT, "/client/features") for _ in range(12)] == [401] * 12
        asked = [token for each in upstream.asked_tokens() for token in each]
        assert asked.count(UNKNOWN) == 1, "the parent remembers, and so does each worker"
        del upstream.tokens[FRONT_A]
        wait_until(lambda: [status(proxy, FRONT_A) for _ in range(12)] == [401] * 12)
        assert status(proxy, FRONT) == 200
        os.kill(workers(proxy)[0], signal.SIGKILL)
        assert {status(proxy, token) for token in (FRONT, FRONT) for _ in range(6)} == {200}
        proxy.program.wait(lambda: len(workers(proxy)) == 2, "replacing the worker")
        assert [flags(proxy, FRONT) for _ in range(12)] == [["of-a", "of-b", "free"]] * 12
        assert [status(proxy, FRONT_A) for _ in range(12)] == [401] * 12
        assert "hidden" not in proxy.program.output()
        page = proxy.get("/internal-backstage/prometheus").body
        assert b"flagsvc_tokens_known 1" in page and b"hidden" not in page
        assert b'flagsvc_upstream_request_duration_seconds_count{outcome="ok",request="tokens"}' in page
        assert b'flagsvc_upstream_received_bytes_total{session="tokens"}' in page


def test_a_hangup_ends_revoked_tokens(upstream: FakeUpstream) -> None:
    """SIGHUP has all known tokens asked about again, at once and for all workers. Others go on."""
    assert upstream.tokens is not None
    with our_proxy(upstream.url, **LOOKING, FLAGSVC_WORKERS="2") as proxy:
        proxy.program.wait(lambda: "flagsvc ready" in proxy.program.output(), "ready")
        assert {status(proxy, token) for token in (FRONT, FRONT_A) for _ in range(6)} == {200}
        del upstream.tokens[FRONT_A]
        assert {status(proxy, FRONT_A) for _ in range(6)} == {200}
        os.kill(proxy.program.process.pid, signal.SIGHUP)
        wait_until(lambda: [status(proxy, FRONT_A) for _ in range(6)] == [401] * 6)
        assert {status(proxy, FRONT) for _ in range(6)} == {200}


def test_ours_below_ours(upstream: FakeUpstream) -> None:
    """A proxy asks the proxy above it, which asks the server: each token opens the same at both, also a project's."""
    with our_proxy(upstream.url, **LOOKING) as above:
        base = above.url.removesuffix("/proxy")
        whole = {**LOOKING, "UNLEASH_API_TOKEN": BACK}
        part = {**LOOKING, "UNLEASH_API_TOKEN": BACK_B}
        with our_proxy(f"{base}/api", **whole) as below, our_proxy(f"{base}/proxy", **part) as of_b:
            for proxy in (below, above):
                assert flags(proxy, FRONT) == ["of-a", "of-b", "free"]
                assert flags(proxy, FRONT_A) == flags(proxy, FRONT_A, "/api/frontend") == ["of-a", "free"]
                assert flags(proxy, BACK_B, "/api/client/features") == ["of-b", "free"]
                assert [status(proxy, token) for token in (UNKNOWN, ADMIN, DEV)] == [401] * 3
            assert flags(of_b, BACK_B, "/api/client/features") == ["of-b", "free"]
            assert [status(of_b, token) for token in (FRONT, FRONT_A)] == [401, 401], "it has not all of their flags"
            told = ask(f"{of_b.url.removesuffix('/proxy')}/edge/validate", method="POST", body={"tokens": [BACK_B, FRONT]})
            assert told.json()["tokens"] == [{"token": BACK_B, "type": "client", "projects": ["b"], "environment": "production"}]


SHORT_S = 5.0
TRIES = 20
"""The most tries of a new token until it is let in; each waits as long as it is told."""


@pytest.mark.parametrize(
    ("many", "route", "rate", "refused"),
    [(False, "proxy", 200.0, "401"), (True, "validate", 30.0, "200")],
    ids=["of one address", "of many addresses"],
)
def test_a_flood_of_tokens(many: bool, route: str, rate: float, refused: str) -> None:
    """The upstream gets no more questions than the option allows; known callers are all answered; new tokens get in.

    A request has one token, or asks about a hundred random ones.
    """
    figures = flooded(SHORT_S, rate, many=many, quiet_s=1.0, number=1 if route == "proxy" else 2, route=route)
    assert figures.statuses == {200} and len(figures.during) > 100 and not figures.dead
    assert set(figures.flood["statuses"]) <= {refused, "503"} and not figures.flood["failed"]
    assert sum(figures.flood["statuses"].values()) == figures.flood["sent"] > 0, "every request of the flood is answered"
    assert 0 < figures.questions <= BUDGET * (figures.seconds + 1) and figures.largest <= 100
    assert figures.newcomers and max(tries for tries, _ in figures.newcomers) <= TRIES


SECONDS = float(os.environ.get("FLOOD_SECONDS", "60"))
RATE = float(os.environ.get("FLOOD_RATE", "1000"))
QUIET_S = 10.0
GROWTH = 16 * 1024 * 1024
"""Bytes by which a proxy may grow after the first 20 seconds."""
FACTOR = 50
"""By how much the p99 of known callers may grow. Proxy and flood share the processors."""
NEW_S = 15.0
"""Seconds within which a new token is let in."""


@pytest.mark.long
@pytest.mark.parametrize("number", [1, 2], ids=["one process", "two workers"])
@pytest.mark.parametrize(("route", "share"), [("proxy", 1), ("validate", 10)])
@pytest.mark.parametrize("many", [False, True], ids=["one address", "many addresses"])
def test_a_long_flood_of_tokens(many: bool, number: int, route: str, share: int) -> None:
    """The upstream gets its budget and no more, known callers are answered, memory is flat, no process ends, new tokens get in."""
    figures = flooded(SECONDS, RATE / share, many=many, quiet_s=QUIET_S, number=number, route=route)
    source = "many addresses" if many else "one address"
    print(f"\n{route}, {source}, {number} worker(s), {RATE / share:.0f} a second for {SECONDS:.0f} s\n{figures.lines()}")
    assert figures.statuses == {200} and not figures.dead
    assert set(figures.flood["statuses"]) <= {"200" if route == "validate" else "401", "503"} and not figures.flood["failed"]
    assert figures.questions <= BUDGET * (figures.seconds + 1) and figures.largest <= 100
    before, during = (statistics.quantiles(times, n=100)[98] for times in (figures.before, figures.during))
    assert during < FACTOR * before
    assert figures.newcomers and max(seconds for _, seconds in figures.newcomers) < NEW_S
    assert figures.memory[-1] - figures.memory[min(20, len(figures.memory) - 1)] < GROWTH
