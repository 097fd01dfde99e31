"""Which rounds of the benchmarks are measured again, and in which order. A limit that is none fails."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness import parts, servers
from harness.load import LoadResult, Plan
from harness.measuring import FULL, Measuring, Scale, Task
from harness.prepared import LIST, Routes
from harness.results import OURS, REPEATED, Cell


@dataclass
class Idle:
    """A stand-in for a server: no process runs."""

    name: str
    routes: Routes


@pytest.mark.parametrize(
    ("users", "cached", "told"),
    [(REPEATED, 1.0, []), (0, 0.0, []), (REPEATED, 0.4, ["all and gave 40 %"]), (0, 0.9, ["none and gave 90 %"])],
)
def test_a_limit_that_is_none_fails(users: int, cached: float, told: list[str]) -> None:
    """The cache must give every answer of the repeated users, and no other: else the ratio says nothing."""
    stand = Measuring(Path(), Path(), FULL, lambda line: None)
    stand.results.cells.append(Cell("limit", OURS, 10, "GET list", "identity", 200, users, cached=cached))
    parts.told_apart(stand, 10)
    assert [line.partition("was to give ")[2] for line in stand.results.failed] == told


@dataclass
class Noisy(Measuring):
    """Gives the rounds of two servers the given costs. A fake clock moves by a second with each round."""

    at: float = 0.0
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the fake clock."""
        self.clock = lambda: self.at

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
