"""The minimum coverage: which package a module counts for, and which coverage is too low."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support import coverage_floors
from support.covering import OUTPUT, Covering

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "flagsvc"


def file(ran: int, branches: int = 4) -> dict[str, Any]:
    """Return what a report says of a module of ten lines and four branches, of which so many ran."""
    covered = {"covered_lines": ran, "missing_lines": 10 - ran, "covered_branches": branches, "missing_branches": 4 - branches}
    return {"summary": covered, "missing_lines": list(range(ran, 10)), "missing_branches": [[1, 2]] * (4 - branches)}


def test_every_floor_is_of_a_package() -> None:
    """Each minimum names an existing package, so that renaming a package must rename its minimum."""
    packages = coverage_floors.floors()
    assert all((PACKAGE / package).is_dir() or (PACKAGE / f"{package}.py").is_file() for package in packages)
    assert all(0 <= floor <= 100 for floor in packages.values())


def test_the_innermost_package_counts() -> None:
    """A module counts for one package: that of the longest path with a minimum, or its own."""
    own = {"engine/values/cidr": "engine", "server/store/schema": "server/store", "server/routes": "server", "new/package": "new"}
    for module, package in own.items():
        assert coverage_floors.package_of(f"/lib/src/flagsvc/{module}.py", ["engine", "server", "server/store"]) == package


def test_packages_and_their_floors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Less than the minimum is an error that names the lines; without a minimum all must run; only requested packages count."""
    files = {"engine/run": file(10), "engine/parse": file(9), "process/serve": file(10, 3), "new/folder": file(9)}
    (tmp_path / "coverage.json").write_text(json.dumps({"files": {f"src/flagsvc/{name}.py": files[name] for name in files}}))
    for asked, code in (((), 1), (("engine",), 1), (("new",), 1), (("process",), 0)):
        assert coverage_floors.main([str(tmp_path / "coverage.json"), *asked]) == code
    printed = capsys.readouterr().out
    assert " 96.43%   100%  below its floor\n" in printed
    assert "  src/flagsvc/engine/parse.py: 9\n" in printed and "run.py" not in printed


SIGN = """\
def sign(number):
    if number < 0:
        return -1
    return 1
"""


def test_what_ran_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process of a run tells its lines and branches, and the report has those of all."""
    monkeypatch.setattr(importlib.util, "spec_from_file_location", importlib.util.spec_from_file_location)
    (tmp_path / "signs").mkdir()
    (tmp_path / "signs" / "__init__.py").write_text(SIGN)

    def run(number: int) -> str:
        """Return what a process tells in which the function got this number."""
        covering = Covering("signs", tmp_path, tmp_path / "report.json")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "meta_path", [covering, *sys.meta_path])
            assert abs(importlib.import_module("signs").sign(number)) == 1
        session: Any = SimpleNamespace(config=SimpleNamespace(workeroutput={}))
        covering.pytest_sessionfinish(session)
        return str(session.config.workeroutput[OUTPUT])

    def report(*told: str) -> dict[str, Any]:
        """Return the report of a run whose processes told this."""
        covering = Covering("signs", tmp_path, tmp_path / "report.json")
        for each in told:
            covering.pytest_testnodedown(SimpleNamespace(workeroutput={OUTPUT: each}))
        session: Any = SimpleNamespace(config=SimpleNamespace())
        covering.pytest_sessionfinish(session)
        [module] = json.loads((tmp_path / "report.json").read_text())["files"].values()
        return {name: module[name] for name in ("missing_lines", "missing_branches")}

    one, other = run(1), run(-1)
    assert report(one) == {"missing_lines": [3], "missing_branches": [[2, 3]]}
    assert report(other) == {"missing_lines": [4], "missing_branches": [[2, 4]]}
    assert report(one, other) == {"missing_lines": [], "missing_branches": []}
    assert report() == {"missing_lines": [1, 2, 3, 4], "missing_branches": [[2, 3], [2, 4]]}
