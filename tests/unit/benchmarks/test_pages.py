"""The page and the raw results: everything measured is there, and nothing that names this machine.

The tasks at our pages and at those of the real server, and what the note says of them.
The verdicts: goals that are met, missed or unknown.
The plots: well-formed, all points inside, logarithmic axes if requested.
"""

from __future__ import annotations

import getpass
import json
import re
import socket
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import engine
from harness import goals, pages, plots, readme, results, svg
from harness.goals import MET, MISSED, MUST, UNKNOWN
from harness.page_tasks import OUR_TASKS, THEIR_TASKS, Click, Task, Write
from harness.results import (
    EDGE_ONE,
    EMPTY_ASGI,
    EQUAL,
    MOUNTED,
    NGINX,
    OURS,
    REFERENCE,
    REPEATED,
    TWO_PROCESSES,
    Footprint,
    Results,
)
from harness.svg import Axis, Line
from support.bench_scene import cell, sample


def test_raw_results_are_read_as_written(tmp_path: Path) -> None:
    """The page can be written again from the raw file alone."""
    results.write(sample(), tmp_path / "proxy.json")
    assert results.read(tmp_path / "proxy.json") == sample()


def test_the_limit_is_the_first_table() -> None:
    """It has the three costs, the ratio with the range of the rounds, what must be, the goal, and the state, also in print."""
    found = sample()
    found.cells += [cell(OURS, 15, 50, "limit", users=0), cell(OURS, 10, 50, "limit", users=REPEATED)]
    tables = [block for block in pages.goal_tables(found) if block.startswith("| ")]
    lines = tables[0].splitlines()
    assert lines[0].startswith("| flags | from the answer cache, µs | evaluated, µs | without classes, µs | ratio | must")
    assert lines[2] == "| 10 | 10.0 +5 % | 12.8 +5 % | 25.6 +5 % | 1.28 (1.28–1.28) | 1.33 | 1.25 | must met |"
    assert lines[3] == "| 50 | 10.0 +5 % | 15.0 +5 % | – | 1.50 (1.50–1.50) | – | – |  |"
    assert lines[-1] == "| 5,000 | – | – | – | – | 6.5 | 4.5 | not measured |"
    page = pages.page(found)
    assert page.index(tables[0]) == page.index("\n| ") + 1


def test_the_verdicts_on_the_limit_are_counted() -> None:
    """A run whose limit is missed says so in its first line."""
    found = sample()
    others = sum(each.state == goals.MISSED for each in [*goals.ratios(found), *goals.rest(found)])
    assert f" {others + 1} **not met**" in pages.goal_tables(found)[0]


def test_a_figure_that_nothing_confirms_is_marked() -> None:
    """A cell has a mark if its second cheapest round is not close, or if it has one round. The page counts such cells."""
    found = sample()
    found.cells[0].cpu = [13.0, 10.0, 12.0]
    found.cells[2].cpu = [200.0]
    text = pages.page(found)
    assert "| 10 | ~10.0 +20 % | 11.0 +5 % | ~200 | 50.0 +5 % |" in text
    assert f"- Rounds of a cell: 1–3; {len(found.cells) - 2} of {len(found.cells)} cells steady; half of the cells" in text


def test_what_is_missing_is_said() -> None:
    """The page has a list of what was left out and what failed. A missing cell is a dash."""
    found = sample()
    found.failed.append("ours: something")
    text = pages.page(found)
    assert "- Left out: Edge: Rust (cargo) is not installed" in text
    assert "- **Failed**: ours: something" in text
    assert "| 1,000 | 20.0 +5 % | 25.0 +5 % | 1,000 +5 % | – | 40.0 | – |" in text


def test_a_quick_run_says_so() -> None:
    """The page says that its figures are rough."""
    found = sample()
    assert "quick run" not in pages.page(found)
    found.about["quick"] = True
    assert "quick run" in pages.page(found)


def test_old_edges_carry_their_sentence() -> None:
    """Every table with a ratio against an old Edge says that newer ones are faster; none against a new one does."""
    found = sample()
    text = pages.page(found)
    tables = [block for block in text.split("\n\n") if EDGE_ONE in block and block.startswith("| flags")]
    assert text.count(goals.NEWER) >= len(tables) + 1
    found.about["versions"]["Unleash Edge"] = "20.4.1"
    assert goals.NEWER not in pages.page(found)


def test_what_the_cache_gave_is_said() -> None:
    """The page says whether answers came from the cache."""
    found = sample()
    assert "our cache" not in pages.page(found)
    found.cells[0].cached, found.cells[1].cached = 0.002, 0.012
    assert "in the 200s of the matrix: at most 1.2 %" in pages.page(found)


def test_the_figure_of_a_cell() -> None:
    """It is the cheapest round; the next one confirms it or not; how far apart all are is known; one round confirms nothing."""
    cell = sample().cells[0]
    cell.cpu, cell.rates = [14.0, 10.0, 10.9], [1.0, 3.0, 2.0]
    assert (cell.us, cell.spread, cell.range) == (10.0, pytest.approx(0.09), pytest.approx(0.4))  # type: ignore[comparison-overlap]
    assert cell.steady
    assert cell.rate == 2.0
    cell.cpu = [14.0, 10.0, 11.1]
    assert not cell.steady
    cell.cpu = [10.0]  # type: ignore[unreachable]
    assert not cell.steady


def test_the_engine_has_a_page_of_its_own(tmp_path: Path) -> None:
    """It names the machine and the versions as the proxy's page does, and can be written again from the raw figures."""
    found = sample()
    figures = {"10": {"evaluate": 0.5, "compile": 85.2, "refresh": 30.3}}
    found.engine = {"compiled": figures, "interpreted": None}
    pages.write(found, tmp_path)
    raw = json.loads((tmp_path / "engine.json").read_text())
    assert raw == {"about": found.about, "microseconds": found.engine}
    text = (tmp_path / "engine.md").read_text()
    for line in ("- Commit: abc", "processor some processor", "flagsvc 0.1.0, compiled", "| 10 | 0.5 | 85.2 | 30.3 |"):
        assert line in text
    (tmp_path / "engine.md").unlink()
    engine.render(tmp_path)
    assert (tmp_path / "engine.md").read_text() == text


def test_the_readme_has_the_figures_of_the_run() -> None:
    """The README has each size, memory and start, with the measured versions, equal shape first and in the ratios.

    Missing figures are dashes with a note, and an old Edge gets a note.
    """
    found = sample()
    found.about["versions"]["@unleash/proxy"] = "1.4.19"
    lines = readme.table(found).splitlines()
    peers = "`@unleash/proxy` 1.4.19 | Unleash Edge 20.1.0, one thread"
    assert lines[0].startswith(f"| | flagsvc, the peers' shape | {peers} | flagsvc as it comes | flagsvc, 304")
    assert lines[2:6] == [
        "| CPU a request, 10 flags | 11 µs | 200 µs, 18.2 times | 50 µs, 4.5 times | 10 µs | 11 µs |",
        "| CPU a request, 1,000 flags | 25 µs | 1,000 µs, 40.0 times | – | 20 µs | – |",
        "| memory, 1,000 flags | – | – | – | 42 MB | 42 MB |",
        "| start to ready | – | – | – | 0.31 s | 0.31 s |",
    ]
    assert lines[-3:] == ["– is a figure that this run did not measure.", "", goals.NEWER]


def test_the_limit_of_the_costs_is_a_file_that_nginx_sends() -> None:
    """The README has a column for it, and the page of the run too, if the run has it. Only its CPU time is shown."""
    found = sample()
    assert NGINX not in readme.table(found) + pages.page(found)
    found.cells += [cell(NGINX, flags + 1, flags, "limit", users=0) for flags in (10, 1000)]
    lines = readme.table(found).splitlines()
    assert lines[0].endswith(f" | flagsvc, 304 for an unchanged poller | {NGINX} |")
    assert [line.count("|") for line in lines[:6]] == [8] * 6
    assert lines[2].endswith(" | 11 µs |")
    assert lines[3].endswith(" | 1,001 µs |")
    text = pages.page(found)
    assert f"| without classes, µs | {NGINX}, µs | ratio |" in text
    assert "| 25.6 +5 % | 11.0 +5 % | 1.28 (" in text


def test_the_kept_page_and_pictures_are_of_the_kept_run() -> None:
    """The page and each picture in docs/benchmarks/ are what their raw results say: `make bench` wrote all of them at once."""
    kept = NOTE.parent
    run = results.read(kept / "proxy.json")
    assert (kept / "proxy.md").read_text() == pages.page(run)
    drawings = plots.all_of(run)
    assert "cost.svg" in drawings
    assert {name: (kept / name).read_text() for name in drawings} == drawings


def test_the_readme_of_a_run_without_equal_shape_has_no_ratios() -> None:
    """A run from before has no figure to hold the others against."""
    found = sample()
    found.cells = [each for each in found.cells if each.server != EQUAL]
    assert "| CPU a request, 10 flags | – | 200 µs | 50 µs | 10 µs | 11 µs |" in readme.table(found).splitlines()


def test_the_readme_of_a_whole_run_has_every_value() -> None:
    """Memory and start, where others win, stand in every column. Nothing is said about dashes."""
    found = Results(about=sample().about)
    found.about["versions"] |= {"@unleash/proxy": "1.4.19", "Unleash Edge": "20.4.1"}
    for server in (OURS, EQUAL, REFERENCE, EDGE_ONE):
        found.cells += [cell(server, 10, 1000), cell(server, 10, 1000, status=304)]
        found.memory.append(Footprint(server, 1000, "after the matrix", 40.0, 30.0))
        found.starts[server] = [0.2]
    table = readme.table(found)
    assert "–" not in table
    assert "| memory, 1,000 flags | 40 MB | 40 MB | 40 MB | 40 MB | 40 MB |" in table


def test_files_are_written(tmp_path: Path) -> None:
    """The page names the plots that are beside it, and no others."""
    printed = pages.write(sample(), tmp_path)
    text = (tmp_path / "proxy.md").read_text()
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    assert drawn == set(plots.all_of(sample()))
    assert drawn == {
        name for name in [*plots.COSTS, "users.svg", "memory.svg", "refresh.svg", "latency-100.svg"] if f"({name})" in text
    }
    assert "not met" in printed


def test_an_empty_run_has_a_page() -> None:
    """If nothing was measured, the page says that."""
    about = sample().about
    assert "Not measured." in pages.page(Results(about=about))


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
    """Its row has a ratio, in the order of sizes."""
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
    """The remaining goals compare the figures that they name."""
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
    """The newer one needs a given binary. The older Edge was not the measured version, or was not there."""
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


SPACE = "{http://www.w3.org/2000/svg}"
FLAGS, COST = Axis("flags"), Axis("µs")


def drawn(lines: list[Line], x: Axis = FLAGS, y: Axis = COST) -> ElementTree.Element:
    """Return a chart, parsed."""
    return ElementTree.fromstring(svg.chart("cost & <more>", lines, x, y))


def texts(root: ElementTree.Element) -> list[str]:
    """Return all texts."""
    return [each.text or "" for each in root.iter(f"{SPACE}text")]


def places(root: ElementTree.Element) -> list[tuple[float, float]]:
    """Return the positions of the dots."""
    return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in root.iter(f"{SPACE}circle")]


def test_names_are_escaped_and_shown() -> None:
    """Title, axes and lines show their names, with any characters."""
    found = texts(drawn([Line("a < b", [(1, 1), (10, 10)])]))
    assert {"cost & <more>", "flags", "µs", "a < b"} <= set(found)


def test_powers_of_ten_are_evenly_spread() -> None:
    """On logarithmic axes equal factors are equal distances."""
    (x1, y1), (x2, y2), (x3, y3) = places(drawn([Line("a", [(10, 1), (100, 10), (1000, 100)])]))
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
    assert x1 < x2
    assert y1 > y2


def test_linear_axes_begin_at_zero() -> None:
    """On a linear axis twice the value is twice as high."""
    root = drawn([Line("a", [(1, 30), (2, 60)])], y=Axis("MB", logarithmic=False))
    (_, low), (_, high) = places(root)
    base = svg.HEIGHT - svg.BOTTOM
    assert base - high == pytest.approx(2 * (base - low), abs=0.2)
    assert "0" in texts(root)


@pytest.mark.parametrize("points", [[(5000.0, 7.3)], [(10.0, 0.02), (5000.0, 54321.0)], [(1.0, 1.0), (1.0, 1.0)]])
def test_everything_is_inside(points: list[tuple[float, float]]) -> None:
    """No dot leaves the area between the axes, for one point as for seven decades."""
    for x, y in places(drawn([Line("a", points)])):
        assert svg.LEFT <= x <= svg.WIDTH - svg.RIGHT
        assert svg.TOP <= y <= svg.HEIGHT - svg.BOTTOM


def test_nothing_to_draw_is_a_chart_as_well() -> None:
    """Without points there are axes only."""
    assert places(drawn([])) == []
