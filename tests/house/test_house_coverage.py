"""The minimum coverage: which package a module counts for, and which coverage is too low."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support import coverage_floors

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "flagsvc"


def file(ran: int, branches: int = 0) -> dict[str, Any]:
    """Return what a report says of a module of ten lines and four branches, of which so many ran."""
    summary = {"covered_lines": ran, "num_statements": 10, "covered_branches": branches, "num_branches": 4}
    return {"summary": summary, "missing_lines": list(range(ran, 10)), "missing_branches": [[1, 2]] * (4 - branches)}


def report(folder: Path, **files: dict[str, Any]) -> str:
    """Write a report of modules, `_` in place of `/`; return its path."""
    path = folder / "coverage.json"
    named = {f"src/flagsvc/{name.replace('_', '/')}.py": each for name, each in files.items()}
    path.write_text(json.dumps({"files": named}))
    return str(path)


def test_every_floor_is_of_a_package() -> None:
    """Each minimum names an existing package, so that renaming a package must rename its minimum."""
    packages = coverage_floors.floors()
    assert all((PACKAGE / package).is_dir() or (PACKAGE / f"{package}.py").is_file() for package in packages)
    assert all(0 <= floor <= 100 for floor in packages.values())


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("src/flagsvc/engine/values/cidr.py", "engine"),
        ("/lib/src/flagsvc/server/store/schema.py", "server/store"),
        ("src/flagsvc/server/routes.py", "server"),
        ("src/flagsvc/core/log.py", "core/log"),
        ("src/flagsvc/new/package.py", "new"),
    ],
)
def test_the_innermost_package_counts(path: str, package: str) -> None:
    """A module counts for one package."""
    assert coverage_floors.package_of(path, ["engine", "server", "server/store", "core/log"]) == package


def test_a_package_below_its_floor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is an error, and the output names the lines and branches that did not run."""
    assert coverage_floors.main([report(tmp_path, engine_run=file(10, 4), engine_parse=file(9, 4))]) == 1
    printed = capsys.readouterr().out
    assert " 96.43%   100%  below its floor\n" in printed
    assert "  src/flagsvc/engine/parse.py: 9\n" in printed and "run.py" not in printed


def test_packages_at_their_floors(tmp_path: Path) -> None:
    """A package without a minimum must be covered completely; only requested packages count."""
    path = report(tmp_path, engine_run=file(10, 4), process_serve=file(10, 3), new_folder=file(9, 4))
    assert coverage_floors.main([path]) == 1
    assert coverage_floors.main([path, "engine", "process"]) == 0
