"""The generated pages match the present tables, and pages that name places name those that exist."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from flagsvc.settings.edge import ROWS
from flagsvc.settings.real_server import ROWS as REAL_ROWS
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

ROOT = Path(__file__).resolve().parents[2]
PICTURE = re.compile(r"!\[([^]]*)\]\([^)]*screenshots/([^)/]+)\)")
"""The description and the file of a picture."""


def script(name: str) -> ModuleType:
    """Return a script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"flagsvc_docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def generator() -> ModuleType:
    """Return docs/generate.py as a module."""
    return script("generate")


def test_pictures() -> None:
    """The repository has the pictures that `make screenshots` takes, small, and a guide shows each with a description."""
    pictures = script("screenshots")
    kept = {each.file(*look) for each in (*pictures.SERVER, *pictures.PROXY) for look in each.kept}
    assert {each.name for each in pictures.HERE.iterdir()} == kept
    assert sum(each.stat().st_size for each in pictures.HERE.iterdir()) < 1_500_000
    guides = [ROOT / "README.md", *(ROOT / "docs" / "how-to").glob("*.md")]
    shown = [pair for each in guides for pair in PICTURE.findall(each.read_text())]
    assert {file for _, file in shown} == kept
    assert all(len(words.split()) > 4 for words, _ in shown)


def test_the_costs_in_the_readme_are_of_the_run_that_is_kept() -> None:
    """`make docs` would change nothing: caption and table are of the raw results. Nothing else in it names another version."""
    text, made = (ROOT / "README.md").read_text(), generator()
    assert made.readme(text) == text
    versions = made.results.read(ROOT / "docs" / "benchmarks" / "proxy.json").about["versions"]
    named = re.findall(r"(@unleash/proxy|Unleash Edge|Edge|nginx)`?(?: is)? (\d+(?:\.\d+)+)", text)
    assert {name for name, _ in named} >= {"@unleash/proxy", "Unleash Edge"}
    assert {version for _, version in named} <= set(versions.values())


def test_the_list_of_options_on_the_page_on_installing_is_current() -> None:
    """`make docs` would change nothing."""
    made = generator()
    text = made.INSTALLING.read_text()
    assert made.installing(text) == text


def test_the_page_of_the_metrics_is_current() -> None:
    """`make docs` would change nothing."""
    assert (ROOT / "docs" / "reference" / "metrics.md").read_text() == generator().metrics()


def test_the_table_of_edge_is_current() -> None:
    """`make docs` would change nothing, and every variable of Edge stands in it once."""
    made = generator()
    text = made.EDGE_PAGE.read_text()
    assert made.edge_page(text) == text
    cells = [line.split("|")[1] for line in made.edge_table().splitlines()[2:]]
    assert re.findall(r"`([A-Z]\w+)`", "".join(cells)) == [row.name for row in ROWS]


def test_the_table_of_a_real_server_is_current() -> None:
    """`make docs` would change nothing, and every variable of a real server stands in it once."""
    made = generator()
    text = made.REAL_PAGE.read_text()
    assert made.real_page(text) == text
    cells = [line.split("|")[1] for line in made.real_table().splitlines()[2:]]
    assert re.findall(r"`([A-Z]\w+)`", "".join(cells)) == [row.name for row in REAL_ROWS]


def test_the_table_of_limits_is_current() -> None:
    """`make docs` would change nothing; both programs stand in it, and what bounds callers is not missing."""
    text = (ROOT / "SECURITY.md").read_text()
    made = generator()
    assert made.security(text) == text
    table = made.limit_table()
    assert all(f"`{option.name}`" in table for option in (*OPTIONS, *SERVER_OPTIONS) if option.stops)


def test_every_folder_of_tests_is_explained() -> None:
    """CONTRIBUTING.md has a row for each folder below tests/."""
    rows = re.findall(r"^\| `(\w+)/` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(rows) == folders


@pytest.mark.parametrize("peer", ["reference", "edge"])
def test_the_differences_on_the_pages_on_moving_over_are_current(peer: str) -> None:
    """`make docs` would change nothing, and the page has every row that explains a difference in the tests that compare."""
    made = generator()
    page, write = {
        "reference": (made.REFERENCE_PAGE, made.reference_page),
        "edge": (made.EDGE_PAGE, made.edge_page),
    }[peer]
    text = page.read_text()
    assert write(text) == text
    cells = {cell.lower() for cell in re.findall(r"^\| (.+?) \|", text, re.MULTILINE)}
    tables = {
        "reference": [made.diff_exclusions.EXCLUSIONS],
        "edge": [made.edge_exclusions.EXCLUSIONS, made.edge_malformed.ODD],
    }[peer]
    for table in tables:
        assert table and {name.lower() for name, _ in made.named(table)} <= cells
