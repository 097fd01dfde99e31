"""Shared by the tests of the benchmark: a scripted server, the load generator, and invented results."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness import load
from harness.results import (
    EDGE_ONE,
    EMPTY,
    EQUAL,
    NO_CLASSES,
    ONE_WORKER,
    OURS,
    REFERENCE,
    REPEATED,
    TWO_PROCESSES,
    TWO_WORKERS,
    Cell,
    Footprint,
    Latency,
    Results,
)
from support import needs

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@dataclass
class Loopback:
    """A server on a free port. `seen` has the requests of each connection, which ends after `idle` seconds without a request."""

    reply: Callable[[bytes], bytes]
    piece: int
    idle: float | None = None
    port: int = 0
    seen: list[list[bytes]] = field(default_factory=list)

    @property
    def requests(self) -> list[bytes]:
        return [request for each in self.seen for request in each]


@contextlib.contextmanager
def loopback(reply: Callable[[bytes], bytes], *, piece: int = 1 << 20, idle: float | None = None) -> Iterator[Loopback]:
    """Serve until the block ends, in pieces of so many bytes; an empty reply closes the connection."""
    server = Loopback(reply, piece, idle)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server.port = listening.getsockname()[1]
        thread = threading.Thread(target=accept, args=(listening, server))
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def accept(listening: socket.socket, server: Loopback) -> None:
    """Serve every connection in a thread of its own, until nothing more is accepted and all have ended."""
    threads = []
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listening.accept()
            server.seen.append([])
            threads.append(threading.Thread(target=serve, args=(connection, server, server.seen[-1])))
            threads[-1].start()
    for thread in threads:
        thread.join()


def serve(connection: socket.socket, server: Loopback, seen: list[bytes]) -> None:
    """Answer the requests of a connection, one after the other; they have no bodies."""
    with connection, contextlib.suppress(ConnectionError, TimeoutError):
        connection.settimeout(server.idle)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        rest = b""
        while data := connection.recv(65536):
            rest += data
            while b"\r\n\r\n" in rest:
                request, _, rest = rest.partition(b"\r\n\r\n")
                seen.append(request)
                answer = server.reply(request)
                if not answer:
                    return
                for at in range(0, len(answer), server.piece):
                    connection.sendall(answer[at : at + server.piece])


def generator() -> Path:
    """Return the load generator. Skips the test if it cannot be compiled."""
    found = load.build()
    return found if isinstance(found, Path) else needs.missing(found)


def fire(server: Loopback, file: Path, plan: load.Plan, *expected: int) -> load.LoadResult:
    return load.run_load(generator(), server.port, os.getpid(), file, plan, frozenset(expected or {200}))


def cell(server: str, cpu: float, flags: int = 10, part: str = "matrix", **more: object) -> Cell:
    """Return a cell whose cheapest round has this cost, the others 5 and 20 % more."""
    fields = {"form": "GET list", "encoding": "identity", "status": 200, "users": 100, "answer": 900.0, **more}
    rounds = [cpu * 1.2, cpu, cpu * 1.05]
    return Cell(part, server, flags, **fields, cpu=rounds, rates=[1e6 / each for each in rounds])  # type: ignore[arg-type]


def percentiles(scale: float) -> dict[str, float]:
    return {name: scale * at for at, name in enumerate(("50", "75", "90", "95", "99", "99.5", "99.9", "99.99", "100"), 1)}


def sample() -> Results:
    """Return results in which some goals are met, some not, and some not measured."""
    versions = {"Python": "3.11.7", "flagsvc": "0.1.0, compiled", "Unleash Edge": "20.1.0"}
    machine = {"processor": "some processor", "cores": 2}
    found = Results(about={"date": "2026-11-21 10:00 UTC", "commit": "abc", "machine": machine, "versions": versions})
    found.cells += [
        cell(OURS, 10),
        cell(EQUAL, 11, answer=1100.0),
        cell(REFERENCE, 200),
        cell(EDGE_ONE, 50),
        cell(OURS, 20, 1000),
        cell(EQUAL, 25, 1000),
        cell(REFERENCE, 1000, 1000),
    ]
    found.cells += [cell(OURS, 11, status=304), cell(EMPTY, 10, part="floor")]
    for flags, cost in ((10, 12.8), (100, 15.5), (350, 16.0)):
        found.cells += [cell(OURS, cost, flags, "limit", users=0), cell(OURS, 10, flags, "limit", users=REPEATED)]
        found.cells += [cell(NO_CLASSES, 2 * cost, flags, "limit", users=0)]
    forms = {"GET list": 10.0, "metrics post": 40.0, "health check": 10.0, "mixed": 11.5}
    found.cells += [cell(OURS, cost, part="mixed", form=form) for form, cost in forms.items()]
    found.cells += [cell(OURS, 9, 100, "users", users=1), cell(OURS, 12, 100, "users", users=1000)]
    found.cells += [cell(ONE_WORKER, 10, 100, "workers"), cell(TWO_WORKERS, 12, 100, "workers")]
    found.cells += [cell(TWO_PROCESSES, 11.5, 100, "workers")]
    found.latencies += [Latency("refresh, at rest", OURS, 5000, 500, percentiles(100))]
    found.latencies += [Latency("refresh, one flag a second", OURS, 5000, 500, percentiles(200))]
    found.latencies += [Latency("latency", OURS, 100, 200, percentiles(50))]
    found.memory += [Footprint(OURS, 1000, "ready", 31.0, 28.0), Footprint(OURS, 1000, "after the matrix", 42.0, 40.0)]
    found.starts[OURS] = [0.3, 0.31, 0.6]
    found.left_out.append("Edge: Rust (cargo) is not installed")
    return found
