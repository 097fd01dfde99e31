"""A reader finds the tests of a module, at the mirrored place or where the test package there says, and the helpers of tests."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "flagsvc"
MODULES = [
    path.relative_to(PACKAGE)
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.stem not in ("__init__", "__main__") and path.parent.name != "versions"
]
"""The modules of flagsvc. A step of a migration has no tests of its own."""
PLACE = re.compile(r"tests/[\w/.*]*[\w*]")
"""A file or a folder, which may have wildcards."""


@cache
def named_in(folder: Path) -> list[str]:
    """Return where the docstring of the nearest test package with a docstring, from a folder on, says that tests are."""
    if folder == folder.parent:
        return []
    package = ROOT / "tests" / "unit" / folder / "__init__.py"
    text = ast.get_docstring(ast.parse(package.read_text())) if package.exists() else None
    return PLACE.findall(text) if text else named_in(folder.parent)


def places(module: Path) -> list[str]:
    """Return where the tests of a module are, by the docstring of a test package."""
    return named_in(module.parent)


def is_mirrored(module: Path) -> bool:
    folder, name = ROOT / "tests" / "unit" / module.parent, module.stem.rstrip("_")
    return any(folder.glob(f"test_{name}.py")) or any(folder.glob(f"test_{name}_*.py"))


def test_a_module_has_tests_where_a_reader_looks() -> None:
    """`cli/health.py` has `tests/unit/cli/test_health.py`, or the docstring of `tests/unit/cli/__init__.py` names its tests."""
    assert [str(module) for module in MODULES if not is_mirrored(module) and not places(module)] == []


def test_the_named_tests_are_there() -> None:
    """Every file and folder that a docstring of a test package names exists."""
    named = {place for module in MODULES for place in places(module)}
    assert len(named) > 30
    assert not [place for place in sorted(named) if not any(ROOT.glob(place))]


def test_every_helper_has_its_words() -> None:
    """The docstring of `tests/support/__init__.py` names each module of that folder."""
    page = ROOT / "tests" / "support" / "__init__.py"
    named = set(re.findall(r"`(\w+)`", page.read_text()))
    assert {path.stem for path in page.parent.glob("*.py")} - {"__init__"} - named == set()
