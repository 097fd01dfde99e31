"""The page and the raw results: everything measured is there, and nothing that names this machine."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

import pytest
from bench_scene import sample

from harness import goals, pages, plots, results
from harness.results import EDGE_ONE, OURS, Results


def test_raw_results_are_read_as_written(tmp_path: Path) -> None:
    """The page can be written again from the raw file alone."""
    results.write(sample(), tmp_path / "proxy.json")
    assert results.read(tmp_path / "proxy.json") == sample()


def test_the_page_has_figures_spread_and_ratios() -> None:
    """A row of the matrix has each server's median with its spread, how many times ours, requests a second, and bytes."""
    assert "| 10 | 10.0 ±10 % | 200 ±10 % | 50.0 ±10 % | 20.0 | 5.0 | 100,000 | 900 |" in pages.page(sample())


def test_what_is_missing_is_said() -> None:
    """What was left out and what failed stand on the page; a cell that is not there is a dash."""
    found = sample()
    found.failed.append("ours: something")
    text = pages.page(found)
    assert "- Left out: Edge: Rust (cargo) is not installed" in text
    assert "- **Failed**: ours: something" in text
    assert "| 1,000 | 20.0 ±10 % | 1,000 ±10 % | – | 50.0 | – |" in text


def test_a_quick_run_says_so() -> None:
    """Nobody takes rough figures for the whole."""
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
    """Nobody has to guess whether different users were answered from memory."""
    found = sample()
    assert "our cache" not in pages.page(found)
    found.cells[0].cached = 0.012
    assert "in the 200s of the matrix: at most 1.2 %" in pages.page(found)


def test_medians_and_spread() -> None:
    """A cell's figure is the median of its rounds, the spread their range over it."""
    cell = sample().cells[0]
    cell.cpu = [10.0, 14.0, 11.0]
    assert cell.us == 11.0
    assert cell.spread == pytest.approx(4 / 11)


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
    """Where nothing could be measured, the page says that."""
    about = sample().about
    assert "Not measured." in pages.page(Results(about=about))


def test_nothing_names_this_machine(tmp_path: Path) -> None:
    """Neither a path nor a name of the machine or of who ran it comes into the pages."""
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
