"""The load generator: compiled when first needed, run against one server, its figures beside what the server used meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import procs

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "benchmarks" / "load" / "load.c"
BINARY = ROOT / ".cache" / "load" / "load"


class BenchError(Exception):
    """A measurement that cannot count: wrong answers, or broken ones."""


def build(source: Path = SOURCE, binary: Path = BINARY) -> Path | str:
    """Return the compiled program, built again if its source is newer; or the reason why it cannot be built."""
    if binary.is_file() and binary.stat().st_mtime >= source.stat().st_mtime:
        return binary
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return "no C compiler (cc) is installed, which the load generator needs"
    binary.parent.mkdir(parents=True, exist_ok=True)
    fresh = binary.with_name(f"{binary.name}-{os.getpid()}")  # another process may be building or running the old one
    done = subprocess.run([compiler, "-O2", "-o", fresh, source], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"the load generator does not compile: {done.stderr.strip()[:500]}"
    return fresh.replace(binary)


class DisagreementError(BenchError):
    """Servers that give different answers for the same users cannot be compared."""


@dataclass(frozen=True)
class Plan:
    """How to ask: `rate` requests a second, 0 for as many as are answered; `learn` seconds to learn entity tags in, or None.

    With `fresh` every request is for another user, numbered from there on.
    """

    seconds: float = 0.5
    connections: int = 32
    warm: float = 0.1
    rate: float = 0.0
    learn: float | None = None
    offset: int = 0
    fresh: int | None = None
    count: int = 0

    def arguments(self) -> list[str]:
        """Return the options of the program."""
        pairs: dict[str, float | None] = {
            "--connections": self.connections, "--offset": self.offset, "--warm": self.warm, "--rate": self.rate,
            "--learn": self.learn, "--fresh": self.fresh, "--count": self.count, "--seconds": self.seconds,
        }  # fmt: skip
        return [text for name, value in pairs.items() if value is not None for text in (name, str(value))]


@dataclass(frozen=True)
class LoadResult:
    """What one run of the load generator gave.

    `cpu_us` is the server's CPU time for a request in microseconds; latencies are microseconds by percentile and class.
    """

    requests: int
    seconds: float
    cpu_us: float
    bytes: int
    encoded: int
    statuses: dict[str, int]
    latency: dict[str, dict[str, float]]
    prepared: int
    used: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


def run_load(
    binary: Path,
    port: int,
    pid: int,
    file: Path,
    plan: Plan,
    expected: frozenset[int],
    second: tuple[int, int] | None = None,
) -> LoadResult:
    """Run the load generator once; raise BenchError where an answer is broken or has another status.

    With the port and process of a `second` server every other connection is with that one; both pay for the requests.
    """
    command = [str(binary), "--port", str(port), "--file", str(file), *plan.arguments()]
    command += ["--second", str(second[0])] if second else []
    pids = [pid, second[1]] if second else [pid]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout
    with process:
        ready = process.stdout.readline()
        before = sum(map(procs.cpu_seconds, pids))
        output, errors = process.communicate("go\n" if ready else None)
        used = sum(map(procs.cpu_seconds, pids)) - before
    if process.returncode or ready != "ready\n":
        raise BenchError(errors.strip() or f"the load generator ended with {process.returncode}")
    return judged(json.loads(output), used, expected)


def judged(result: dict[str, Any], used: float, expected: frozenset[int]) -> LoadResult:
    """Return the figures of a run in which every answer was whole and as expected."""
    if result["broken"] or result["closed"]:
        raise BenchError(f"{result['broken']} answers were broken, {result['closed']} connections were closed")
    wrong = {status: number for status, number in result["statuses"].items() if int(status) not in expected}
    if wrong or not result["requests"]:
        raise BenchError(f"of {result['requests']} answers some had another status: {wrong}")
    return LoadResult(
        requests=result["requests"],
        seconds=result["seconds"],
        cpu_us=used / result["requests"] * 1e6,
        bytes=result["bytes"],
        encoded=result["encoded"],
        statuses=result["statuses"],
        latency=result["latency"],
        prepared=result["prepared"],
        used=used,
    )
