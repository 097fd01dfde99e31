"""What the engine costs apart from HTTP: evaluating, compiling, compiling what changed; compiled and interpreted.

`python benchmarks/engine.py [--sizes 10,100,350,1000,5000] [--seconds 0.5] [--output docs/benchmarks]`: prints a table, and writes
it beside the raw figures. Times are those of the processor, the best of several runs.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness import machine

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "src"
FORMS = ("compiled", "interpreted")
OPERATIONS = ("evaluate", "compile", "refresh")
INSIDE = "FLAGSVC_BENCH_FORM"
Figures = dict[str, dict[str, float]]
SIZES = (10, 100, 350, 1_000, 5_000)


def best(work: Callable[[], object], seconds: float) -> float:
    """Return the least processor time of one call in seconds, over runs of about this length."""
    least = float("inf")
    end = time.process_time() + seconds
    while time.process_time() < end:
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    return least


def measure(sizes: list[int], seconds: float) -> Figures:
    """Return the microseconds of each operation at each size, in the form that this process runs."""
    import engine_cases

    figures: Figures = {}
    for size in sizes:
        case = engine_cases.Case(size)
        gc.collect()
        gc.freeze()
        per_answer = best(case.evaluate, seconds) / len(case.contexts)
        row = {"evaluate": per_answer, "compile": best(case.compile, seconds), "refresh": best(case.refresh, seconds)}
        figures[str(size)] = {name: round(1e6 * value, 2) for name, value in row.items()}
    return figures


def inside(form: str, options: argparse.Namespace) -> None:
    """Measure in this process and print the figures as JSON."""
    sys.path.insert(0, str(SOURCES))
    if form == "interpreted":
        specification = importlib.util.spec_from_file_location("forms", HERE.parent / "tests" / "support" / "forms.py")
        assert specification is not None and specification.loader is not None
        forms = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(forms)
        sys.meta_path.insert(0, forms.InterpretedOnly("flagsvc", SOURCES))
    from flagsvc.engine import snapshot

    found = "interpreted" if str(snapshot.__file__).endswith(".py") else "compiled"
    print(json.dumps(measure(options.sizes, options.seconds) if found == form else None))


def both(sizes: Sequence[int], seconds: float) -> dict[str, Figures | None]:
    """Return the figures of each form."""
    return {form: outside(form, sizes, seconds) for form in FORMS}


def outside(form: str, sizes: Sequence[int], seconds: float) -> Figures | None:
    """Return the figures of one form, measured in a process of its own; None where that form is not there."""
    command = [sys.executable, __file__, "--sizes", ",".join(map(str, sizes)), "--seconds", str(seconds)]
    done = subprocess.run(command, env={**os.environ, INSIDE: form}, stdout=subprocess.PIPE, check=True)
    figures: Figures | None = json.loads(done.stdout)
    return figures


def table(results: dict[str, Figures | None]) -> str:
    """Return the figures as a table of Markdown."""
    sizes = sorted({int(size) for figures in results.values() for size in figures or {}})
    heads = [f"{operation}, {form}" for operation in OPERATIONS for form in FORMS if results[form]]
    lines = ["| flags | " + " | ".join(heads) + " |", "|--:" * (len(heads) + 1) + "|"]
    for size in sizes:
        found = [results[form] for _ in OPERATIONS for form in FORMS]
        names = [operation for operation in OPERATIONS for _ in FORMS]
        cells = [f"{each[str(size)][name]:,.1f}" for each, name in zip(found, names, strict=True) if each]
        lines.append(f"| {size:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(about: dict[str, Any], results: dict[str, Figures | None], folder: Path) -> None:
    """Write the raw figures, with where and with what they were measured, and the page."""
    raw = {"about": about, "microseconds": results}
    (folder / "engine.json").write_text(json.dumps(raw, indent=1) + "\n")
    (folder / "engine.md").write_text(page(raw))


def render(folder: Path) -> None:
    """Write the page again from the raw figures, where there are some that say what they were measured with."""
    file = folder / "engine.json"
    raw = json.loads(file.read_text()) if file.exists() else {}
    if "about" in raw:
        (folder / "engine.md").write_text(page(raw))


def page(raw: dict[str, Any]) -> str:
    """Return the page for docs/benchmarks."""
    return (
        "# The engine apart from HTTP\n\n"
        "Microseconds of processor time: one answer to the list of toggles for one user (evaluate), a document from its bytes\n"
        "to what answers (compile), and the same after a document of which five flags changed (refresh). Best of several runs.\n\n"
        "Written by `make bench`, or `benchmarks/engine.py` alone; the raw figures are in [engine.json](engine.json).\n\n"
        + "\n".join(machine.facts(raw["about"]))
        + f"\n\n{table(raw['microseconds'])}\n"
    )


def main() -> int:
    """Measure both forms, print the table, and write the pages where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=lambda text: [int(each) for each in text.split(",")], default=SIZES)
    parser.add_argument("--seconds", type=float, default=0.5, help="processor seconds for each figure")
    parser.add_argument("--output", type=Path, help="folder for engine.md and engine.json")
    options = parser.parse_args()
    if INSIDE in os.environ:
        inside(os.environ[INSIDE], options)
        return 0
    results = both(options.sizes, options.seconds)
    print(table(results))
    if options.output:
        sys.path.insert(0, str(SOURCES))
        write(machine.about(datetime.datetime.now(datetime.UTC)), results, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
