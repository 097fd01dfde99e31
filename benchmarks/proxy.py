"""Our proxy beside the reference proxy and Unleash Edge: `make bench`, `make bench QUICK=1`, `make bench EDGE=BINARY`.

CPU time per request on the same document with many different users, memory, latencies under fixed rates, start and refresh; the
pages and plots go to docs/benchmarks/, those of a part of it to .cache/bench/. What is missing (node, Rust) is left out with its
reason. Nothing is measured where the servers do not agree on the flags. Ends with 1 where something went wrong.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "docs" / "benchmarks"
sys.path[:0] = [str(ROOT / name) for name in ("src", "tests", "benchmarks")]

import engine  # noqa: E402
from harness import edge, load, machine, pages, parts, results, servers  # noqa: E402
from harness.measuring import FULL, QUICK, Measuring, Scale  # noqa: E402
from harness.results import EDGE, EDGE_ONE, OURS, REFERENCE, Results  # noqa: E402

KINDS = (OURS, REFERENCE, EDGE_ONE, EDGE)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few cells, in about two minutes")
    parser.add_argument("--edge", default="", metavar="BINARY", help="an Unleash Edge to measure instead of the one cargo installs")
    parser.add_argument("--parts", default=",".join(parts.PARTS), help="which parts, separated by commas")
    parser.add_argument("--sizes", default="", help="numbers of flags of the matrix, separated by commas")
    parser.add_argument("--only-ours", action="store_true", help="without the others")
    parser.add_argument(
        "--output",
        type=Path,
        help="the folder for the pages; else docs/benchmarks for the whole, .cache/bench for parts",
    )
    parser.add_argument("--render", action="store_true", help="measure nothing, write the pages from the raw results again")
    options = parser.parse_args(given)
    partly = options.quick or options.only_ours or options.sizes or options.parts != ",".join(parts.PARTS)
    options.output = options.output or (ROOT / ".cache" / "bench" if partly else PUBLISHED)
    return options


def scale_of(options: argparse.Namespace) -> Scale:
    """Return how much is measured."""
    scale = QUICK if options.quick else FULL
    sizes = tuple(map(int, options.sizes.split(","))) if options.sizes else scale.sizes
    return Scale(**{**vars(scale), "sizes": sizes})


def kinds_of(options: argparse.Namespace, upstream: str, stand: Measuring) -> parts.Kinds:
    """Return what can be started here; what cannot is left out with its reason."""
    kinds = parts.Kinds(upstream, {OURS: servers.ours()})
    if missing := servers.nginx_missing():
        stand.results.left_out.append(f"nginx: {missing}")
    if options.only_ours:
        stand.results.left_out.append("the reference and Edge: not asked for")
        return kinds
    missing = servers.reference_missing()
    if missing:
        stand.results.left_out.append(f"the reference: {missing}")
    else:
        kinds.starts[REFERENCE] = servers.reference(REFERENCE)
    found = edge.find(options.edge, not options.quick, stand.say)
    if isinstance(found, str):
        stand.results.left_out.append(f"Edge: {found}")
        return kinds
    kinds.starts[EDGE_ONE] = servers.edge(EDGE_ONE, found, TOKIO_WORKER_THREADS="1")
    if not options.quick:
        kinds.starts[EDGE] = servers.edge(EDGE, found)
    return kinds


def name_versions(stand: Measuring, kinds: parts.Kinds) -> None:
    """Keep the versions of the others, from themselves."""
    versions = stand.results.about["versions"]
    if not servers.nginx_missing():
        versions["nginx"] = servers.nginx_version()
    if REFERENCE in kinds.starts:
        versions |= {"@unleash/proxy": servers.package_version("@unleash/proxy"), "node": servers.node_version()}
    if EDGE_ONE in kinds.starts:
        with kinds.starts[EDGE_ONE](f"{kinds.upstream}/10") as server:
            versions["Unleash Edge"] = servers.edge_version(server)


def measure(options: argparse.Namespace, binary: Path) -> Results:
    """Measure everything that was asked for; give what came out."""
    begun = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {line}", flush=True)

    about = machine.about(datetime.datetime.now(datetime.UTC)) | {"quick": options.quick}
    with tempfile.TemporaryDirectory(prefix="flagsvc-bench-") as folder, servers.upstream() as upstream:
        stand = Measuring(binary, Path(folder), scale_of(options), say, Results(about=about))
        kinds = kinds_of(options, upstream, stand)
        name_versions(stand, kinds)
        for line in stand.results.left_out:
            say(f"left out: {line}")
        for name in options.parts.split(","):
            attempt(name, stand, kinds)
    about["minutes"] = round((time.monotonic() - begun) / 60, 1)
    return stand.results


def attempt(name: str, stand: Measuring, kinds: parts.Kinds) -> None:
    """Measure one part. A failure is printed and does not end the benchmark. Servers that disagree do."""
    try:
        parts.PARTS[name](stand, kinds)
    except load.DisagreementError:
        raise
    except load.BenchError as error:
        stand.fail(f"{name}: {error}")


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print the tables, write the pages."""
    options = arguments(given)
    raw = options.output / "proxy.json"
    options.output.mkdir(parents=True, exist_ok=True)
    if options.render:
        found = results.read(raw)
        engine.render(options.output)
    else:
        binary = load.build()
        if isinstance(binary, str):
            print(binary, file=sys.stderr)
            return 1
        try:
            found = measure(options, binary)
        except load.BenchError as error:
            print(error, file=sys.stderr)
            return 1
        results.write(found, raw)
    print(pages.write(found, options.output))
    if options.output == PUBLISHED:
        print("\nThe table in README.md is of an older run now: `make docs` writes it again.")
    return 1 if found.failed else 0


if __name__ == "__main__":
    sys.exit(main())
