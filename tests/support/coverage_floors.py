"""Branch coverage of each package, beside its floor: `python tests/support/coverage_floors.py REPORT [PACKAGE …]`.

REPORT is what `pytest --coverage REPORT` writes. A package here is a folder or a module of flagsvc. The floors are in
`coverage_floors.toml`, in percent of all lines and branches together. The exit code is 1 if a package is below its floor. With
PACKAGE, only those are checked.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FLOORS = Path(__file__).with_name("coverage_floors.toml")
PACKAGE = "src/flagsvc/"


class PackageCoverage(NamedTuple):
    """A package: how many of its lines and branches ran, of how many, and the lowest percentage that passes."""

    package: str
    ran: int
    all: int
    floor: float

    @property
    def percent(self) -> float:
        """What part ran, in percent; all of nothing is 100."""
        return 100 * self.ran / self.all if self.all else 100.0


def floors() -> dict[str, float]:
    return {package: float(floor) for package, floor in tomllib.loads(FLOORS.read_text())["floors"].items()}


def package_of(path: str, packages: Sequence[str]) -> str:
    """Return the package of a module, the innermost of those listed; otherwise its top-level name."""
    inside = path.rpartition(PACKAGE)[2].removesuffix(".py")
    found = [package for package in packages if inside == package or inside.startswith(f"{package}/")]
    return max(found, key=len) if found else inside.partition("/")[0]


def measured(report: Mapping[str, Any], least: Mapping[str, float]) -> list[PackageCoverage]:
    """Return the packages of a report, in the order of their names. A package without a floor must be covered completely."""
    ran: Counter[str] = Counter()
    not_ran: Counter[str] = Counter()
    for path, file in report["files"].items():
        package, summary = package_of(path, list(least)), file["summary"]
        ran[package] += summary["covered_lines"] + summary["covered_branches"]
        not_ran[package] += summary["missing_lines"] + summary["missing_branches"]
    return [PackageCoverage(each, ran[each], ran[each] + not_ran[each], least.get(each, 100.0)) for each in sorted(not_ran)]


def missing(report: Mapping[str, Any], package: str, packages: Sequence[str]) -> list[str]:
    """Return the modules of a package that did not run completely, each with the lines and branches that did not run."""
    found = []
    for path, file in sorted(report["files"].items()):
        gaps = [*file["missing_lines"], *(f"{start}->{end}" for start, end in file["missing_branches"])]
        if gaps and package_of(path, packages) == package:
            found.append(f"  {path}: {', '.join(str(gap) for gap in gaps)}")
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the packages of a report. Returns 1 if one is below its floor."""
    path, *wanted = arguments
    report, least = json.loads(Path(path).read_text()), floors()
    packages = [each for each in measured(report, least) if each.package in wanted or not wanted]
    low = [each.package for each in packages if each.percent < each.floor]
    print(f"{'package':24} {'covered':>8} {'floor':>6}")
    for each in packages:
        print(f"{each.package:24} {each.percent:7.2f}% {each.floor:5.0f}%{'  below its floor' if each.package in low else ''}")
    for package in low:
        print(f"what did not run in {package}:", *missing(report, package, list(least)), sep="\n")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
