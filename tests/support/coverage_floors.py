"""Branch coverage room by room, beside the floor of each: `python tests/support/coverage_floors.py REPORT [ROOM …]`.

REPORT is what `coverage json` writes. A room is a folder or a module of the package; the floors stand in `coverage_floors.toml`, in
percent of all lines and branches together. The exit code is 1 where a room is below its floor; with ROOM only those are looked at.
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
    """A room: how many of its lines and branches ran, of how many, and the least percentage there may be."""

    room: str
    ran: int
    all: int
    floor: float

    @property
    def percent(self) -> float:
        """What part ran, in percent; all of nothing is 100."""
        return 100 * self.ran / self.all if self.all else 100.0


def floors() -> dict[str, float]:
    """Return the floor of each room."""
    return {room: float(floor) for room, floor in tomllib.loads(FLOORS.read_text())["floors"].items()}


def package_of(path: str, rooms: Sequence[str]) -> str:
    """Return the package of a module, the innermost of those listed; otherwise its top-level name."""
    inside = path.rpartition(PACKAGE)[2].removesuffix(".py")
    found = [room for room in rooms if inside == room or inside.startswith(f"{room}/")]
    return max(found, key=len) if found else inside.partition("/")[0]


def measured(report: Mapping[str, Any], least: Mapping[str, float]) -> list[PackageCoverage]:
    """Return the rooms of a report, in the order of their names; a room without a floor has to be covered completely."""
    ran: Counter[str] = Counter()
    all_: Counter[str] = Counter()
    for path, file in report["files"].items():
        room, summary = package_of(path, list(least)), file["summary"]
        ran[room] += summary["covered_lines"] + summary["covered_branches"]
        all_[room] += summary["num_statements"] + summary["num_branches"]
    return [PackageCoverage(room, ran[room], all_[room], least.get(room, 100.0)) for room in sorted(all_)]


def missing(report: Mapping[str, Any], room: str, rooms: Sequence[str]) -> list[str]:
    """Return the modules of a room that did not run completely, each with its lines and branches that did not."""
    found = []
    for path, file in sorted(report["files"].items()):
        gaps = [*file["missing_lines"], *(f"{start}->{end}" for start, end in file.get("missing_branches", ()))]
        if gaps and package_of(path, rooms) == room:
            found.append(f"  {path}: {', '.join(str(gap) for gap in gaps)}")
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the packages of a report. Returns 1 if one is below its floor."""
    path, *wanted = arguments
    report, least = json.loads(Path(path).read_text()), floors()
    rooms = [each for each in measured(report, least) if each.room in wanted or not wanted]
    low = [each.room for each in rooms if each.percent < each.floor]
    print(f"{'room':24} {'covered':>8} {'floor':>6}")
    for each in rooms:
        print(
            f"{each.room:24} {each.percent:7.2f}% {each.floor:5.0f}%{'  below its floor' if each.room in low else ''}"
        )
    for room in low:
        print(f"what did not run in {room}:", *missing(report, room, list(least)), sep="\n")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
