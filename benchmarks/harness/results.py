"""What was measured, as it is kept, written and read again."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

OURS, REFERENCE, EDGE_ONE, EDGE, EMPTY = "ours", "reference", "Edge, one thread", "Edge", "ours, no flags"
ONE_WORKER, TWO_WORKERS, TWO_PROCESSES = "ours, one worker", "ours, two workers", "ours, two processes"
ONE_ENVIRONMENT, TEN_ENVIRONMENTS = "ours, one environment", "ours, ten environments"
PROXY_API, FRONTEND_API = "ours, /proxy with the feature state", "ours, /api/frontend"
EQUAL = "ours, the peers' shape"
"""Ours with the state of a flag repeated in its variant, as the reference and Edge send it."""
NO_CLASSES = "ours, without classes of contexts"
NGINX = "nginx, a file of the same bytes"
"""What sends a file that is as long as an answer, and evaluates nothing."""
EMPTY_ASGI, MOUNTED = "an empty ASGI application", "ours, mounted"
REPEATED = 8
"""How many users take turns where the answer cache is to answer."""
CLOSE = 0.10
"""How much dearer the second cheapest round of a cell may be before its cheapest is not believed."""


@dataclass
class Cell:
    """The CPU cost of one kind of request on one server; a figure for each round.

    `cpu` is in microseconds a request, `rates` in requests a second, `answer` the bytes of an answer with its head, `encoded` the
    share of answers that were compressed, `cached` the share taken from our cache of answers, `users` how many different requests
    took turns, 0 where every request was for another user.
    """

    part: str
    server: str
    flags: int
    form: str
    encoding: str
    status: int
    users: int
    answer: float = 0.0
    encoded: float = 0.0
    cached: float | None = None
    cpu: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    @property
    def us(self) -> float:
        """The cheapest of the rounds, of every server alike.

        The same work takes longer where a neighbour has the other half of the core, the cache or the clock, and never less: what
        disturbs a round only adds. A median of few rounds is disturbed wherever half of them are; the least only where all are.
        Servers that are compared have equally many rounds. A lucky round is told by `spread`.
        """
        return min(self.cpu)

    @property
    def rate(self) -> float:
        """The median of the rounds: what the machine let through, disturbed or not."""
        return statistics.median(self.rates)

    @property
    def spread(self) -> float:
        """How much dearer the second cheapest round was than the cheapest, as a share of it; infinite after a single round."""
        lowest = sorted(self.cpu)[:2]
        return lowest[1] / lowest[0] - 1 if len(lowest) > 1 else math.inf

    @property
    def steady(self) -> bool:
        """Whether a second round confirms the cheapest."""
        return self.spread <= CLOSE

    @property
    def range(self) -> float:
        """How much dearer the dearest round was than the cheapest, as a share of it."""
        return max(self.cpu) / self.us - 1


@dataclass
class Latency:
    """The latencies of one server under a fixed rate, in microseconds by percentile."""

    part: str
    server: str
    flags: int
    rate: float
    percentiles: dict[str, float]


@dataclass
class Footprint:
    """The memory of a server in megabytes, and how many requests it had answered by then, none when it was just ready."""

    server: str
    flags: int
    when: str
    rss: float
    pss: float


@dataclass
class Results:
    """Everything from one run."""

    about: dict[str, Any] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    memory: list[Footprint] = field(default_factory=list)
    starts: dict[str, list[float]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    engine: dict[str, dict[str, dict[str, float]] | None] = field(default_factory=dict)
    """Microseconds of the engine alone, by form, size and operation; kept in a file of its own."""

    def find(self, part: str, server: str, **like: Any) -> Cell | None:
        """Return the cell of a part and a server whose fields are so, None where it was not measured."""
        return next((cell for cell in self.cells if alike(cell, {"part": part, "server": server, **like})), None)

    def all(self, part: str, **like: Any) -> list[Cell]:
        """Return the cells of a part whose fields are so."""
        return [cell for cell in self.cells if alike(cell, {"part": part, **like})]

    def servers(self) -> list[str]:
        """Return the servers of the matrix in the order in which they were measured."""
        return list(dict.fromkeys(cell.server for cell in self.cells if cell.part == "matrix"))

    def sizes(self) -> list[int]:
        """Return the sizes of the matrix."""
        return sorted({cell.flags for cell in self.cells if cell.part == "matrix"})


def alike(cell: Cell, like: dict[str, Any]) -> bool:
    """Return whether a cell has these fields."""
    return all(getattr(cell, name) == value for name, value in like.items())


def write(results: Results, path: Path) -> None:
    """Write everything as JSON, but the engine's figures."""
    raw = asdict(results)
    del raw["engine"]
    path.write_text(json.dumps(raw, indent=1) + "\n")


def read(path: Path) -> Results:
    """Return what `write` wrote."""
    raw = json.loads(path.read_text())
    return Results(
        about=raw["about"],
        cells=[Cell(**cell) for cell in raw["cells"]],
        latencies=[Latency(**each) for each in raw["latencies"]],
        memory=[Footprint(**each) for each in raw["memory"]],
        starts=raw["starts"],
        left_out=raw["left_out"],
        failed=raw["failed"],
    )
