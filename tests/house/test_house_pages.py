"""The generated pages match the present tables, and pages that name places name those that exist."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from flagsvc.settings.edge import ROWS, EdgeVariable
from flagsvc.settings.real_server import ROWS as REAL_ROWS
from flagsvc.settings.real_server import RealVariable
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

ROOT = Path(__file__).resolve().parents[2]
PICTURE = re.compile(r"!\[([^]]*)\]\([^)]*screenshots/([^)/]+)\)")
"""The description and the file of a picture."""


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"flagsvc_docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


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


def test_generated_pages_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make docs` would change nothing: no page with a generated part, and no file in deploy/observe/."""
    written: list[tuple[Path, str]] = []
    monkeypatch.setattr(Path, "write_text", lambda path, text: written.append((path, text)))
    script("generate").main()
    assert {path.name for path, text in written if path.read_text() != text} == set()
    assert len({path for path, _ in written}) > 20


def test_pages_of_the_first_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a release in a package index no page installs from the folder of the source: `make docs` writes other commands."""
    made = script("generate")
    monkeypatch.setattr(made, "PACKAGE", "flagsvc")
    monkeypatch.setattr(made, "WHERE", "")
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*/*.md")]
    texts = [made.with_package(page.read_text()) for page in pages]
    assert not [text for text in texts if re.search(r"in the folder of the source|install '?\.|--from \.|package index has", text)]
    assert "pip install flagsvc\n" in texts[0] and "uvx flagsvc proxy" in "".join(texts)
    assert texts == [made.with_package(text) for text in texts]


def test_the_readme_names_the_versions_of_the_run_that_is_kept() -> None:
    """No text of it names another version than the raw results."""
    text, made = (ROOT / "README.md").read_text(), script("generate")
    versions = made.results.read(ROOT / "docs" / "benchmarks" / "proxy.json").about["versions"]
    named = re.findall(r"(@unleash/proxy|Unleash Edge|Edge|nginx)`?(?: is)? (\d+(?:\.\d+)+)", text)
    assert {name for name, _ in named} >= {"@unleash/proxy", "Unleash Edge"}
    assert {version for _, version in named} <= set(versions.values())


def test_the_page_of_the_log_has_every_line() -> None:
    """Each call of a logger is in it, and the page says what each error means."""
    made = script("generate").log_lines
    lines = made.find_lines()
    called = (re.findall(r"(\w+)\.(?:debug|info|warn|fatal)\(", path.read_text()) for path in made.SOURCE.rglob("*.py"))
    assert {name for names in called for name in names} == {"log", "_log", "logger"}
    assert {line.message for line in lines if line.levels & {"error", "fatal"}} <= set(made.MEANINGS)
    assert set(made.MEANINGS) <= {line.message for line in lines}


def test_the_page_of_the_log_finds_what_varies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It follows a message through names, conditions, callers and tables, and refuses what it cannot follow."""
    made = script("generate").log_lines
    monkeypatch.setattr(made, "SOURCE", tmp_path)
    source = tmp_path / "some.py"
    source.write_text(FOLLOWED)
    found = {line.message: (line.levels, line.fields) for line in made.find_lines()}
    assert found == {
        "one or…": ({"warn", "debug"}, {"a"}),
        "of a caller": ({"error"}, {"b", "more"}),
        "of a table": ({"info"}, {"c"}),
        "begins": ({"warn", "error", "debug"}, {"error", "kind"}),
        "ends": ({"warn"}, set()),
    }
    for lost in ("def lost(log, text):\n    log.warn(text.lower())\n", "def lost(log):\n    return [log.warn]\n"):
        source.with_stem(f"lost{len(lost)}").write_text(lost)
        with pytest.raises(SystemExit, match="cannot be found out"):
            made.find_lines()
        source.with_stem(f"lost{len(lost)}").unlink()


FOLLOWED = """
TABLE = {1: "of a table"}


def write(log, number):
    send = log.warn if number else log.debug
    send(f"one or{number}", a=1)
    fields = {"c": 1}
    log.info(TABLE[number], **fields)
    tell(log, "of a caller", more=2)
    return OutageLog(log, "begins", "ends")


def tell(log, event, **fields):
    log.error(event, b=1, **fields)
"""


@pytest.mark.parametrize(("table", "rows"), [("edge_table", ROWS), ("real_table", REAL_ROWS)])
def test_every_variable_stands_in_its_table_once(table: str, rows: Sequence[EdgeVariable | RealVariable]) -> None:
    """The table of Edge has the variables of Edge, and the table of a real server has those of the server."""
    cells = [line.split("|")[1] for line in getattr(script("generate"), table)().splitlines()[2:]]
    assert re.findall(r"`([A-Z]\w+)`", "".join(cells)) == [row.name for row in rows]


def test_the_table_of_limits_is_complete() -> None:
    """Both programs stand in it, and what bounds callers is not missing."""
    table = script("generate").limit_table()
    assert all(f"`{option.name}`" in table for option in (*OPTIONS, *SERVER_OPTIONS) if option.stops)


def test_every_folder_of_tests_is_explained() -> None:
    """CONTRIBUTING.md has a row for each folder below tests/."""
    rows = re.findall(r"^\| `(\w+)/` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(rows) == folders


def test_the_pages_on_moving_over_have_every_difference() -> None:
    """Each page has every row that explains a difference in the tests that compare."""
    made = script("generate")
    for page, tables in (
        (made.REFERENCE_PAGE, [made.diff_exclusions.EXCLUSIONS]),
        (made.EDGE_PAGE, [made.edge_exclusions.EXCLUSIONS, made.edge_malformed.ODD]),
    ):
        cells = {cell.lower() for cell in re.findall(r"^\| (.+?) \|", page.read_text(), re.MULTILINE)}
        for table in tables:
            assert table and {name.lower() for name, _ in made.named(table)} <= cells
