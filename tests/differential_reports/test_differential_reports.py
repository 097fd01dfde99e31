"""Odd reports of SDKs beside both real servers and the reference: what one of them takes, we take.

Both programs of ours refuse the rest, but for a table of exclusions.
"""

from __future__ import annotations

import http.client
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import psycopg
import pytest
from report_cases import START, Case, Path, doubled, sample, single

from support import processes
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, FRONTEND_SECRET, our_flag_server
from support.waiting import wait_until

CLIENT, FRONTEND, PROXY = "/api/client", "/api/frontend/client", "/proxy/client"
METRICS, REGISTER, BULK = "/metrics", "/register", "/metrics/bulk"
KINDS: Mapping[str, tuple[str, ...]] = {
    "metrics": (CLIENT + METRICS, FRONTEND + METRICS, PROXY + METRICS),
    "impact": (CLIENT + METRICS, FRONTEND + METRICS, PROXY + METRICS),
    "registration": (CLIENT + REGISTER, FRONTEND + REGISTER, PROXY + REGISTER),
    "bulk": (CLIENT + BULK,),
}
"""Kind of a report → the paths where it arrives."""
REAL = ("7.5.1", "8.2.0")
REFERENCE, OUR_PROXY, OUR_SERVER = "reference", "our proxy", "our server"
OURS = (OUR_PROXY, OUR_SERVER)
LANES = 64
"""Connections to our server at the same time: it stores the reports of pages once a second, and then answers all of them."""
UNLIMITED = {"REGISTER_CLIENT_RATE_LIMIT_PER_MINUTE": "1000000", "CLIENT_METRICS_RATE_LIMIT_PER_MINUTE": "1000000"}

Statuses: TypeAlias = dict[tuple[str, int], int]
"""The path and the number of a report → the status of the answer."""


class Peer(NamedTuple):
    """A program that takes reports: its address, and its keys by the beginning of a path."""

    name: str
    root: str
    keys: Mapping[str, str]

    def key(self, path: str) -> str:
        """Return the key for a path; empty for a path that the program does not have."""
        return next((key for beginning, key in self.keys.items() if path.startswith(beginning)), "")

    def ask(self, cases: Sequence[Case]) -> Statuses:
        """Send reports to all their paths, and return the statuses."""
        lanes = LANES if self.name == OUR_SERVER else 1
        with ThreadPoolExecutor(lanes) as pool:
            parts = pool.map(lambda first: self._ask(range(first, len(cases), lanes), cases), range(lanes))
            return {asked: status for part in parts for asked, status in part.items()}

    def _ask(self, numbers: Iterable[int], cases: Sequence[Case]) -> Statuses:
        """Send some of the reports, one after the other."""
        found: Statuses = {}
        parts = urlsplit(self.root)
        with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)) as connection:
            for number in numbers:
                case = cases[number]
                body = case.body()
                for path in KINDS[case.kind]:
                    if (key := self.key(path)) and not (self.name == REFERENCE and case.is_huge):
                        headers = {"Content-Type": "application/json", "Authorization": key}
                        connection.request("POST", path, body, headers)
                        answer = connection.getresponse()
                        answer.read()
                        found[path, number] = answer.status
        return found


@contextmanager
def all_peers() -> Iterator[dict[str, Peer]]:
    """Run all of them until the block ends, by name. Our proxy has the older real server as its upstream."""
    with ExitStack() as stack:
        url = stack.enter_context(processes.postgresql())
        with psycopg.connect(url, autocommit=True) as database:
            database.execute("CREATE DATABASE newer")
        newer = f"{url.rpartition('/')[0]}/newer"
        servers = [
            stack.enter_context(processes.unleash_server(url, **UNLIMITED)),
            stack.enter_context(processes.unleash_server(newer, "server-8", **UNLIMITED)),
        ]
        reference = stack.enter_context(processes.reference_proxy(servers[0].url, UNLEASH_APP_NAME="reference"))
        proxy = stack.enter_context(processes.our_proxy(servers[0].url, UNLEASH_METRICS_INTERVAL="1000"))
        server = stack.enter_context(our_flag_server())
        real = {CLIENT: processes.UPSTREAM_TOKEN, FRONTEND: processes.FRONTEND_TOKEN}
        browsers = {PROXY: processes.KEY}
        ours = {CLIENT: processes.SERVER_SIDE_TOKEN, FRONTEND: processes.KEY, **browsers}
        stored = {CLIENT: BACKEND_SECRET, FRONTEND: FRONTEND_SECRET}
        peers = [
            *(Peer(name, each.url.removesuffix("/api"), real) for name, each in zip(REAL, servers, strict=True)),
            Peer(REFERENCE, reference.url.removesuffix("/proxy"), browsers),
            Peer(OUR_PROXY, proxy.url.removesuffix("/proxy"), ours),
            Peer(OUR_SERVER, server.root, stored),
        ]
        yield {each.name: each for each in peers}


def ask_all(peers: Mapping[str, Peer], cases: list[Case]) -> dict[str, Statuses]:
    """Send reports to all peers at the same time, and return the statuses by the name of the peer."""
    with ThreadPoolExecutor(len(peers)) as pool:
        asked = {name: pool.submit(peer.ask, cases) for name, peer in peers.items()}
        return {name: each.result() for name, each in asked.items()}


ENTRIES = {"toggles", "applications", "metrics", "impactMetrics"}
"""What has entries that cost only themselves."""
DESCRIBING = {"instanceId", "sdkVersion", "environment", "platformName", "platformVersion", "strategies"}
"""Members of a report that only describe the application."""


def is_about_entries(place: Path, value: object) -> bool:
    """Return whether a value is an entry, or a part of an entry, or has entries."""
    has_entries = place[-1] in ENTRIES and isinstance(value, dict | list) and bool(value)
    return has_entries or not ENTRIES.isdisjoint(place[:-1])


class Exclusion(NamedTuple):
    """A difference on purpose. `takes` says what we do; `holds` tells for our program, a path and a report whether it applies."""

    name: str
    reason: str
    source: str
    takes: bool
    holds: Callable[[str, str, Case], bool]


EXCLUSIONS = (
    Exclusion(
        "a bad entry costs only itself",
        "the real servers refuse the report, so one flag costs the counts of all others",
        "decision 0016",
        True,
        lambda _ours, _path, case: any(is_about_entries(place, value) for place, value in case.changes),
    ),
    Exclusion(
        "impact metrics never harm counts",
        "in a bulk report the real servers refuse all of it for one malformed metric",
        "decision 0016",
        True,
        lambda _ours, _path, case: any("impactMetrics" in place for place, _ in case.changes),
    ),
    Exclusion(
        "what only describes an application may be anything",
        "the counts matter, and a description that cannot be read is left out",
        "decision 0016",
        True,
        lambda _ours, _path, case: any(DESCRIBING.intersection(place) for place, _ in case.changes),
    ),
    Exclusion(
        "a text with NUL is refused by the flag server",
        "the real servers answer 202, and then lose all that they write together with it",
        "decision 0024",
        False,
        lambda ours, path, case: ours == OUR_SERVER and not path.startswith(FRONTEND) and b"\\u0000" in case.body(),
    ),
)


class Difference(NamedTuple):
    """A report that ours answers in another way than the peers: with these statuses."""

    ours: str
    path: str
    case: Case
    status: int
    peers: dict[str, int]

    def __str__(self) -> str:
        told = ", ".join(f"{name} {status}" for name, status in self.peers.items())
        return f"{self.ours} {self.path}: {self.case.name}: {self.status} beside {told}"


class Comparison:
    """The result: how many answers were compared, how often each exclusion applies, and the differences without one."""

    def __init__(self, cases: Sequence[Case], statuses: Mapping[str, Statuses]) -> None:
        self.compared = 0
        self.excluded: Counter[str] = Counter()
        self.differences: list[Difference] = []
        for ours in OURS:
            for (path, number), status in statuses[ours].items():
                peers = answers_of(statuses, path, number)
                self._compare(Difference(ours, path, cases[number], status, peers))

    def _compare(self, found: Difference) -> None:
        self.compared += 1
        takes = is_taken(found.status)
        if found.status < 500 and takes == any(map(is_taken, found.peers.values())):
            return
        rows = (row for row in EXCLUSIONS if row.takes == takes and row.holds(found.ours, found.path, found.case))
        row = next(rows, None)
        if row is None or found.status >= 500:
            self.differences.append(found)
        else:
            self.excluded[row.name] += 1

    def lines(self) -> list[str]:
        """Return the figures as text."""
        told = [f"{self.compared} answers, {len(self.differences)} differences, {self.excluded.total()} excluded:"]
        return told + [f"  {number} × {name}" for name, number in self.excluded.most_common()]


def is_taken(status: int) -> bool:
    """Return whether a status says that the report is taken."""
    return 200 <= status < 300


def answers_of(statuses: Mapping[str, Statuses], path: str, number: int) -> dict[str, int]:
    """Return what the peers answer to a report. The real servers have no `/proxy`: their own path for pages stands for it."""
    there = path.replace(PROXY, FRONTEND)
    found = {name: statuses[name][there, number] for name in REAL}
    asked = statuses[REFERENCE].get((path, number))
    return found if asked is None else {**found, REFERENCE: asked}


SEED, CASES, PAIRS = "reports", 300, 3000
COUNTED: dict[str, tuple[Any, int]] = {
    "a-number": (5, 5),
    "a-text": ("5", 5),
    "an-exponent": ("1e1", 10),
    "a-point": (5.0, 5),
    "true": (True, 1),
    "null": (None, 0),
    "blank": (" ", 0),
    "the-largest": (2**53 - 1, 2**53 - 1),
}
"""Flag → what is reported as its `yes`, and what that counts."""
LOOKED_UP = "looked-up"
SAMPLE = {"yes": 1, "no": 0, "variants": {"blue": 1}}


@pytest.fixture(scope="module")
def peers() -> Iterator[dict[str, Peer]]:
    """Give all peers, with the flags that are counted.

    The flags come before any report: a real server knows the names of flags for some seconds, and loses counts of newer flags.
    """
    with all_peers() as found:
        for name in (OUR_SERVER, *REAL):
            for flag in (LOOKED_UP, *COUNTED):
                admin(found[name], "/projects/default/features", {"name": flag, "type": "release"})
        yield found


def admin(peer: Peer, path: str, body: object = None) -> Any:
    """Call the admin API of a flag server."""
    key = ADMIN_SECRET if peer.name == OUR_SERVER else processes.ADMIN_TOKEN
    method = "GET" if body is None else "POST"
    answer = processes.ask(f"{peer.root}/api/admin{path}", method=method, body=body, headers={"Authorization": key})
    assert answer.status < 300, (path, answer.status, answer.text)
    return answer.json() if answer.body else None


def counted(peer: Peer) -> dict[str, int]:
    """Return how often each flag was on, as a flag server stores it."""
    rows = {name: admin(peer, f"/client-metrics/features/{name}/raw")["data"] for name in COUNTED}
    return {name: sum(int(row["yes"]) for row in found) for name, found in rows.items()}


def test_our_proxy_is_known_to_its_upstream(peers: dict[str, Peer]) -> None:
    """Its look-ups are counted there, yes and no apart, and it is an application with the built-in strategies.

    This comes before odd counts: a real server loses what it stores together with a report that its database refuses.
    """
    upstream, proxy = peers[REAL[0]], peers[OUR_PROXY]
    headers = {"Authorization": proxy.key(PROXY)}
    flag = f"/projects/default/features/{LOOKED_UP}/environments/development"
    some = {"contextName": "userId", "operator": "IN", "values": ["1", "3"]}
    admin(upstream, f"{flag}/strategies", {"name": "default", "constraints": [some]})
    admin(upstream, f"{flag}/on", {})
    wait_until(lambda: LOOKED_UP in processes.ask(f"{proxy.root}/proxy?userId=1", headers=headers).text, 30)
    for user in ("1", "3", "4"):
        body = {"toggles": [LOOKED_UP], "context": {"userId": user}}
        assert processes.ask(f"{proxy.root}/proxy", method="POST", headers=headers, body=body).status == 200

    def counts() -> set[tuple[int, int]]:
        rows = admin(upstream, f"/client-metrics/features/{LOOKED_UP}/raw")["data"]
        return {(row["yes"], row["no"]) for row in rows if row["appName"] == "proxy-under-test" and row["yes"]}

    wait_until(lambda: counts() == {(2, 1)}, 60, lambda: f"counted {counts()}")

    def strategies() -> set[str]:
        listed = admin(upstream, "/metrics/applications")["applications"]
        return {name for row in listed if row["appName"] == "proxy-under-test" for name in row["strategies"]}

    built_in = {"default", "flexibleRollout", "userWithId", "remoteAddress"}
    wait_until(lambda: strategies() >= built_in, 60, lambda: f"listed {strategies()}")


def test_counts_are_those_of_the_real_servers(peers: dict[str, Peer]) -> None:
    """Whatever stands for a number counts the same. What our proxy counts of its callers, its upstream takes from it.

    This comes before the odd reports, for the same reason.
    """
    named = [OUR_SERVER, *REAL]
    wait_until(lambda: set(COUNTED) <= served(peers[OUR_PROXY]), 30)
    toggles = {name: {**SAMPLE, "no": 1, "yes": value} for name, (value, _) in COUNTED.items()}
    body = {"appName": "shop", "bucket": {"start": START, "stop": int(time.time() * 1000), "toggles": toggles}}
    for name in named:
        assert send(peers[name], body) == 202
    wanted = {name: number for name, (_, number) in COUNTED.items()}
    for name in named:
        wait_until(lambda name=name: counted(peers[name]) == wanted, 60, lambda name=name: f"{name}: {counted(peers[name])}")  # type: ignore[misc]
    few = {name: counts for name, counts in toggles.items() if name != "the-largest"}
    body["bucket"] = {"start": 5, "stop": str(int(time.time())), "toggles": {**few, "a-number": None}}
    assert send(peers[OUR_PROXY], body) == 202
    doubled = {name: number * (2 if name in few and name != "a-number" else 1) for name, number in wanted.items()}
    wait_until(lambda: counted(peers[REAL[0]]) == doubled, 60)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_what_a_peer_takes_is_taken(peers: dict[str, Peer], every: bool, record_property: Callable[[str, object], None]) -> None:
    """Statuses are alike: taken if one of the peers takes it. What differs on purpose is a row of the table.

    With each report that has one odd value, and many that have two, each row changes something.
    """
    cases = [*single(), *doubled(SEED, PAIRS)] if every else sample(SEED, CASES)
    compared = Comparison(cases, ask_all(peers, cases))
    record_property("summary", "; ".join(compared.lines()))
    assert compared.compared > 3 * len(cases)
    assert list(map(str, compared.differences)) == []
    assert not every or set(compared.excluded) == {row.name for row in EXCLUSIONS}


def send(peer: Peer, body: object) -> int:
    """Send a report as a server-side application does, and return the status."""
    path = CLIENT + METRICS
    headers = {"Authorization": peer.key(path)}
    return processes.ask(peer.root + path, method="POST", body=body, headers=headers).status


def served(peer: Peer) -> set[str]:
    """Return the names of the flags that a proxy has."""
    answer = processes.ask(f"{peer.root}{CLIENT}/features", headers={"Authorization": peer.key(CLIENT)})
    return {flag["name"] for flag in answer.json()["features"]} if answer.status == 200 else set()
