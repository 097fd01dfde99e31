"""How many instructions the compiled engine takes, counted by callgrind: figures that do not vary with the machine's load.

`python benchmarks/instructions.py` prints them beside those recorded in `instructions.json`; `--check` fails where one is beyond
the tolerance, `--record` writes them (`make instructions`). Needs valgrind with its headers, and a C compiler.

Counts depend on the compiler and the interpreter. Where none are recorded for these, what is checked is that all differ from
recorded ones by about the same factor: a change that makes one operation dearer at one size is still seen.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "src"
RECORDED = HERE / "instructions.json"
SIZES = (10, 100, 350, 1000)
TOLERANCE = 0.08
"""Share by which a count may differ from the one recorded with the same tools."""
LOOSE = 0.25
"""Share by which a count may differ, if other versions of the tools counted."""
SECONDS = 600
MARKS = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""
INSIDE = "FLAGSVC_MARKS"
Counts = dict[str, int]


def compiler() -> list[str]:
    """Return the command of the C compiler."""
    return os.environ.get("CC", "cc").split()


def tools() -> str:
    """Return what the counts depend on beside the engine."""
    done = subprocess.run([*compiler(), "-dumpfullversion", "-dumpversion"], capture_output=True, text=True, check=True)
    name = f"{compiler()[0]} {done.stdout.split('.')[0].strip()}"
    profiled = "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS"))
    built = f"{platform.python_compiler()}{' with a profile' if profiled else ''}"
    interpreter = f"CPython {platform.python_version()} by {built}"
    return f"{name}, {interpreter}, {platform.machine()}"


def operations() -> dict[str, tuple[Callable[[], object], int]]:
    """Return by name what is counted, and by how much each count is divided: evaluations, or flags."""
    import engine_cases

    found: dict[str, tuple[Callable[[], object], int]] = {}
    for size in SIZES:
        case = engine_cases.Case(size)
        # by the third time every class of contexts has its program
        case.evaluate()
        case.evaluate()
        found[f"evaluate {size}"] = (case.evaluate, len(case.contexts))
        if size >= SIZES[2]:
            found[f"compile {size}"] = (case.compile, 1)
            found[f"refresh {size}"] = (case.refresh, 1)
    return found


def inside(library: str) -> None:
    """Do everything once uncounted, then counted; what callgrind has counted is in the files it writes."""
    from flagsvc.engine import snapshot

    if str(snapshot.__file__).endswith(".py"):
        raise SystemExit("the engine is not compiled: `make install` compiles it")
    import gc

    gc.disable()
    marks = ctypes.CDLL(library)
    for name, (work, times) in operations().items():
        work()
        kept = None
        marks.begin()
        kept = work()
        marks.end(f"{name}|{times}".encode())
        del kept


def count() -> Counts:
    """Return the instructions of each operation. Raises CalledProcessError where valgrind or the compiler fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, library = folder / "marks.c", folder / "marks.so"
        source.write_text(MARKS)
        subprocess.run([*compiler(), "-O1", "-shared", "-fPIC", str(source), "-o", str(library)], check=True, capture_output=True)
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
        environment = {**os.environ, INSIDE: str(library), "PYTHONHASHSEED": "0", "PYTHONPATH": str(SOURCES)}
        command = [*valgrind, sys.executable, "-s", __file__]
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=SECONDS)
        return dict(read(path.read_text()) for path in sorted(folder.glob("out.*")) if "|" in path.read_text())


def read(dump: str) -> tuple[str, int]:
    """Return what a file of callgrind says: the operation, and its instructions."""
    said = re.search(r"^desc: Trigger: Client Request: (.+)\|(\d+)$", dump, re.MULTILINE)
    total = re.search(r"^(?:summary|totals): (\d+)", dump, re.MULTILINE)
    if said is None or total is None:
        raise SystemExit("callgrind wrote something that is not understood")
    return said[1], int(total[1]) // int(said[2])


def verdict(counts: Counts, recorded: dict[str, Counts], key: str) -> list[str]:
    """Return what is wrong with the counts, one line each."""
    if not recorded:
        return ["nothing is recorded"]
    same = key in recorded
    known = recorded[key] if same else next(iter(recorded.values()))
    if counts.keys() != known.keys():
        return [f"other operations are recorded: {', '.join(sorted(counts.keys() ^ known.keys()))}"]
    usual = 1.0 if same else statistics.median([counts[name] / known[name] for name in known])
    allowed = TOLERANCE if same else LOOSE
    lines = []
    for name, before in known.items():
        share = counts[name] / before / usual - 1
        if abs(share) > allowed:
            lines.append(f"{name}: {counts[name]:,} instructions, recorded are {before:,}: {share:+.1%}, allowed is {allowed:.0%}")
    return lines


def main() -> int:
    """Count, print, and check or record."""
    if INSIDE in os.environ:
        inside(os.environ[INSIDE])
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where a count is beyond the tolerance")
    parser.add_argument("--record", action="store_true", help="write the counts")
    options = parser.parse_args()
    recorded: dict[str, Counts] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    key, counts = tools(), count()
    known = recorded.get(key, {})
    print(key)
    for name, instructions in counts.items():
        print(f"{name:16} {instructions:>14,} {known.get(name, 0):>14,}")
    if options.record:
        RECORDED.write_text(json.dumps(recorded | {key: counts}, indent=1) + "\n")
        return 0
    wrong = verdict(counts, recorded, key) if options.check else []
    if wrong:
        print(*wrong, "where that is meant: make instructions", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
