"""How long a refresh holds up the event loop: the longest turn, in processor time, which the machine's load does not change.

`python benchmarks/refresh.py [--flags 5000]`: a document is compiled, then changed a few times in some flags and once in all.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import documents
import engine_cases
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.proxy.configuration import Holder, Preparer

USERS = 5_000
"""Users who ask before each refresh, which gives their classes programs."""
AFTERWARDS = 50
"""Turns of the loop that are still watched once the new configuration is served: the old one is given back in them."""


def altered(document: dict[str, Any], count: int, version: int, rng: random.Random) -> dict[str, Any]:
    """Return the document with so many flags as they are in a version."""
    features = list(document["features"])
    for at in rng.sample(range(len(features)), count):
        features[at] = documents.changed(features[at], version)
    return document | {"features": features}


async def refresh(prepare: Preparer, holder: Holder, body: bytes) -> None:
    """Serve another document, as the poller does."""
    prepared = await prepare(body, holder.current)
    holder.replace(prepared.snapshot, prepared.document, len(prepared.left_out), len(prepared.odd))


async def watched(work: Awaitable[Any], afterwards: int = 0) -> tuple[Any, list[float]]:
    """Return the result of some work, and the milliseconds of processor time of every turn of the loop until it is done.

    `afterwards` are so many turns after it.
    """
    turns: list[float] = []
    task = asyncio.ensure_future(work)
    last = time.thread_time()
    while not task.done() or afterwards:
        afterwards -= task.done()
        await asyncio.sleep(0)
        now = time.thread_time()
        turns.append(1000 * (now - last))
        last = now
    return await task, turns


async def measure(flags: int) -> None:
    """Print a row for each refresh."""
    prepare, holder = Preparer(Compiler(CompileOptions())), Holder()
    rng = random.Random(1)
    document = documents.document(flags)
    contexts = [engine_cases.context(at) for at in range(USERS)]
    print("| changed flags | longest turn, ms | all turns, ms |\n|--:|--:|--:|")
    for version, changed in enumerate((0, 1, 20, 20, 20, flags, 20, flags)):
        document = altered(document, changed, version, rng)
        served = holder.current
        for context in contexts:
            if served is not None:
                served.enabled(context)
        _, turns = await watched(refresh(prepare, holder, json.dumps(document).encode()), AFTERWARDS)
        print(f"| {changed or 'from scratch'} | {max(turns):.2f} | {sum(turns):.1f} |")
        gc.collect()
        gc.freeze()


def main() -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flags", type=int, default=5000)
    asyncio.run(measure(parser.parse_args().flags))
    return 0


if __name__ == "__main__":
    sys.exit(main())
