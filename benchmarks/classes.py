"""Classes of contexts: memory with many of them, and what a caller costs who invents them (decision 0007).

`python benchmarks/classes.py [--flags 1000] [--contexts 1000000]` prints both. The contexts have twenty fields of two
values each, which constraints look at: a million classes. Each is evaluated once, without classes and with them, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("src", "tests", "benchmarks")]

import documents  # noqa: E402 - the path is set above
import engine_cases  # noqa: E402
from flagsvc.engine.compile import CompileOptions, Compiler  # noqa: E402
from flagsvc.engine.context import Context  # noqa: E402
from flagsvc.engine.options import CLASS_BYTES  # noqa: E402
from harness import procs, servers  # noqa: E402
from support.evaluating import classes_of  # noqa: E402
from support.processes import ask  # noqa: E402

FIELDS = 20
VERSIONS = [documents.context(at)["properties[appVersion]"] for at in range(10)]
"""The versions of the benchmark's callers. With regions and plans they make some two hundred classes."""
TURN = 1_000
WITHOUT, WITH = "without classes", "with classes"


def hostile_document(flags: int) -> dict[str, Any]:
    """Return the document of the benchmark in which each constraint looks at one of many fields."""
    document = documents.document(flags)
    rules = [rule for feature in document["features"] for rule in feature["strategies"] if rule["constraints"]]
    for at, rule in enumerate(rules):
        rule["constraints"] = [{"contextName": f"field-{at % FIELDS}", "operator": "IN", "values": ["1"]}]
    return document


def invented(seed: int) -> Iterator[Context]:
    """Return contexts of classes that hardly ever come again."""
    rng = random.Random(seed)
    while True:
        number = rng.getrandbits(FIELDS)
        properties = {f"field-{at}": str(number >> at & 1) for at in range(FIELDS)}
        yield Context(user_id=str(rng.getrandbits(30)), session_id="s", app_name="a", environment="e", properties=properties)


def attack(flags: int, contexts: int) -> None:
    """Print what an evaluation costs while every context is of another class, and what that takes of memory."""
    text = json.dumps(hostile_document(flags)).encode()
    snapshots = {
        name: engine_cases.built(Compiler(CompileOptions(class_bytes=limit)), text, None)
        for name, limit in ((WITHOUT, 0), (WITH, CLASS_BYTES))
    }
    spent = dict.fromkeys(snapshots, 0.0)
    asked = invented(5)
    resident = []
    for _ in range(contexts // TURN):
        some = list(islice(asked, TURN))
        for name, snapshot in snapshots.items():
            begun = time.process_time()
            for context in some:
                snapshot.enabled(context)
            spent[name] += time.process_time() - begun
        del some
        resident.append(procs.memory(os.getpid()).rss)
    classes = classes_of(snapshots[WITH])
    counts, size = classes.counts, int(classes.size)
    done = contexts // TURN * TURN
    figures = ", ".join(f"{name} {1e6 * each / done:.2f} µs" for name, each in spent.items())
    print(f"{done:,} contexts of invented classes, {flags:,} flags: {figures} ({spent[WITH] / spent[WITHOUT] - 1:+.1%})")
    print(f"  programs take {size / 1e6:.1f} MB of {CLASS_BYTES / 1e6:.1f}; {counts.hits:,} hits, {counts.misses:,} misses")
    print(f"  resident MB after each tenth: {', '.join(f'{each:.0f}' for each in resident[:: max(1, len(resident) // 10)])}")


def memory(flags: int) -> None:
    """Print the memory of a worker before and after it has programs for every class of the benchmark's document."""
    with servers.upstream() as upstream, servers.ours()(f"{upstream}/{flags}") as server:

        def get(path: str, query: dict[str, str]) -> str:
            url = f"http://127.0.0.1:{server.port}/proxy{path}?{urlencode(query)}"
            return ask(url, headers={"Authorization": server.routes.key}).text

        for at in range(100):
            server.ask(at)
        before = procs.memory(server.pid).rss
        for at, (region, plan, version) in enumerate(combinations()):
            query = {"properties[region]": region, "properties[plan]": plan, "properties[appVersion]": version}
            for again in range(8):
                get("", query | {"userId": str(1_000_000 + 8 * at + again)})
        lines = get("/internal-backstage/prometheus", {}).splitlines()
        kept = next(float(line.split()[1]) for line in lines if line.startswith("flagsvc_class_cache_bytes"))
        print(
            f"a worker at {flags:,} flags: {before:.1f} MB; with {kept / 1e6:.1f} MB of programs {procs.memory(server.pid).rss:.1f}"
        )


def combinations() -> Iterator[tuple[str, str, str]]:
    """Return regions, plans and versions in all combinations."""
    for region in documents.REGIONS:
        for plan in documents.PLANS:
            for version in VERSIONS:
                yield region, plan, version


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flags", type=int, default=1_000)
    parser.add_argument("--contexts", type=int, default=1_000_000)
    options = parser.parse_args()
    memory(options.flags)
    attack(options.flags, options.contexts)


if __name__ == "__main__":
    main()
