"""The page and the raw results: everything measured is there, and nothing that names this machine."""

from __future__ import annotations

import getpass
import json
import socket
from pathlib import Path

import pytest

import engine
from harness import goals, pages, plots, readme, results
from harness.results import EDGE_ONE, EQUAL, OURS, REFERENCE, REPEATED, Footprint, Results
from support.bench_scene import cell, sample


def test_raw_results_are_read_as_written(tmp_path: Path) -> None:
    """The page can be written again from the raw file alone."""
    results.write(sample(), tmp_path / "proxy.json")
    assert results.read(tmp_path / "proxy.json") == sample()


def test_the_page_has_figures_spread_and_ratios() -> None:
    """A row of the matrix has each server's figure and what confirms it, how many times ours, requests a second, and bytes."""
    text = pages.page(sample())
    assert "| reference / ours, the peers' shape | Edge, one thread / ours, the peers' shape | ours/s | bytes |" in text
    assert "| 10 | 10.0 +5 % | 11.0 +5 % | 200 +5 % | 50.0 +5 % | 18.2 | 4.5 | 95,238 | 900 |" in text


def test_a_form_without_equal_shape_has_no_column_for_it() -> None:
    """Its ratios are those of ours as it comes."""
    found = sample()
    found.cells += [cell(REFERENCE, 330, status=304)]
    table = pages.of_form(found, "GET list", "identity", 304)
    assert table.splitlines()[0].endswith("| reference / ours | Edge, one thread / ours | ours/s | bytes |")
    assert "| 10 | 11.0 +5 % | 330 +5 % | – | 30.0 | – |" in table


def test_the_bytes_of_answers_tell_whether_they_are_equal() -> None:
    """Each server has its own, with a mark where an answer was not compressed though gzip was asked for."""
    found = sample()
    found.cells += [cell(OURS, 10, encoding="gzip", encoded=0.0), cell(EQUAL, 10, encoding="gzip", encoded=1.0)]
    text = "\n".join(pages.sizes_of_answers(found))
    assert "|  | flags | ours | ours, the peers' shape | reference | Edge, one thread |" in text
    assert "| identity | 10 | 900 | 1,100 | 900 | 900 |" in text
    assert "| gzip | 10 | 900, not packed | 900 | – | – |" in text


def test_the_limit_is_the_first_table() -> None:
    """It has the three costs, the ratio with the range of the rounds, what must be, the goal, and the state, also in print."""
    found = sample()
    found.cells += [cell(OURS, 15, 50, "limit", users=0), cell(OURS, 10, 50, "limit", users=REPEATED)]
    tables = [block for block in pages.goal_tables(found) if block.startswith("| ")]
    lines = tables[0].splitlines()
    assert lines[0].startswith(
        "| flags | from the answer cache, µs | evaluated, µs | without classes, µs | ratio | must"
    )
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
    assert (
        f"- Rounds of a cell: 1–3; {len(found.cells) - 2} of {len(found.cells)} cells steady; half of the cells" in text
    )


def test_mixed_traffic_and_two_processes_are_shown() -> None:
    """The ratio of mixed traffic has the range of its rounds. The control is shown beside the two workers and in their goal."""
    text = pages.page(sample())
    assert "| 10 | ours | 10.0 +5 % | 40.0 +5 % | 10.0 +5 % | 11.5 +5 % | 1.00 | 1.00–1.00 |" in text
    assert "| ours, two processes | 100 | 11.5 +5 % |" in text
    assert "| 1.20 times | **not met**; two separate processes: 1.15 times |" in text


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
        name
        for name in [*plots.COSTS, "users.svg", "memory.svg", "refresh.svg", "latency-100.svg"]
        if f"({name})" in text
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
