"""How long a run of the benchmarks takes at most. A fake clock moves by the planned time of each part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import engine
from harness import parts, servers
from harness.load import LoadResult, Plan
from harness.measuring import FULL, QUICK, Measuring, Scale, Task
from harness.prepared import LIST, Routes
from harness.results import CLOSE, EDGE, EDGE_ONE, EQUAL, OURS, REFERENCE, REPEATED, Cell

ASIDE_S = 0.03
"""Seconds that a run of the load generator takes besides its planned time: its start, reading requests, measuring CPU time."""
STARTED_S = 0.4
"""Seconds for the start and the end of a server, on average."""
ENGINE_ASIDE_S = 15.0
COSTS_US = {REFERENCE: (250.0, 10.0), EDGE_ONE: (70.0, 4.5), EDGE: (35.0, 2.3)}
"""Microseconds of a request, and more of them for each flag: what is outstanding at the end of a run is awaited.

Edge as it comes answers with two cores. With these figures a run of 20 minutes is planned as one of 22.
"""
OURS_US = (15.0, 0.06)
ALONE_US = 60.0
"""Microseconds that a single request takes longer than one of many. The requests that fetch entity tags are single."""


@dataclass
class Planned(Measuring):
    """Measures only the planned time. No two rounds are close, so that all are repeated."""

    at: float = 0.0
    shots: int = 0

    def __post_init__(self) -> None:
        """Advance the clock by the planned time."""
        self.clock = lambda: self.at

    def shoot(self, server: servers.Server, task: Task, flags: int, plan: Plan) -> LoadResult:
        """Advance the clock by the time of a run. Each run costs more than the one before."""
        fixed, each = COSTS_US.get(server.name, OURS_US)
        cost = fixed + each * (0 if task.unchanged and server.name not in COSTS_US else flags)
        outstanding = plan.connections * cost / 1e6
        runs = 2 if plan.warm else 1
        learning = min(plan.learn or 0.0, task.requests * (cost + ALONE_US) / 1e6)
        self.at += learning + plan.warm + plan.seconds + runs * outstanding + ASIDE_S
        self.shots += 1
        shown = cost * (1 + 2 * CLOSE) ** self.shots
        latency = {"0": dict.fromkeys(("50", "75", "90", "95", "99", "99.5", "99.9", "99.99", "100"), 1.0)}
        rate = 1e6 / cost
        return LoadResult(max(1, int(rate * plan.seconds)), plan.seconds, shown, 1, 0, {}, latency, 1, 1.0)

    def footprint(self, flags: int, running: list[servers.Server], when: str) -> None:
        """Return at once."""


@dataclass
class Idle:
    """A stand-in for a server: no process runs."""

    name: str
    routes: Routes
    start_s: float = STARTED_S

    def cache_hits(self) -> float:
        """Return none."""
        return 0.0

    def ask(self, at: int) -> Any:
        """Answer without a tag."""
        return SimpleNamespace(headers={}, body=b"")


def starting(stand: Planned) -> Callable[..., servers.Start]:
    """Return a replacement for the functions that start a server: it advances the clock and starts nothing."""

    def named(name: str, *arguments: str, **env: str) -> servers.Start:
        @contextmanager
        def start(upstream: str) -> Iterator[Any]:
            stand.at += STARTED_S
            yield Idle(name, servers.EDGE if name in (EDGE, EDGE_ONE) else servers.FAMILY)

        return start

    return named


def planned(scale: Scale, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Run all parts with the fake clock and return the plan."""
    stand = Planned(Path(), Path(), scale, lambda line: None)
    named = starting(stand)
    for name in ("ours", "ours_here", "ours_twice", "under_uvicorn"):
        monkeypatch.setattr(servers, name, named)
    monkeypatch.setattr(servers, "has_option", lambda flag: True)
    monkeypatch.setattr(servers, "differences", lambda running, users: [])

    def engine_alone(sizes: tuple[int, ...], seconds: float) -> dict[str, None]:
        stand.at += len(engine.FORMS) * len(sizes) * len(engine.OPERATIONS) * seconds
        stand.at += ENGINE_ASIDE_S * max(sizes) / max(FULL.sizes)
        return {}

    monkeypatch.setattr(engine, "both", engine_alone)
    kinds = parts.Kinds("", {name: named(name) for name in names})
    for part in parts.PARTS.values():
        part(stand, kinds)
    return stand


def test_a_quick_run_takes_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds even if every round is disturbed and each group is repeated as often as possible."""
    assert planned(QUICK, (OURS, REFERENCE, EDGE_ONE), monkeypatch).at < 120


def test_a_whole_run_takes_half_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds even if every round is disturbed: repetitions have a limited share of the time."""
    stand = planned(FULL, (OURS, REFERENCE, EDGE_ONE, EDGE), monkeypatch)
    assert stand.at < 30 * 60
    assert 0 < stand.again_s < FULL.share * stand.first_s + 60


def test_ours_in_the_peers_shape_answers_the_list_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands behind ours in the matrix, at every size, and is in no other part. Its start is measured."""
    stand = planned(FULL, (OURS, REFERENCE), monkeypatch)
    assert stand.results.servers() == [OURS, EQUAL, REFERENCE]
    cells = [cell for cell in stand.results.cells if cell.server == EQUAL]
    found = {(cell.part, cell.form, cell.encoding, cell.status, cell.flags) for cell in cells}
    assert found == {("matrix", "GET list", each, 200, flags) for each in ("identity", "gzip") for flags in FULL.sizes}
    assert list(stand.results.starts) == [OURS, EQUAL, REFERENCE]


@pytest.mark.parametrize(
    ("users", "cached", "told"),
    [(REPEATED, 1.0, []), (0, 0.0, []), (REPEATED, 0.4, ["all and gave 40 %"]), (0, 0.9, ["none and gave 90 %"])],
)
def test_a_limit_that_is_none_fails(users: int, cached: float, told: list[str]) -> None:
    """The cache must give every answer of the repeated users, and no other: else the ratio says nothing."""
    stand = Planned(Path(), Path(), FULL, lambda line: None)
    stand.results.cells.append(Cell("limit", OURS, 10, "GET list", "identity", 200, users, cached=cached))
    parts.told_apart(stand, 10)
    assert [line.partition("was to give ")[2] for line in stand.results.failed] == told


class Noisy(Planned):
    """Gives the rounds of two servers the given costs."""

    rounds: dict[str, list[float]]

    def shoot(self, server: servers.Server, task: Task, flags: int, plan: Plan) -> LoadResult:
        """Advance the clock by a second and return the next cost of the server."""
        self.at += 1.0
        return LoadResult(1, 1.0, self.rounds[server.name].pop(0), 1, 0, {}, {}, 1, 1.0)


def noisy(scale: Scale, **rounds: list[float]) -> list[Cell]:
    """Return the cells of two servers that are measured in turn."""
    stand = Noisy(Path(), Path(), scale, lambda line: None)
    stand.rounds = rounds
    stand.cell(10, [Idle(name, servers.FAMILY) for name in rounds], Task("matrix", LIST))  # type: ignore[misc]
    return stand.results.cells


def test_a_group_is_measured_again_until_all_of_it_is_steady() -> None:
    """If one server's costs vary, all servers are measured again: all have the same number of rounds. Every round is kept."""
    scale = replace(FULL, share=10.0)
    a, b = noisy(scale, a=[20.0, 10.0, 15.0, 10.5, 1.0], b=[7.0, 7.1, 7.2, 9.0, 1.0])
    assert (a.cpu, b.cpu) == ([20.0, 10.0, 15.0, 10.5], [7.0, 7.1, 7.2, 9.0])
    assert (a.us, b.us, a.steady) == (10.0, 7.0, True)


def test_steady_cells_are_not_measured_again() -> None:
    """If the two cheapest rounds are close, the third does not matter."""
    assert [cell.cpu for cell in noisy(FULL, a=[20.0, 10.0, 10.9, 1.0])] == [[20.0, 10.0, 10.9]]


def test_measuring_again_ends() -> None:
    """Repetitions end after a number of rounds, or after their share of the time."""
    noise = [2.0**at for at in range(9, 0, -1)]
    assert len(noisy(replace(FULL, share=10.0), a=[*noise])[0].cpu) == FULL.rounds + FULL.extra
    (cell,) = noisy(replace(FULL, share=0.5), a=[*noise])
    assert len(cell.cpu) == FULL.rounds + 2
    assert not cell.steady


def test_rounds_of_a_group_are_far_apart() -> None:
    """Each group is measured once before any is repeated, and only unsteady groups are repeated."""
    asked: list[str] = []

    class Listed(Noisy):
        def shoot(self, server: servers.Server, task: Task, flags: int, plan: Plan) -> LoadResult:
            asked.append(server.name)
            return super().shoot(server, task, flags, plan)

    stand = Listed(Path(), Path(), replace(FULL, share=10.0), lambda line: None)
    stand.rounds = {"a": [1.0, 1.0, 1.0], "b": [9.0, 7.0, 5.0, 5.0], "c": [1.0, 1.0, 1.0]}
    task = Task("matrix", LIST)
    stand.groups(10, [[(Idle(name, servers.FAMILY), task)] for name in stand.rounds])  # type: ignore[list-item]
    assert "".join(asked) == "abcabcabc" + "b"
    assert [cell.server for cell in stand.results.cells] == ["a", "b", "c"]
