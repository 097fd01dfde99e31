"""What pages cost: those who ask for flags while a page is open, the event loop, the first visit, long lists, and memory.

`python benchmarks/pages.py [--parts load,turns,first,list,memory] [--flags 1000] [--listed 5000] [--rounds 5] [--seconds 6] [--rate
4000]` prints a table for each part. For `load`, rounds with and without an open page take turns. A person with an open page has
its stream, gets it again every second, and tries a context every second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import re
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("src", "tests", "benchmarks")]

import documents  # noqa: E402
import refresh  # noqa: E402
from harness import load, prepared, procs, servers  # noqa: E402
from support.desk_scene import DeskScene  # noqa: E402
from support.flagservers import USER_SECRET, our_flag_server  # noqa: E402
from support.processes import Answer, ask, free_port, scratch  # noqa: E402
from support.waiting import threads  # noqa: E402

PATHS = ("/ui/status", "/ui/traffic", "/ui/flags", "/ui/changes", "/ui/config")
TRY = "/ui/try"
TRIED = {"field.userId": "7", "field.appName": "web"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
FILE = re.compile(r'(?:href|src)="([^"#]*/static/[^"#]*)"')
"""A file that a page loads at once."""
USERS = 5_000
READS = 30
VISITS = 5
STATUSES = frozenset({200})
SETTLE_S = 3.0
"""Seconds between the start and the measurement of memory: what the start has left to do."""


class Person:
    """Somebody with an open page of a proxy, whose address for operators has this port."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.fetched = self.tried = self.events = 0
        self._ended = threading.Event()
        self._stream: socket.socket | None = None
        self._failed: list[Exception] = []

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look at the pages until the block ends. Raises BenchError if they fail."""
        self._ended.clear()
        with threads(*(partial(self._guarded, each) for each in (self._fetch, self._listen)), stop=self._leave):
            yield
        if self._failed:
            raise load.BenchError(f"a page failed: {self._failed[0]!r}")

    def visit(self) -> None:
        """See every page once, and try a context."""
        for path in PATHS:
            self._ask("GET", path)
        self._ask("POST", TRY, urlencode(TRIED).encode())

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do some work, and keep its error for the thread that waits."""
        try:
            work()
        except Exception as error:
            self._failed.append(error)

    def _fetch(self) -> None:
        while not self._ended.wait(1.0):
            self._ask("GET", PATHS[self.fetched % 2])
            self.fetched += 1
            self._ask("POST", TRY, urlencode(TRIED).encode())
            self.tried += 1

    def _listen(self) -> None:
        self._stream = socket.create_connection(("127.0.0.1", self.port))
        self._stream.sendall(f"GET /ui/stream HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        with self._stream, self._stream.makefile("rb") as lines:
            status = lines.readline().split(b" ")[1]
            if status != b"200":
                raise load.BenchError(f"the stream answers {status.decode()}")
            for line in lines:
                self.events += line.startswith(b"event:")

    def _leave(self) -> None:
        self._ended.set()
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.shutdown(socket.SHUT_RDWR)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> None:
        answer = ask(f"http://127.0.0.1:{self.port}{path}", method=method, headers=FORM if body else {}, body=body)
        if answer.status != 200:
            raise load.BenchError(f"{method} {path} answers {answer.status}")


def measure_load(args: argparse.Namespace) -> None:
    """Print what `GET /proxy` costs in each round, and the medians, without a page and with one."""
    binary = load.build()
    if isinstance(binary, str):
        raise load.BenchError(binary)
    port = free_port()
    start = servers.ours("ours", FLAGSVC_ADMIN_ADDRESS=f"127.0.0.1:{port}")
    plan = load.Plan(seconds=args.seconds, rate=args.rate, warm=1.0, fresh=0)
    figures: dict[str, list[tuple[float, float, float]]] = {"no page open": [], "a page open": []}
    print(f"\nGET /proxy of {args.flags:,} flags, {args.rate:,.0f} requests a second:\n")
    print("| round | CPU for a request, µs | p50, µs | p99, µs |\n|---|--:|--:|--:|")
    with scratch() as folder, servers.upstream() as upstream, start(f"{upstream}/{args.flags}") as server:
        file = prepared.write(folder / "list", prepared.LIST, server.routes, prepared.IDENTITY, USERS, [])
        person = Person(port)
        person.visit()
        for number in range(2 * args.rounds):
            title = list(figures)[number % 2]
            with person.looking() if number % 2 else contextlib.nullcontext():
                shot = load.run_load(binary, server.port, server.pid, file, plan, STATUSES)
            latency = next(iter(shot.latency.values()))
            figures[title].append((shot.cpu_us, latency["50"], latency["99"]))
            print(row(title, *figures[title][-1]), flush=True)
    for title, rounds in figures.items():
        print(row(f"**median, {title}**", *map(statistics.median, zip(*rounds, strict=True))))
    print(f"\n{person.fetched} pages fetched, {person.tried} contexts tried, {person.events} events read")


def row(title: str, *figures: float) -> str:
    """Return a row of a table."""
    return f"| {title} | " + " | ".join(f"{each:,.1f}" for each in figures) + " |"


def measure_turns(args: argparse.Namespace) -> None:
    """Print how long each page of the proxy holds up the event loop, in processor time."""
    print(f"\nPages of a proxy with {args.flags:,} flags, the longest of {VISITS} visits:\n")
    print("| page | longest turn of the loop, ms | all turns, ms |\n|---|--:|--:|")
    asyncio.run(print_turns(args.flags))


async def print_turns(flags: int) -> None:
    """Print a row for each page."""
    document = documents.document(flags)
    desk = DeskScene(document=document)
    name = document["features"][flags // 2]["name"]
    for path in (*PATHS, f"/ui/flags/{name}", TRY):
        visits = [await visited(desk.ask(path)) for _ in range(VISITS)]
        print_visits(f"`GET {path}`", visits)
    tried = [await visited(desk.ask(TRY, "POST", TRIED, sec_fetch_site="same-origin")) for _ in range(VISITS)]
    print_visits(f"`POST {TRY}`", tried)


def print_visits(title: str, visits: list[list[float]]) -> None:
    """Print the longest turn of all visits, and the time of the longest visit."""
    print(f"| {title} | {max(map(max, visits)):.2f} | {max(map(sum, visits)):.1f} |", flush=True)


async def visited(answer: Any) -> list[float]:
    """Return the milliseconds of processor time of every turn of the loop until a page is answered with 200."""
    found, turns = await refresh.watched(answer)
    if found.status != 200:
        raise load.BenchError(f"a page answers {found.status}")
    return turns


def measure_first(args: argparse.Namespace) -> None:
    """Print the requests and bytes of a first visit, without its stream, with gzip and with the heads of the answers."""
    print("\n| first page | requests | of which the page, bytes | all, bytes |\n|---|--:|--:|--:|")
    port = free_port()
    start = servers.ours("ours", FLAGSVC_ADMIN_ADDRESS=f"127.0.0.1:{port}")
    with servers.upstream() as upstream, start(f"{upstream}/{args.flags}"):
        print_visit("proxy, status", f"http://127.0.0.1:{port}/ui/status")
    with our_flag_server(given=stored(20)) as server:
        print_visit("flag server, list of 20 flags", f"{server.root}/ui/flags")


def print_visit(title: str, url: str) -> None:
    """Print what a page and its files take."""
    page = fetch(url)
    files = sorted({urljoin(url, each) for each in FILE.findall(gzip.decompress(page.body).decode())})
    sizes = [size(page), *(size(fetch(each)) for each in files)]
    print(f"| {title} | {len(sizes)} | {sizes[0]:,} | {sum(sizes):,} |", flush=True)


def fetch(url: str) -> Answer:
    """Return an answer in gzip where the server gives one. It must be a 200."""
    answer = ask(url, headers={"Accept-Encoding": "gzip", "Authorization": USER_SECRET})
    if answer.status != 200:
        raise load.BenchError(f"{urlsplit(url).path} answers {answer.status}")
    return answer


def size(answer: Answer) -> int:
    """Return the bytes of an answer with its head."""
    head = sum(len(name) + len(value) + 4 for name, value in answer.headers.items())
    return len("HTTP/1.1 200 OK\r\n\r\n") + head + len(answer.body)


def stored(flags: int, environments: int = 1) -> dict[str, Any]:
    """Return a state of the flag server with so many flags, on in every other environment, with a strategy in each."""
    names = [f"team-{number % 17}.feature-{number:05d}" for number in range(flags)]
    places = ["production", *(f"place-{number:02d}" for number in range(1, environments))]
    parameters = {"rollout": "25", "stickiness": "userId", "groupId": "group"}
    countries = {"contextName": "country", "operator": "IN", "values": ["NL", "BE", "LU"]}
    strategy = {"name": "flexibleRollout", "parameters": parameters, "constraints": [countries]}
    return {
        "environments": [{"name": each, "type": "test"} for each in places[1:]],
        "projects": [{"id": "default", "environments": ["development", *places]}],
        "features": [
            {"name": name, "description": "a flag of the benchmark", "enabled": places[at % 2 :: 2]}
            for at, name in enumerate(names)
        ],
        "strategies": [strategy | {"feature": name, "environment": each} for name in names for each in places],
    }


def measure_list(args: argparse.Namespace) -> None:
    """Print how long the list of a large flag server takes: until the answer is there, and of processor time."""
    searches = ("/ui/flags?q=feature-04", "/ui/flags?q=type:release+unused:30", "/ui/flags?sort=lastSeenAt")
    print_reads(args.listed, 1, ("/ui/flags", *searches, "/ui/flags?page=20", "/ui/flags.json", "/ui/compare", "/ui/projects"))
    print_reads(300, 20, ("/ui/flags", "/ui/flags.json"))


def print_reads(flags: int, environments: int, paths: tuple[str, ...]) -> None:
    """Print how long pages take with so many flags and environments."""
    print(f"\n{flags:,} flags and {environments} environments on the server, {READS} reads each:\n")
    print("| page | median, ms | longest, ms | CPU, ms |\n|---|--:|--:|--:|")
    with our_flag_server(given=stored(flags, environments)) as server:
        for path in paths:
            fetch(server.root + path)
            pid = server.program.process.pid
            before, taken = procs.cpu_seconds(pid), []
            for _ in range(READS):
                begun = time.perf_counter()
                fetch(server.root + path)
                taken.append(1000 * (time.perf_counter() - begun))
            used = 1000 * (procs.cpu_seconds(pid) - before) / READS
            print(row(f"`{path}`", statistics.median(taken), max(taken), used), flush=True)


def measure_memory(args: argparse.Namespace) -> None:
    """Print the memory of a proxy without pages, with pages that were not opened, and after each page was seen."""
    print(f"\nA proxy with {args.flags:,} flags:\n\n| pages | RSS, MB | PSS, MB |\n|---|--:|--:|")
    with servers.upstream() as upstream:
        for title, env in (
            ("no address for operators", {}),
            ("off", {"FLAGSVC_ADMIN_PAGES": "false"}),
            ("not seen", {"FLAGSVC_ADMIN_PAGES": "true"}),
            ("each seen", {"FLAGSVC_ADMIN_PAGES": "true"}),
        ):
            port = free_port()
            address = {"FLAGSVC_ADMIN_ADDRESS": f"127.0.0.1:{port}"} if env else {}
            with servers.ours("ours", **address, **env)(f"{upstream}/{args.flags}") as server:
                if title == "each seen":
                    Person(port).visit()
                time.sleep(SETTLE_S)
                memory = procs.memory(server.pid)
            print(row(title, memory.rss, memory.pss), flush=True)


PARTS = {
    "load": measure_load,
    "turns": measure_turns,
    "first": measure_first,
    "list": measure_list,
    "memory": measure_memory,
}


def main() -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to measure, with commas between")
    parser.add_argument("--flags", type=int, default=1000, help="flags of the proxy")
    parser.add_argument("--listed", type=int, default=5000, help="flags of the flag server")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="seconds of a round")
    parser.add_argument("--rate", type=float, default=4000.0, help="requests a second")
    args = parser.parse_args()
    for part in args.parts.split(","):
        PARTS[part](args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
