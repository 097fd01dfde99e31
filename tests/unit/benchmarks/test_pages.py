"""The page and the raw results: everything measured is there, and nothing that names this machine.

The tasks at our pages and at those of the real server, and what the note says of them.
The verdicts: goals that are met, missed or unknown.
The plots: well-formed, all points inside, logarithmic axes if requested.
"""

from __future__ import annotations

import getpass
import re
import shutil
import socket
from pathlib import Path

import pytest

import engine
from harness import goals, pages, plots, results
from harness.goals import MET, MISSED, MUST, UNKNOWN
from harness.page_tasks import OUR_TASKS, THEIR_TASKS, Click, Task, Write
from harness.results import EDGE_ONE, EQUAL, OURS, Results
from support.bench_scene import cell, sample


def test_what_is_missing_is_said() -> None:
    """The page has a list of what was left out and what failed. A missing cell is a dash, and one round confirms nothing."""
    found = sample()
    found.failed.append("ours: something")
    found.cells[2].cpu = [200.0]
    text = pages.page(found)
    assert "| 10 | 10.0 +5 % | 11.0 +5 % | ~200 | 50.0 +5 % |" in text
    assert "\n| 5,000 | – | – | – | – | 6.5 | 4.5 | not measured |\n" in text
    assert "- Left out: Edge: Rust (cargo) is not installed" in text
    assert "- **Failed**: ours: something" in text
    assert "| 1,000 | 20.0 +5 % | 25.0 +5 % | 1,000 +5 % | – | 40.0 | – |" in text


def test_the_kept_pages_and_pictures_are_of_the_kept_run(tmp_path: Path) -> None:
    """Pages and pictures in docs/benchmarks/ are what their raw results say; tests/house has the table in README.md.

    The run has goals that are met, half met, missed and not measured, and rounds that were disturbed.
    """
    kept = NOTE.parent
    run = results.read(kept / "proxy.json")
    assert (kept / "proxy.md").read_text() == pages.page(run)
    shutil.copy(kept / "engine.json", tmp_path)
    engine.render(tmp_path)
    assert (tmp_path / "engine.md").read_text() == (kept / "engine.md").read_text()
    drawings = plots.all_of(run)
    assert "cost.svg" in drawings
    assert {name: (kept / name).read_text() for name in drawings} == drawings


def test_nothing_names_this_machine(tmp_path: Path) -> None:
    """The pages contain no path and no name of the machine or its user."""
    from datetime import UTC, datetime

    from harness import machine

    found = sample()
    found.about = machine.about(datetime(2026, 11, 21, tzinfo=UTC))
    results.write(found, tmp_path / "proxy.json")
    text = pages.page(found) + (tmp_path / "proxy.json").read_text()
    assert str(Path(__file__).resolve().parents[3]) not in text
    assert str(Path.home()) not in text or str(Path.home()) == "/"
    assert socket.gethostname() not in text
    assert f"/{getpass.getuser()}/" not in text
    assert found.about["versions"]["flagsvc"]
    assert found.cells[0].server == OURS


NOTE = Path(__file__).resolve().parents[3] / "docs" / "benchmarks" / "pages.md"
ROW = re.compile(r"^\| (.+?) \| (flagsvc|unleash-server) ?[\d.]* \| (\d+) \| (\d+) \|", re.MULTILINE)
SITES = {"flagsvc": OUR_TASKS, "unleash-server": THEIR_TASKS}


@pytest.mark.parametrize("site", SITES)
def test_the_note_has_the_steps_of_today(site: str) -> None:
    """A task that takes another number of clicks or fields is measured again."""

    def steps(task: Task, kind: type) -> int:
        return sum(isinstance(each, kind) for each in task.steps)

    wanted = {task.title: (steps(task, Click), steps(task, Write)) for task in SITES[site]}
    found = {title: (int(clicks), int(fields)) for title, name, clicks, fields in ROW.findall(NOTE.read_text()) if name == site}
    assert found == wanted


def test_both_do_the_same() -> None:
    """The tasks stand in the same order, so that rows of the table are beside each other."""
    assert [each.title for each in OUR_TASKS] == [each.title for each in THEIR_TASKS]


def states(results: Results) -> dict[str, tuple[str, str]]:
    """Return figure and state by goal."""
    return {each.what: (each.figure, each.state) for each in [*goals.ratios(results), *goals.rest(results)]}


def test_ratios_compare_answers_of_equal_shape() -> None:
    """Without ours in the peers' shape a ratio is unknown, but not that of a 304, which has no body."""
    results = sample()
    results.cells = [each for each in [*results.cells, cell(EDGE_ONE, 70, status=304)] if each.server != EQUAL]
    found = states(results)
    assert found["the reference, 10 flags"] == found["Edge 20.1.0, one worker thread, 10 flags"] == ("", UNKNOWN)
    assert found["Edge, 304 for an unchanged poller, 10 flags"] == ("6.4", MET)


def test_a_round_that_is_incomplete_decides_nothing() -> None:
    """The figures of a limit, or of mixed traffic, are of the same rounds."""
    results = sample()
    evaluated, alone = results.find("limit", OURS, flags=10, users=0), results.find("mixed", OURS, form="GET list")
    assert evaluated and alone
    evaluated.cpu.pop()
    alone.cpu.pop()
    first = goals.limits(results)[0]
    assert (first.rounds, first.ratio, first.state) == ([], None, UNKNOWN)
    assert goals.mixture_of(results, OURS, 10) == []
    assert states(results)["the GETs of mixed traffic, 10 flags"] == ("", UNKNOWN)


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


@pytest.mark.parametrize(("version", "age"), [("20.1.0", "old"), ("20.4.1", "new"), ("21.0.0", "new"), ("unknown", "")])
def test_each_edge_has_goals_of_its_own(version: str, age: str) -> None:
    """Each version of Edge has its own goals."""
    results = sample()
    results.about["versions"]["Unleash Edge"] = version
    found = states(results)
    assert goals.edge_age(results) == age
    assert (found.get(f"{goals.NEW}, 10 flags", ("", UNKNOWN))[1] != UNKNOWN) == (age == "new")
    assert (found.get(f"{goals.OLD}, 10 flags", ("", UNKNOWN))[1] != UNKNOWN) == (age == "old")


def test_why_there_is_no_figure_against_an_edge() -> None:
    """The newer one needs a given binary. The older Edge was not the measured version, or was not there."""
    results = sample()
    told = {each.what: each.figure for each in goals.ratios(results)}
    assert "20.1.0 is the newest that `cargo install` gave" in told[goals.NEW]
    assert "make bench EDGE=BINARY" in told[goals.NEW]
    results.about["versions"]["Unleash Edge"] = "20.4.1"
    assert states(results)[goals.OLD] == ("Edge 20.4.1 was measured instead", UNKNOWN)
    del results.about["versions"]["Unleash Edge"]
    assert states(results)[goals.OLD] == ("no Edge was measured", UNKNOWN)
