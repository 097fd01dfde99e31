"""The verdicts: goals that are met, missed or unknown."""

from __future__ import annotations

import pytest

from harness import goals
from harness.goals import MET, MISSED, MUST, UNKNOWN
from harness.results import EDGE_ONE, EMPTY_ASGI, EQUAL, MOUNTED, OURS, REPEATED, TWO_PROCESSES, Results
from support.bench_scene import cell, sample


def states(results: Results) -> dict[str, tuple[str, str]]:
    """Return figure and state by goal."""
    return {each.what: (each.figure, each.state) for each in [*goals.ratios(results), *goals.rest(results)]}


def test_ratios() -> None:
    """A ratio is the other's cost over ours: over the goal, between goal and must, below it, or unknown."""
    found = states(sample())
    assert found["the reference, 10 flags"] == ("18.2", MUST)
    assert found["the reference, 1,000 flags"] == ("40.0", MISSED)
    assert found["the reference, 100 flags"] == ("", UNKNOWN)
    assert found["Edge 20.1.0, one worker thread, 10 flags"] == ("4.5", MUST)
    assert goals.judge(21, 16, 21) == MET


def test_ratios_compare_answers_of_equal_shape() -> None:
    """Ours as it comes, which sends less, decides nothing but a 304, which has no body: without the other, a ratio is unknown."""
    results = sample()
    results.cells += [cell(OURS, 10, status=304), cell(EDGE_ONE, 70, status=304)]
    ours = results.find("matrix", OURS, flags=10, status=200)
    assert ours is not None
    ours.cpu = [1.0, 1.0, 1.0]
    assert states(results)["the reference, 10 flags"] == ("18.2", MUST)
    results.cells = [each for each in results.cells if each.server != EQUAL]
    found = states(results)
    assert found["the reference, 10 flags"] == found["Edge 20.1.0, one worker thread, 10 flags"] == ("", UNKNOWN)
    assert found["Edge, 304 for an unchanged poller, 10 flags"] == ("6.4", MET)


def test_the_limit() -> None:
    """An evaluated answer is held against the cached one of the same process; sizes that were not measured are unknown."""
    found = {each.flags: (each.ratio, each.state) for each in goals.limits(sample())}
    assert found == {
        10: (pytest.approx(1.28), MUST),
        100: (pytest.approx(1.55), MISSED),
        350: (pytest.approx(1.6), MET),
        1000: (None, UNKNOWN),
        5000: (None, UNKNOWN),
    }


def test_a_size_without_goal_has_no_verdict() -> None:
    """It has its ratio, in its place among the others."""
    results = Results(cells=[cell(OURS, 15, 50, "limit", users=0), cell(OURS, 10, 50, "limit", users=REPEATED)])
    found = goals.limits(results)
    assert [each.flags for each in found] == [10, 50, 100, 350, 1000, 5000]
    assert found[1].ratio == pytest.approx(1.5)
    assert found[1].state == ""


def test_a_round_that_was_disturbed_does_not_decide_on_the_limit() -> None:
    """What slows a whole round leaves its ratio as it is; what slows one figure of it moves the median little."""
    results = sample()
    for each in results.all("limit", flags=10):
        each.cpu[0] *= 3
    evaluated = results.find("limit", OURS, flags=10, users=0)
    assert evaluated is not None
    evaluated.cpu[1] *= 2
    first = goals.limits(results)[0]
    assert first.ratio == pytest.approx(1.28)
    assert first.state == MUST
    assert max(first.rounds) == pytest.approx(2.56)
    evaluated.cpu.pop()
    first = goals.limits(results)[0]
    assert (first.rounds, first.ratio, first.state) == ([], None, UNKNOWN)


@pytest.mark.parametrize(("over", "state"), [(9.9, MET), (10.1, MISSED)])
def test_a_mounted_proxy_stands_beside_an_empty_application(over: float, state: str) -> None:
    """The goal is for what ours costs more, at each size, and the note says what the empty one costs."""
    results = Results(cells=[cell(EMPTY_ASGI, 30, 10, "mounted"), cell(MOUNTED, 30 + over, 10, "mounted")])
    (verdict,) = goals.mounted(results)
    assert verdict.what == "mounted (ASGI), 10 flags"
    assert (verdict.state, verdict.note) == (state, "the empty application: 30.0 µs")


@pytest.mark.parametrize(("version", "age"), [("20.1.0", "old"), ("20.4.1", "new"), ("21.0.0", "new"), ("unknown", "")])
def test_each_edge_has_goals_of_its_own(version: str, age: str) -> None:
    """Each version of Edge has its own goals."""
    results = sample()
    results.about["versions"]["Unleash Edge"] = version
    found = states(results)
    assert goals.edge_age(results) == age
    assert (found.get(f"{goals.NEW}, 10 flags", ("", UNKNOWN))[1] != UNKNOWN) == (age == "new")
    assert (found.get(f"{goals.OLD}, 10 flags", ("", UNKNOWN))[1] != UNKNOWN) == (age == "old")


def test_the_rest() -> None:
    """Each of the other goals compares the figures that it names."""
    found = states(sample())
    assert found["a 304, 10 flags"] == ("1.10 times", MET)
    assert found["two workers, 100 flags"] == ("1.20 times", MISSED)
    assert found["mounted (ASGI)"] == ("", UNKNOWN)
    assert found["memory of a worker, 1,000 flags"] == ("42.0 MB", MET)
    assert found["start to ready, 1,000 flags"] == ("0.31 s", MET)
    assert found["refresh, one flag a second"] == ("2.00 times", MET)


def test_the_gets_of_mixed_traffic() -> None:
    """Posts and checks are taken off as they cost alone, in each round: (11.5 - 40 / 20 - 10 / 100) / 0.94 is 10."""
    assert goals.mixture_of(sample(), OURS, 10) == [pytest.approx(1.0)] * 3
    assert states(sample())["the GETs of mixed traffic, 10 flags"] == ("1.00 times", MET)


def test_a_round_that_was_disturbed_does_not_decide_on_mixed_traffic() -> None:
    """What slows a whole round leaves its ratio as it is; what slows one figure of it moves the median of the rounds little."""
    results = sample()
    mixed = results.find("mixed", OURS, form="mixed")
    alone = results.find("mixed", OURS, form="GET list")
    assert mixed and alone
    for cell_ in results.all("mixed"):
        cell_.cpu[0] *= 3
    mixed.cpu[1] *= 1.5
    assert states(results)["the GETs of mixed traffic, 10 flags"] == ("1.00 times", MET)
    alone.cpu.pop()
    assert goals.mixture_of(results, OURS, 10) == []
    assert states(results)["the GETs of mixed traffic, 10 flags"] == ("", UNKNOWN)


def test_two_workers_stand_beside_two_processes() -> None:
    """The verdict is on the workers. It also shows the figures of two processes."""
    (verdict,) = goals.workers(sample())
    assert (verdict.state, verdict.note) == (MISSED, "two separate processes: 1.15 times")
    results = sample()
    results.cells = [each for each in results.cells if each.server != TWO_PROCESSES]
    assert goals.workers(results)[0].note == ""


def test_why_there_is_no_figure_against_an_edge() -> None:
    """The newer one needs a given binary. The older one was not the measured version, or there was none."""
    results = sample()
    told = {each.what: each.figure for each in goals.ratios(results)}
    assert "20.1.0 is the newest that `cargo install` gave" in told[goals.NEW]
    assert "make bench EDGE=BINARY" in told[goals.NEW]
    results.about["versions"]["Unleash Edge"] = "20.4.1"
    assert states(results)[goals.OLD] == ("Edge 20.4.1 was measured instead", UNKNOWN)
    del results.about["versions"]["Unleash Edge"]
    assert states(results)[goals.OLD] == ("no Edge was measured", UNKNOWN)


def test_nothing_measured_is_nothing_known() -> None:
    """Without figures every goal is unknown."""
    assert {each.state for each in [*goals.ratios(Results()), *goals.rest(Results())]} == {UNKNOWN}
    assert {each.state for each in goals.limits(Results())} == {UNKNOWN}


def test_a_304_is_not_compared_with_a_200() -> None:
    """The status belongs to the cell."""
    results = Results(about={}, cells=[cell(OURS, 10), cell(EDGE_ONE, 50, status=304)])
    assert goals.ratio(results, EDGE_ONE, OURS, flags=10, form="GET list", encoding="identity", status=304) is None
