"""What batch imports and the document for clients cost: our flag server beside the real one.

`python benchmarks/flag_server.py [--sizes 10,1000,5000] [--repeat 3] [--json FILE]`: each size has three strategies a feature. The
real server's body limit is fixed; where a data set is over it, it is imported in parts and its cell says so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.flagservers import BACKEND_SECRET, USER_SECRET, our_flag_server
from support.processes import Program, ask, personal_token, postgresql, unleash_server

LIMIT = 500 * 1024
"""The real server's limit for a body, in bytes."""
OURS_LIMIT = 64_000_000
READS = 30


def feature(number: int) -> str:
    """Return the name of a feature."""
    return f"team-{number % 17}.feature-{number:05d}"


def strategies(name: str, number: int) -> list[dict[str, Any]]:
    """Return the three strategies of a feature."""
    region = {"contextName": "region", "operator": "IN", "values": ["eu", "us"]}
    rollout = {"rollout": str(number % 100), "stickiness": "userId", "groupId": name}
    return [
        {"name": "default", "featureName": name, "constraints": [region]},
        {"name": "flexibleRollout", "featureName": name, "parameters": rollout},
        {"name": "remoteAddress", "featureName": name, "parameters": {"IPs": f"10.0.{number % 250}.1"}},
    ]


def data_set(numbers: range) -> dict[str, Any]:
    """Return a data set of features, each with three strategies and switched on."""
    names = {number: feature(number) for number in numbers}
    return {
        "features": [{"name": name, "description": "a flag of the benchmark"} for name in names.values()],
        "featureStrategies": [each for number, name in names.items() for each in strategies(name, number)],
        "featureEnvironments": [{"name": name, "featureName": name, "enabled": True} for name in names.values()],
        "tagTypes": [],
    }


def request(numbers: range) -> bytes:
    """Return the body that validates and imports a data set."""
    body = {"project": "default", "environment": "development", "data": data_set(numbers)}
    return json.dumps(body, separators=(",", ":")).encode()


def parts(size: int, limit: int) -> list[bytes]:
    """Return the bodies of a data set, as few as the limit allows."""
    count = -(-len(request(range(size))) // limit)
    while True:
        step = -(-size // count)
        bodies = [request(range(at, min(at + step, size))) for at in range(0, size, step)]
        if max(map(len, bodies)) <= limit:
            return bodies
        count += 1


@dataclass
class Subject:
    """A running server: its address, which ends in `/api`, its process, what it takes in one body, and two tokens."""

    name: str
    url: str
    program: Program
    limit: int
    user: str = USER_SECRET
    backend: str = BACKEND_SECRET

    def timed(self, operation: str, body: bytes) -> float:
        """Return the seconds of one request, which must succeed."""
        headers = {"Authorization": self.user, "Content-Type": "application/json"}
        start = time.perf_counter()
        answer = ask(f"{self.url}/admin/features-batch/{operation}", method="POST", headers=headers, body=body, seconds=600)
        taken = time.perf_counter() - start
        if answer.status != 200 or (operation == "validate" and answer.json()["errors"]):
            raise SystemExit(f"{self.name}: {operation} gave {answer.status} {answer.body[:300]!r}")
        return taken

    def read(self, tag: str = "") -> tuple[float, str]:
        """Return the seconds of reading the document for clients, and its entity tag."""
        headers = {"Authorization": self.backend} | ({"If-None-Match": tag} if tag else {})
        start = time.perf_counter()
        answer = ask(f"{self.url}/client/features", headers=headers, seconds=120)
        taken = time.perf_counter() - start
        if answer.status != (304 if tag else 200):
            raise SystemExit(f"{self.name}: the document gave {answer.status}")
        return taken, answer.headers.get("etag", tag)

    def memory(self) -> float:
        """Return the most memory that the process has held, in MB."""
        lines = Path(f"/proc/{self.program.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


@contextlib.contextmanager
def ours(database: str | None, name: str) -> Iterator[Subject]:
    """Run our flag server, on an SQLite file of its own unless a database is given."""
    with our_flag_server("--body-limit", str(OURS_LIMIT), database=database) as server:
        yield Subject(name, server.url, server.program, OURS_LIMIT)


@contextlib.contextmanager
def ours_on_postgresql() -> Iterator[Subject]:
    """Run our flag server on a PostgreSQL of its own."""
    with postgresql() as url, ours(url, "ours, PostgreSQL") as subject:
        yield subject


@contextlib.contextmanager
def real() -> Iterator[Subject]:
    """Run the real flag server on a PostgreSQL of its own."""
    with postgresql() as url, unleash_server(url) as server:
        token = server.admin("/api-tokens", {"tokenName": "bench", "type": "client", "environment": "development"})
        secrets = personal_token(server), token["secret"]
        yield Subject("real server, PostgreSQL", server.url, server.program, LIMIT, *secrets)


@dataclass
class Cell:
    """The figures of one server at one size: seconds, and megabytes at the most."""

    server: str
    size: int
    requests: int
    validate: float
    create: float
    again: float
    read: float
    unchanged: float
    memory: float = field(default=0.0)


def measure(subject: Subject, size: int, repeat: int) -> Cell:
    """Return what one size costs on a server that has no features yet."""
    bodies = parts(size, subject.limit)
    validate = min(sum(subject.timed("validate", body) for body in bodies) for _ in range(repeat))
    create = sum(subject.timed("import", body) for body in bodies)
    again = min(sum(subject.timed("import", body) for body in bodies) for _ in range(repeat))
    _, tag = subject.read()
    read = statistics.median(subject.read()[0] for _ in range(READS))
    unchanged = statistics.median(subject.read(tag)[0] for _ in range(READS))
    return Cell(subject.name, size, len(bodies), validate, create, again, read, unchanged, subject.memory())


HEADS = ("server", "features", "requests", "validate s", "import s", "again s", "200 ms", "304 ms", "MB")


def row(cell: Cell) -> tuple[str, ...]:
    """Return the texts of a cell."""
    seconds = (f"{each:.3f}" for each in (cell.validate, cell.create, cell.again))
    reads = (f"{1000 * each:.2f}" for each in (cell.read, cell.unchanged))
    return (cell.server, f"{cell.size:,}", str(cell.requests), *seconds, *reads, f"{cell.memory:.0f}")


def main() -> int:
    """Measure each server at each size, in a process of its own; print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10,1000,5000", help="numbers of features")
    parser.add_argument("--repeat", type=int, default=3, help="times that a request is repeated; the quickest counts")
    parser.add_argument("--servers", default="sqlite,postgresql,real", help="which servers, of sqlite, postgresql, real")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    kinds = {"sqlite": lambda: ours(None, "ours, SQLite"), "postgresql": ours_on_postgresql, "real": real}
    cells = []
    print(" | ".join(HEADS))
    for size in map(int, options.sizes.split(",")):
        for name in options.servers.split(","):
            with kinds[name]() as subject:
                cells.append(measure(subject, size, options.repeat))
            print(" | ".join(row(cells[-1])), flush=True)
    if options.json:
        options.json.write_text(json.dumps([vars(cell) for cell in cells], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
