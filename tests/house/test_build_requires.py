"""What a build in an environment of its own (`pip install .`) has to have: every typed library that mypyc looks into."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "flagsvc"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NAMES = {"jinja2": "Jinja2", "prometheus_client": "prometheus-client"}
"""Import name → name of the distribution, where they differ."""


def compiled() -> set[Path]:
    """Return the modules that are compiled."""
    lines = ((SOURCE / "compiled.txt").read_text()).splitlines()
    return {SOURCE / name for line in lines if (name := line.split("#")[0].strip())}


def imported(module: Path) -> Iterator[str]:
    """Give the dotted names that a module imports anywhere, as mypy follows them."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files(dotted: str) -> set[Path]:
    """Return the files of our own module or package `dotted`, with the packages it is in."""
    parts = dotted.split(".")[1:]
    packages = {SOURCE.joinpath(*parts[:length], "__init__.py") for length in range(len(parts) + 1)}
    return {path for path in (*packages, SOURCE.joinpath(*parts).with_suffix(".py")) if path.is_file()}


def looked_into() -> set[str]:
    """Return the top names of what the compiled modules import, and what that imports, outside of us and of Python."""
    todo, seen, outside = compiled(), set[Path](), set[str]()
    while todo:
        module = todo.pop()
        seen.add(module)
        for dotted in imported(module):
            top = dotted.partition(".")[0]
            if top == "flagsvc":
                todo |= files(dotted) - seen
            elif top not in sys.stdlib_module_names:
                outside.add(top)
    return outside


def test_a_build_of_its_own_has_every_library_that_mypyc_looks_into() -> None:
    """What mypy may miss (pyproject.toml, `ignore_missing_imports`) apart; with the bounds of the installed package."""
    override = PROJECT["tool"]["mypy"]["overrides"][0]
    untyped = {pattern.removesuffix(".*") for pattern in override["module"] if override["ignore_missing_imports"]}
    requires = set(PROJECT["build-system"]["requires"])
    needed = {NAMES.get(name, name) for name in looked_into() - untyped}
    declared = [*PROJECT["project"]["dependencies"], *chain(*PROJECT["project"]["optional-dependencies"].values())]
    bounds = {re.split(r"[><=;\[ ]", line)[0]: line for line in declared}
    assert needed
    assert {bounds[name] for name in needed} <= requires
