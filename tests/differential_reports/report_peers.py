"""Those that take reports: two real servers and the reference, and both programs of ours."""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

import psycopg
from report_cases import Case

from support import processes
from support.flagservers import BACKEND_SECRET, FRONTEND_SECRET, our_flag_server

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
