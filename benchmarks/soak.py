"""How the proxy holds out: `make soak MINUTES=30`.

One worker gets four fifths of the highest rate that it sustains, for so many minutes, while its upstream works and fails by turns
every few seconds, strangers send what they can think of, metrics are posted and scraped, and a key file is rewritten. No answer may
fail, and its memory may not grow. The page goes to docs/benchmarks/soak.md, that of a shorter run to .cache/bench/. Ends with 1
where something went wrong.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("src", "tests", "benchmarks")]

import documents  # noqa: E402
from harness import hostile, load, machine, prepared, procs, servers  # noqa: E402
from harness.load import BenchError, LoadResult, Plan  # noqa: E402
from harness.prepared import EVALUATION, GZIP, HEALTH, IDENTITY, Form, Headers, Request, Routes  # noqa: E402
from harness.trend import Trend, trend  # noqa: E402
from support.processes import KEY, ask  # noqa: E402

FULL_MINUTES = 30.0
SHARE = 0.8
HOSTILE_SHARE = 0.05
LATE_US = 50_000.0
"""A rate at which one of a hundred answers comes later than this is not sustained."""
SEARCH_S = 4.0
SETTLED = 2 / 3
"""Share of the run after which memory is looked at: before, the answer cache (4 MB) and tables of names fill up to their bounds."""
GROWTH_MB = 1.0
"""What the line through the memory may rise over a run as long as this one."""
JUDGED_MINUTES = 20.0
"""A run that is shorter says nothing about memory: caches are still being filled."""
KEY_S = 15.0
"""Seconds after which a key that was written to the file has to open."""
USERS = 20_000
CONNECTIONS = 32
METRICS, NAMED = 1, 3
SCRAPE = "/proxy/internal-backstage/prometheus"


@dataclass
class Figures:
    """What came out; memory in MB, latencies in microseconds, `usage` look-ups told by callers and taken by the upstream."""

    about: dict[str, Any]
    minutes: float
    flags: int
    flap_s: float
    highest: float = 0.0
    rate: float = 0.0
    requests: int = 0
    hostile: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    latency: dict[str, float] = field(default_factory=dict)
    cpu_us: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    polls: int = 0
    usage_told: int = 0
    usage_taken: int = 0
    keys_written: int = 0
    samples: tuple[int, int] = (0, 0)
    memory: list[tuple[float, float]] = field(default_factory=list)
    slope: float = 0.0
    error: float = 0.0
    failed: list[str] = field(default_factory=list)


def caller(routes: Routes, headers: Headers, at: int, names: list[str]) -> Request:
    """Ask as all kinds of callers do: lists, all flags, some by name, health, and now and then a post of metrics."""
    headers = headers | {"Accept-Encoding": (IDENTITY, GZIP)[at % 2]}
    if at % 20 == 0:
        toggles = {name: {"yes": 1, "no": 1, "variants": {}} for name in names}
        given = {"appName": "web-shop", "instanceId": "b", "bucket": {**hostile.BUCKET, "toggles": toggles}}
        return METRICS, prepared.raw("POST", routes.metrics, headers, prepared.compact(given))
    if at % 100 == 50:
        return HEALTH, prepared.raw("GET", routes.health, headers)
    if at % 10 == 5:
        return NAMED, prepared.post_named(routes, headers, at, names)[1]
    kinds = (prepared.get_list, prepared.post_list, prepared.get_list, prepared.from_browser, prepared.get_all)
    return EVALUATION, kinds[at % len(kinds)](routes, headers, at, names)[1]


class Watcher:
    """Looks at the proxy once a second until told to stop, its memory and how many toggles it knows, and rewrites its key file."""

    EVERY = 20

    def __init__(self, server: servers.Server, keys: Path) -> None:
        self.points: list[tuple[float, float]] = []
        self.toggles: set[int] = set()
        self.written = 0
        self._server = server
        self._keys = keys
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watcher:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        """End."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._over.wait(1):
            self.points.append((time.monotonic() - begun, procs.memory(self._server.pid).rss))
            self.toggles.add(known(self._server))
            if len(self.points) % self.EVERY == 0:
                self.written += 1
                write_keys(self._keys, self.written)


def known(server: servers.Server) -> int:
    """Return how many toggles the proxy knows, 0 where it says nothing."""
    answer = ask(f"http://127.0.0.1:{server.port}{server.routes.all}", headers={"Authorization": KEY})
    return len(answer.json()["toggles"]) if answer.status == 200 else 0


def write_keys(path: Path, number: int) -> None:
    """Write the callers' key and an unused one into the file, atomically."""
    fresh = path.with_suffix(".new")
    fresh.write_text(f"{KEY},{rotated(number)}\n")
    fresh.replace(path)


def rotated(number: int) -> str:
    """Return the key that stands in the file for a while only."""
    return f"rotated-key-{number}"


def check_keys(figures: Figures, server: servers.Server, number: int) -> None:
    """Note where the last key of the file does not open, or the one before still does."""
    figures.keys_written = number
    end = time.monotonic() + KEY_S
    while (opened := [opens(server, each) for each in (number, number - 1)]) != [True, False]:
        if time.monotonic() > end:
            figures.failed.append(f"of the last two keys of the file the newer one opens: {opened[0]}, the older: {opened[1]}")
            return
        time.sleep(0.5)


def opens(server: servers.Server, number: int) -> bool:
    """Return whether a key of the file opens."""
    url = f"http://127.0.0.1:{server.port}{server.routes.enabled}"
    return number >= 0 and ask(url, headers={"Authorization": rotated(number)}).status == 200


def highest(binary: Path, server: servers.Server, good: Path, bad: Path) -> float:
    """Return the highest rate at which answers come in time, in requests a second, while strangers ask as well."""
    plan = Plan(seconds=SEARCH_S, warm=2.0, connections=CONNECTIONS, fresh=0)
    most = load.run_load(binary, server.port, server.pid, good, plan, frozenset({200})).rate
    for share in (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4):
        with ThreadPoolExecutor() as pool:
            callers, strangers = both(pool, binary, server, (good, bad), SEARCH_S, share * most)
            strangers.result()
        if callers.result().latency[str(EVALUATION)]["99"] <= LATE_US:
            return share * most
    raise BenchError("no rate is sustained: is the machine busy with something else?")


def both(
    pool: ThreadPoolExecutor,
    binary: Path,
    server: servers.Server,
    files: tuple[Path, Path],
    seconds: float,
    rate: float,
) -> tuple[Future[LoadResult], Future[LoadResult]]:
    """Have callers ask at a rate, and strangers at their share of it."""
    plans = (
        Plan(seconds=seconds, warm=0, connections=CONNECTIONS, rate=rate, fresh=0),
        Plan(seconds=seconds, warm=0, connections=8, rate=HOSTILE_SHARE * rate),
    )
    expected = (frozenset({200}), hostile.EXPECTED)
    callers, strangers = (
        pool.submit(load.run_load, binary, server.port, server.pid, file, plan, statuses)
        for file, plan, statuses in zip(files, plans, expected, strict=True)
    )
    return callers, strangers


def soak(binary: Path, folder: Path, figures: Figures, rate: float) -> None:
    """Do all of it."""
    keys = folder / "keys"
    write_keys(keys, 0)
    env = {
        "UNLEASH_PROXY_CLIENT_KEYS": "",
        "FLAGSVC_PROXY_CLIENT_KEYS_FILE": str(keys),
        "FLAGSVC_KEY_OVERLAP": "5",
        "FLAGSVC_FETCH_INTERVAL": "500",
        "FLAGSVC_METRICS_INTERVAL": "1000",
        "FLAGSVC_STORAGE": (folder / "state").as_uri(),
    }
    names = [feature["name"] for feature in documents.document(figures.flags)["features"]]
    with servers.flapping(figures.flags) as upstream, servers.ours("ours", **env)(upstream.url) as server:
        good = prepared.write(folder / "good", Form("soak", caller), server.routes, GZIP, USERS, names)
        bad = hostile.write(folder / "bad", server.routes, USERS)
        figures.highest = rate or highest(binary, server, good, bad)
        figures.rate = SHARE * figures.highest
        say(f"{figures.rate:,.0f} requests a second for {figures.minutes:g} minutes")
        before = upstream.settled(sys.maxsize, 4)
        seconds = 60 * figures.minutes
        scraped(server)  # the first one loads what it needs, for good
        upstream.flap(figures.flap_s)
        with Watcher(server, keys) as watcher, ThreadPoolExecutor() as pool:
            callers, strangers = both(pool, binary, server, (good, bad), seconds, figures.rate)
            time.sleep(seconds / 2)
            first = scraped(server)
            collected(figures, callers, strangers, len(prepared.spread(names)))
            figures.samples = (first, scraped(server))
        upstream.flap(0)
        check_keys(figures, server, watcher.written)
        if watcher.toggles != {figures.flags}:
            figures.failed.append(f"of {figures.flags} toggles the proxy knew {sorted(watcher.toggles)}")
        figures.usage_taken = upstream.settled(before + figures.usage_told, 60) - before
        figures.memory = watcher.points
        note_upstream(figures, upstream.seen())


def scraped(server: servers.Server) -> int:
    """Return how many samples a scrape has."""
    answer = ask(f"http://127.0.0.1:{server.port}{SCRAPE}")
    assert answer.status == 200, answer
    return len(re.findall(rb"^[^#\n]", answer.body, re.MULTILINE))


def collected(figures: Figures, good: Future[LoadResult], bad: Future[LoadResult], names: int) -> None:
    """Wait for both loads and keep their results. A run with a failed answer is reported, not raised."""
    for name, future in (("callers", good), ("strangers", bad)):
        try:
            shot = future.result()
        except BenchError as error:
            figures.failed.append(f"{name}: {error}")
            continue
        for status, number in shot.statuses.items():
            figures.statuses[status] = figures.statuses.get(status, 0) + number
        if name == "strangers":
            figures.hostile = shot.requests
            continue
        figures.requests, figures.cpu_us = shot.requests, shot.cpu_us
        figures.latency = shot.latency[str(EVALUATION)]
        counts = {kind: shot.latency[str(kind)]["count"] for kind in (METRICS, NAMED) if str(kind) in shot.latency}
        figures.usage_told = names * int(2 * counts.get(METRICS, 0) + counts.get(NAMED, 0))


def note_upstream(figures: Figures, told: dict[str, Any]) -> None:
    """Keep what the upstream saw."""
    figures.polls = told["seen"].pop("polls", 0)
    figures.faults = dict(sorted(told["seen"].items()))


def judge(figures: Figures) -> None:
    """Say what went wrong, and how memory went."""
    seconds = 60 * figures.minutes
    late = [(at / 3600, rss) for at, rss in figures.memory if at >= SETTLED * seconds]
    line: Trend = trend(late)
    figures.slope, figures.error = line.slope, line.error
    if figures.minutes >= JUDGED_MINUTES and line.slope * seconds / 3600 > GROWTH_MB:
        figures.failed.append(f"memory grows by {line.slope:.1f} ± {line.error:.1f} MB an hour")
    if figures.samples[1] > figures.samples[0] + 50:
        figures.failed.append(f"the metrics page grew from {figures.samples[0]} samples to {figures.samples[1]}")
    if figures.usage_taken != figures.usage_told:  # less was lost, more was sent twice
        figures.failed.append(f"of {figures.usage_told:,} look-ups the upstream was told of {figures.usage_taken:,}")


def page(figures: Figures) -> str:
    """Return the page."""
    about = figures.about
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    met = sum(figures.faults.values())
    latency = ", ".join(f"p{name} {figures.latency.get(name, 0) / 1000:.1f} ms" for name in ("50", "99", "99.9", "100"))
    memory = figures.memory
    stages = ((0, "at first"), (len(memory) // 4, "after a quarter"), (len(memory) // 2, "after half"), (-9, "at last"))
    rows = (
        ("Duration", f"{figures.minutes:g} minutes, {figures.flags} flags, one worker"),
        ("Highest sustained rate", f"{figures.highest:,.0f} requests/s (p99 below {LATE_US / 1000:.0f} ms)"),
        ("Rate of the run", f"{figures.rate:,.0f} requests/s, and {HOSTILE_SHARE:.0%} of that from strangers"),
        ("Answers", f"{figures.requests:,} to callers, {figures.hostile:,} to strangers"),
        ("Statuses", ", ".join(f"{status}: {number:,}" for status, number in sorted(figures.statuses.items()))),
        ("Latency of evaluations", latency),
        ("CPU per request", f"{figures.cpu_us:.1f} µs"),
        ("Upstream", f"{figures.polls:,} polls worked, {met:,} requests met one of {len(figures.faults)} faults"),
        ("Usage", f"{figures.usage_told:,} look-ups told by callers, {figures.usage_taken:,} taken by the upstream"),
        ("Key file", f"rewritten {figures.keys_written} times"),
        ("Samples of the metrics page", f"{figures.samples[0]} after half of the run, {figures.samples[1]} at its end"),
        ("Memory", ", ".join(f"{average(memory[at:][:9]):.1f} MB {when}" for at, when in stages)),
        ("Slope of memory", f"{figures.slope:+.2f} ± {figures.error:.2f} MB an hour (least squares, last third)"),
        ("Failed", "; ".join(figures.failed) or "nothing"),
    )  # fmt: skip
    lines = [f"| {name} | {value} |" for name, value in rows]
    machine_ = f"{about['machine']['processor']}, {about['machine']['cores']} cores"
    measured = f"{about['date']}, commit {about['commit']}, {machine_}; {versions}"
    return "\n".join(
        [
            "# Half an hour under load and failures" if figures.minutes >= FULL_MINUTES else "# A short run",
            "",
            f"Written by `make soak`. {measured}. The load generators and the upstream share the machine. The upstream fails and "
            f"works by turns of {figures.flap_s:g} s, each time with another fault "
            "([upstream_faults.py](../../tests/support/upstream_faults.py)) and another document; strangers send what is in "
            "[hostile.py](../../benchmarks/harness/hostile.py).",
            "",
            "| | |",
            "|---|---|",
            *lines,
            "",
        ]
    )


def average(points: Sequence[tuple[float, float]]) -> float:
    """Return the mean of the values."""
    return sum(value for _, value in points) / len(points) if points else 0.0


def say(line: str) -> None:
    """Tell how far it is."""
    print(line, flush=True)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=FULL_MINUTES, help="how long")
    parser.add_argument("--flags", type=int, default=350, help="flags of the document")
    parser.add_argument("--flap", type=float, default=3.0, metavar="SECONDS", help="how long the upstream works, and fails")
    parser.add_argument("--highest", type=float, default=0.0, metavar="RATE", help="the highest rate; else it is looked for")
    parser.add_argument("--output", type=Path, help="the folder for the page")
    options = parser.parse_args(given)
    full = options.minutes >= FULL_MINUTES
    options.output = options.output or (ROOT / "docs" / "benchmarks" if full else ROOT / ".cache" / "bench")
    return options


def main(given: Sequence[str] | None = None) -> int:
    """Run, judge, write the page; return 0 where nothing failed."""
    options = arguments(given)
    binary = load.build()
    if isinstance(binary, str):
        print(binary, file=sys.stderr)
        return 1
    figures = Figures(machine.about(datetime.datetime.now(datetime.UTC)), options.minutes, options.flags, options.flap)
    with tempfile.TemporaryDirectory(prefix="flagsvc-soak-") as folder:
        try:
            soak(binary, Path(folder), figures, options.highest)
            judge(figures)
        except BenchError as error:
            figures.failed.append(str(error))
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "soak.json").write_text(json.dumps(asdict(figures)) + "\n")
    (options.output / "soak.md").write_text(page(figures))
    print(page(figures))
    return 1 if figures.failed else 0


if __name__ == "__main__":
    sys.exit(main())
