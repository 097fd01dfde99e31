"""Our statuses beside those of the peers: we take what one of them takes, and refuse the rest, but for a table of exclusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from report_cases import Case, Path
from report_peers import FRONTEND, OUR_SERVER, OURS, PROXY, REAL, REFERENCE, Statuses

ENTRIES = {"toggles", "applications", "metrics", "impactMetrics"}
"""What has entries that cost only themselves."""
DESCRIBING = {"instanceId", "sdkVersion", "environment", "platformName", "platformVersion", "strategies"}
"""Members of a report that only describe the application."""


def is_about_entries(place: Path, value: object) -> bool:
    """Return whether a value is an entry, or a part of an entry, or has entries."""
    has_entries = place[-1] in ENTRIES and isinstance(value, dict | list) and bool(value)
    return has_entries or not ENTRIES.isdisjoint(place[:-1])


class Exclusion(NamedTuple):
    """A difference on purpose. `takes` says what we do; `holds` tells for our program, a path and a report whether it applies."""

    name: str
    reason: str
    source: str
    takes: bool
    holds: Callable[[str, str, Case], bool]


EXCLUSIONS = (
    Exclusion(
        "a bad entry costs only itself",
        "the real servers refuse the report, so one flag costs the counts of all others",
        "decision 0016",
        True,
        lambda _ours, _path, case: any(is_about_entries(place, value) for place, value in case.changes),
    ),
    Exclusion(
        "impact metrics never harm counts",
        "in a bulk report the real servers refuse all of it for one malformed metric",
        "decision 0016",
        True,
        lambda _ours, _path, case: any("impactMetrics" in place for place, _ in case.changes),
    ),
    Exclusion(
        "what only describes an application may be anything",
        "the counts matter, and a description that cannot be read is left out",
        "decision 0016",
        True,
        lambda _ours, _path, case: any(DESCRIBING.intersection(place) for place, _ in case.changes),
    ),
    Exclusion(
        "a text with NUL is refused by the flag server",
        "the real servers answer 202, and then lose all that they write together with it",
        "decision 0024",
        False,
        lambda ours, path, case: ours == OUR_SERVER and not path.startswith(FRONTEND) and b"\\u0000" in case.body(),
    ),
)


class Difference(NamedTuple):
    """A report that ours answers in another way than the peers: with these statuses."""

    ours: str
    path: str
    case: Case
    status: int
    peers: dict[str, int]

    def __str__(self) -> str:
        told = ", ".join(f"{name} {status}" for name, status in self.peers.items())
        return f"{self.ours} {self.path}: {self.case.name}: {self.status} beside {told}"


class Comparison:
    """The result: how many answers were compared, how often each exclusion applies, and the differences without one."""

    def __init__(self, cases: Sequence[Case], statuses: Mapping[str, Statuses]) -> None:
        self.compared = 0
        self.excluded: Counter[str] = Counter()
        self.differences: list[Difference] = []
        for ours in OURS:
            for (path, number), status in statuses[ours].items():
                peers = answers_of(statuses, path, number)
                self._compare(Difference(ours, path, cases[number], status, peers))

    def _compare(self, found: Difference) -> None:
        self.compared += 1
        takes = is_taken(found.status)
        if found.status < 500 and takes == any(map(is_taken, found.peers.values())):
            return
        rows = (row for row in EXCLUSIONS if row.takes == takes and row.holds(found.ours, found.path, found.case))
        row = next(rows, None)
        if row is None or found.status >= 500:
            self.differences.append(found)
        else:
            self.excluded[row.name] += 1

    def lines(self) -> list[str]:
        """Return the figures as text."""
        told = [f"{self.compared} answers, {len(self.differences)} differences, {self.excluded.total()} excluded:"]
        return told + [f"  {number} × {name}" for name, number in self.excluded.most_common()]


def is_taken(status: int) -> bool:
    """Return whether a status says that the report is taken."""
    return 200 <= status < 300


def answers_of(statuses: Mapping[str, Statuses], path: str, number: int) -> dict[str, int]:
    """Return what the peers answer to a report. The real servers have no `/proxy`: their own path for pages stands for it."""
    there = path.replace(PROXY, FRONTEND)
    found = {name: statuses[name][there, number] for name in REAL}
    asked = statuses[REFERENCE].get((path, number))
    return found if asked is None else {**found, REFERENCE: asked}
