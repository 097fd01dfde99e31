"""The extras: pyproject.toml lists what core/extras.py looks for, and the plain package runs without any of it.

What a build in an environment of its own (`pip install .`) has to have: every typed library that mypyc looks into.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import partial
from importlib.metadata import files
from itertools import chain
from pathlib import Path, PurePath

import pytest

from flagsvc.core.extras import EXTRAS
from support import forms
from support.statements import imports

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "flagsvc"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
WITHOUT = """
import sys
from importlib import import_module

class Without:
    def find_spec(self, name, path=None, target=None):
        if any(f"{{name}}.".startswith(f"{{each}}.") for each in {missing}):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Without())
for name in {modules}:
    import_module(name)
"""
"""A program that imports modules where others are not installed."""
PLAIN = (
    "flagsvc.proxy.application",
    "flagsvc.process.serve",
    "flagsvc.process.serve_workers",
    "flagsvc.process.worker",
    "flagsvc.testing",
)
"""What the proxy runs, in one process or several, what is mounted, and what users test with."""
SCRAPED = ("flagsvc.http.metric_families", "flagsvc.proxy.api.docs", "re2")
"""What a proxy imports late: the metrics, the page of the documentation, regular expressions."""
COMMANDS = [*(ROOT / "src/flagsvc/cli/batch").glob("*.py"), *(ROOT / "src/flagsvc/cli/moving").glob("*.py")]
IMPORT = re.compile(r"^ +from (flagsvc\.[\w.]+) import", re.MULTILINE)
BATCH = (
    "flagsvc.cli.batch.yaml_files",
    "flagsvc.cli.move",
    *sorted({name for path in COMMANDS for name in IMPORT.findall(path.read_text())}),
    "rich.progress",
)
"""What the commands of the extra `cli` import, also those modules that a function imports when it needs them."""
SERVER = ("flagsvc.process.serve_flags", "flagsvc.server.store.seed.file", "psycopg", "alembic.command")


def name_of(requirement: str) -> str:
    """Return the name of a required distribution as all its spellings are compared."""
    return re.sub(r"[-_.]+", "-", re.split(r"[><=;\[ ]", requirement)[0]).lower()


def is_of(module: str, path: PurePath) -> bool:
    """Return whether a file of a distribution is a module, or in its package."""
    return ".".join(path.parts).startswith(f"{module}.")


def commands() -> tuple[str, ...]:
    return tuple(f"flagsvc.cli.{path.stem}" for path in sorted((ROOT / "src/flagsvc/cli").glob("[a-z]*.py")))


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_each_extra_is_looked_for_by_the_modules_that_its_packages_bring(extra: str) -> None:
    """Every package of the extra brings one of the modules, and every module comes from one of the packages."""
    names = [name_of(line) for line in PROJECT["optional-dependencies"][extra]]
    brought = [{module for module in EXTRAS[extra] if any(map(partial(is_of, module), files(name) or ()))} for name in names]
    assert all(brought)
    assert set().union(*brought) == {*EXTRAS[extra]}


def test_every_extra_has_a_row() -> None:
    """`all` brings the others, and nothing looks for it."""
    assert PROJECT["optional-dependencies"].keys() == EXTRAS.keys() | {"all"}


@pytest.mark.parametrize(
    ("installed", "modules"),
    [
        ((), PLAIN),
        ((), SCRAPED),
        ((), commands()),
        (("cli",), BATCH),
        (("redis",), ("flagsvc.proxy.redis",)),
        (("server",), SERVER),
        (("otel",), ("flagsvc.process.otlp",)),
    ],
    ids=["proxy", "late", "commands", "batch", "storage", "server", "telemetry"],
)
def test_what_an_extra_does_not_serve_is_imported_without_it(installed: tuple[str, ...], modules: tuple[str, ...]) -> None:
    """With only `installed` beside the plain package, these modules can be imported."""
    there = {module for extra in installed for module in EXTRAS[extra]}
    missing = {module for row in EXTRAS.values() for module in row} - there
    program = WITHOUT.format(missing=missing, modules=modules)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def files_of(dotted: str) -> set[Path]:
    """Return the files of our own module or package `dotted`, with the packages it is in."""
    parts = dotted.split(".")[1:]
    packages = {SOURCE.joinpath(*parts[:length], "__init__.py") for length in range(len(parts) + 1)}
    return {path for path in (*packages, SOURCE.joinpath(*parts).with_suffix(".py")) if path.is_file()}


def looked_into() -> set[str]:
    """Return the top names of what the compiled modules import, and what that imports, outside of us and of Python."""
    todo, seen, outside = set(forms.listed()), set[Path](), set[str]()
    while todo:
        module = todo.pop()
        seen.add(module)
        for dotted in imports(module):
            top = dotted.partition(".")[0]
            if top == "flagsvc":
                todo |= files_of(dotted) - seen
            elif top not in sys.stdlib_module_names:
                outside.add(top)
    return outside


def test_a_build_of_its_own_has_every_library_that_mypyc_looks_into() -> None:
    """What mypy may miss (pyproject.toml, `ignore_missing_imports`) apart; with the bounds of the installed package."""
    override = PYPROJECT["tool"]["mypy"]["overrides"][0]
    untyped = {pattern.removesuffix(".*") for pattern in override["module"] if override["ignore_missing_imports"]}
    requires = set(PYPROJECT["build-system"]["requires"])
    needed = {name_of(name) for name in looked_into() - untyped}
    declared = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    bounds = {name_of(line): line for line in declared}
    assert needed
    assert {bounds[name] for name in needed} <= requires
