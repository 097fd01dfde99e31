"""The extras: pyproject.toml lists what core/extras.py looks for, and the plain package runs without any of it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import files
from pathlib import Path

import pytest

from flagsvc.core.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WITHOUT = """
import sys
from importlib import import_module

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
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


def commands() -> tuple[str, ...]:
    """Return the module of every command."""
    return tuple(f"flagsvc.cli.{path.stem}" for path in sorted((ROOT / "src/flagsvc/cli").glob("[a-z]*.py")))


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_each_extra_is_looked_for_by_the_modules_that_its_packages_bring(extra: str) -> None:
    """Every package of the extra brings one of the modules, and every module comes from one of the packages."""
    names = [name_of(line) for line in PROJECT["optional-dependencies"][extra]]
    brought = [{path.parts[0].partition(".")[0] for path in files(name) or ()} & {*EXTRAS[extra]} for name in names]
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
    ],
    ids=["proxy", "late", "commands", "batch", "storage", "server"],
)
def test_what_an_extra_does_not_serve_is_imported_without_it(
    installed: tuple[str, ...], modules: tuple[str, ...]
) -> None:
    """With only `installed` beside the plain package, these modules can be imported."""
    there = {module for extra in installed for module in EXTRAS[extra]}
    missing = {module for row in EXTRAS.values() for module in row} - there
    program = WITHOUT.format(missing=missing, modules=modules)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
