"""The rules of this repository: imports go one way, files and functions stay small, pinned packages are the declared ones."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Container
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from support import forms
from support.statements import imports, nodes_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "flagsvc"
MODULES = sorted(PACKAGE.rglob("*.py"))


NAMES = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
"""Module → its file."""
TESTS = {
    ".".join(path.relative_to(ROOT / "tests").with_suffix("").parts) if "support" in path.parts else path.stem: path
    for path in sorted((ROOT / "tests").rglob("*.py"))
    if path.name not in {"__init__.py", "conftest.py"}
}
"""Module of the tests, as other modules of the tests import it → its file."""


def test_arrows_go_only_to_lower_levels() -> None:
    """The contracts of pyproject.toml hold: levels, siblings that do not import each other, a pure engine. Late imports count."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def modules_of(path: Path, names: Container[str]) -> set[str]:
    """Return the modules of `names` that a module imports anywhere in it."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                found.add(module if module in names else node.module)
    return {name for name in found if name in names}


@pytest.mark.parametrize("names", [NAMES, TESTS], ids=["sources", "tests"])
def test_no_module_imports_itself_by_way_of_others(names: dict[str, Path]) -> None:
    """The modules have no import cycle, late imports and imports for types included."""
    arrows = {name: modules_of(path, names) - {name} for name, path in names.items()}
    TopologicalSorter(arrows).prepare()  # raises CycleError, which names the modules


def test_functions_stay_small() -> None:
    """No function has more than 60 lines."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    lengths = {
        f"{path}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, functions)
    }
    assert len(lengths) > 1000
    assert {name: length for name, length in lengths.items() if length > 60} == {}


def requirements(text: str) -> set[str]:
    """Return requirement lines without comments."""
    return {line.strip().replace('"', "'") for line in text.splitlines() if line.strip() and not line.startswith(("#", "-r"))}


@cache
def declared() -> list[str]:
    """Return what the package and its extras need; the extra `all` names only extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert extras["all"] == [f"flagsvc[{','.join(sorted(extras.keys() - {'all'}))}]"]
    return [*project["dependencies"], *(line for name, lines in extras.items() if name != "all" for line in lines)]


def test_what_is_declared_is_what_is_pinned() -> None:
    """pyproject.toml with its extras, runtime.in and the pinned files name the same packages; every pin has a hash."""
    in_file = requirements((ROOT / "requirements" / "runtime.in").read_text())
    assert requirements("\n".join(declared())) == in_file
    for name in ("runtime", "dev"):
        pinned = (ROOT / "requirements" / f"{name}.txt").read_text()
        assert "://" not in pinned
        pins = re.findall(r"^([a-z0-9_.-]+(?:\[\w+\])?)==", pinned, re.MULTILINE | re.IGNORECASE)
        assert "psycopg[binary]" in pins, "without its extra in the pin, pip may take a newer release, and refuse it"
        assert len(re.findall(r"^    --hash=sha256:", pinned, re.MULTILINE)) >= len(pins)


DISTRIBUTIONS = {"opentelemetry": "opentelemetry-sdk", "re2": "google-re2", "yaml": "PyYAML"}
"""Import name → name of the distribution, where they differ by more than an underscore."""


def distribution(name: str) -> str:
    """Return a distribution's name as all its spellings are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_is_imported_is_declared() -> None:
    """Every third-party package that a module imports is a dependency of ours, not only one of another dependency."""
    known = {distribution(re.split(r"[^A-Za-z0-9._-]", line)[0]) for line in declared()}
    tops = {name.split(".")[0]: path for path in MODULES for name in imports(path)}
    foreign = {name: tops[name] for name in tops.keys() - sys.stdlib_module_names - {"flagsvc"}}
    assert {name: path for name, path in foreign.items() if distribution(DISTRIBUTIONS.get(name, name)) not in known} == {}


def test_what_is_compiled_exists() -> None:
    """Each line of compiled.txt is a module, and every module of the engine is in it."""
    listed = forms.listed()
    assert len(listed) == len(set(listed))
    assert all(path.is_file() for path in listed)
    assert {path for path in (PACKAGE / "engine").rglob("*.py") if path.name != "__init__.py"} <= set(listed)


def test_records_of_decisions_are_listed() -> None:
    """Every record stands in the index, and every line of the index has its record."""
    folder = ROOT / "docs" / "decisions"
    records = {path.name for path in folder.glob("[0-9]*.md")}
    assert set(re.findall(r"\(([0-9][^)]*\.md)\)", (folder / "README.md").read_text())) == records


LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link of a page names a file that exists."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [(page, target) for page in pages for target in LINK.findall(page.read_text())]
    assert len(links) > 100
    assert [f"{page} links to {target}" for page, target in links if not (page.parent / target).exists()] == []


def test_files_of_tests_have_names_of_their_own() -> None:
    """pytest imports those outside of packages by their names: of two files with one name it would not collect the second."""
    files = (path for path in (ROOT / "tests").rglob("test_*.py") if not path.with_name("__init__.py").exists())
    names = [path.name for path in files]
    assert sorted(names) == sorted(set(names))
