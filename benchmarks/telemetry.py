"""What OpenTelemetry costs a request, and what a collector does that is away, slow or refuses.

`python benchmarks/telemetry.py [--minutes 10] [--flags 350]` runs a proxy for each row, all beside each other. By turns each proxy
gets as many requests as it answers (CPU), then requests at a fixed rate (latency). It prints the medians.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("src", "tests", "benchmarks")]

from harness import load, prepared, procs, servers  # noqa: E402
from harness.load import Plan  # noqa: E402
from support.http_servers import Reply, Request, http_server  # noqa: E402
from support.processes import free_port  # noqa: E402

RATE = 1000.0
USERS = 20_000
SLOW_S = 30.0
READINGS = {"OTEL_METRIC_EXPORT_INTERVAL": "5000"}
"""Twelve readings of the metrics a minute, where the default is one."""
HEAD = (
    "| OpenTelemetry | CPU of a request, µs | beside `none` | median, ms | p99, ms | MB after a third | MB at the end | dropped |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|"
)


class Row(NamedTuple):
    """One proxy: the share of requests that is traced, and what its collector does. None: no traces; empty: no collector."""

    name: str
    ratio: float | None
    collector: str


ROWS = (
    Row("none", None, ""),
    Row("metrics", None, "takes"),
    Row("traces of 0 %", 0.0, "takes"),
    Row("traces of 1 %", 0.01, "takes"),
    Row("traces of 100 %", 1.0, "takes"),
    Row("1 %, the collector is away", 0.01, "is away"),
    Row("1 %, the collector is slow", 0.01, "is slow"),
    Row("1 %, the collector refuses", 0.01, "refuses"),
)


class Seen:
    """What was measured of a proxy, a number for each turn."""

    def __init__(self, server: servers.Server) -> None:
        self.server = server
        self.cpu_us: list[float] = []
        self.median_ms: list[float] = []
        self.p99_ms: list[float] = []
        self.memory_mb: list[float] = []

    def dropped(self) -> str:
        """Return what the collector did not get, by signal, as the proxy counts it."""
        text = self.server.ask(1, "/proxy/internal-backstage/prometheus").text
        found = re.findall(r'^flagsvc_telemetry_dropped_total\{signal="(\w+)"\} (\S+)', text, re.MULTILINE)
        return ", ".join(f"{float(number):.0f} {signal}" for signal, number in found)


def taken(request: Request) -> Reply:
    return Reply(200, b"", {"Content-Type": "application/x-protobuf"})


def refused(request: Request) -> Reply:
    return Reply(503)


class SlowCollector:
    """A collector that keeps each caller waiting for SLOW_S seconds."""

    def __init__(self) -> None:
        self._over = threading.Event()

    def answer(self, request: Request) -> Reply:
        self._over.wait(SLOW_S)
        return taken(request)

    def close(self) -> None:
        """Answer all who wait."""
        self._over.set()


def variables(row: Row, collectors: dict[str, str]) -> dict[str, str]:
    """Return the environment variables of a row's proxy."""
    if not row.collector:
        return {}
    url = collectors.get(row.collector, f"http://127.0.0.1:{free_port()}")
    traces = {"OTEL_TRACES_EXPORTER": "none"} if row.ratio is None else {"OTEL_TRACES_SAMPLER": "traceidratio"}
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_TRACES_SAMPLER_ARG": str(row.ratio or 0), **READINGS, **traces}


def one_turn(seen: Seen, binary: Path, requests: Path) -> None:
    """Load a proxy, and keep what was measured."""
    server = seen.server
    for plan in (Plan(seconds=1.5), Plan(seconds=3.0, rate=RATE)):
        result = load.run_load(binary, server.port, server.pid, requests, plan, frozenset({200}))
        if plan.rate:
            latency = result.latency[str(prepared.EVALUATION)]
            seen.median_ms.append(latency["50"] / 1000)
            seen.p99_ms.append(latency["99"] / 1000)
        else:
            seen.cpu_us.append(result.cpu_us)
    seen.memory_mb.append(procs.memory(server.pid).rss)


def measure(minutes: float, flags: int) -> None:
    """Print a row for each proxy."""
    binary = load.build()
    if isinstance(binary, str):
        raise SystemExit(binary)
    with ExitStack() as stack:
        slow = stack.enter_context(closing(SlowCollector()))
        answers = {"takes": taken, "is slow": slow.answer, "refuses": refused}
        collectors = {name: stack.enter_context(http_server(answer)) for name, answer in answers.items()}
        upstream = f"{stack.enter_context(servers.upstream())}/{flags}"
        found = [Seen(stack.enter_context(servers.ours(**variables(row, collectors))(upstream))) for row in ROWS]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        requests = prepared.write(folder / "requests", prepared.LIST, servers.FAMILY, prepared.GZIP, USERS, [])
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            for seen in found:
                one_turn(seen, binary, requests)
        print(HEAD)
        base = statistics.median(found[0].cpu_us)
        for row, seen in zip(ROWS, found, strict=True):
            cpu, memory = statistics.median(seen.cpu_us), seen.memory_mb
            times = f"{statistics.median(seen.median_ms):.2f} | {statistics.median(seen.p99_ms):.2f}"
            sizes = f"{memory[len(memory) // 3]:.1f} | {memory[-1]:.1f}"
            print(f"| {row.name} | {cpu:.1f} | {cpu / base - 1:+.1%} | {times} | {sizes} | {seen.dropped()} |", flush=True)


def main() -> int:
    """Read the options, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long all of it takes")
    parser.add_argument("--flags", type=int, default=350)
    args = parser.parse_args()
    measure(args.minutes, args.flags)
    return 0


if __name__ == "__main__":
    sys.exit(main())
