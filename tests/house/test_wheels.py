"""What a release is made of: for which Pythons and machines wheels are built, with what, and that two builds are compared."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import wheels

ROOT = wheels.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = ROOT / ".github/workflows"


def test_wheels_are_built_for_every_python_that_is_named() -> None:
    """The classifiers name those of cibuildwheel. The release waits for one of each on each machine, and for the pure wheel."""
    named = [f"python{text.rpartition(' ')[2]}" for text in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", text)]
    assert named == wheels.PYTHONS
    machines = yaml.safe_load((WORKFLOWS / "wheels.yml").read_text())["jobs"]["compiled"]["strategy"]["matrix"]["machine"]
    assert f"-name '*.whl' | wc -l)\" = {len(named) * len(machines) + 1}" in (WORKFLOWS / "release.yml").read_text()
    assert set(wheels.RULES["test-extras"]) < PROJECT["project"]["optional-dependencies"].keys()


def test_the_tools_of_a_build_are_those_of_the_package() -> None:
    """What pip gets for a build from the source is pinned, with digests, for the wheels of a release."""
    listed = (ROOT / "requirements/build.in").read_text().splitlines()
    assert set(PROJECT["build-system"]["requires"]) < set(listed)
    for name in ("build", "release"):
        blocks = re.split(r"\n(?=\S)", (ROOT / f"requirements/{name}.txt").read_text())
        assert all("==" in block and "--hash=sha256:" in block for block in blocks), name


def test_two_builds_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other bytes, and a file that only one build has, end it with the names; without any the names are printed."""
    first, second = wheels.made(tmp_path / "first"), wheels.made(tmp_path / "second")
    for folder in (first, second):
        (folder / "same.whl").write_bytes(b"same")
    wheels.compare(first, second)
    assert capsys.readouterr().out == "built twice, the same bytes: same.whl\n"
    (second / "more.whl").touch()
    (second / "same.whl").write_bytes(b"else")
    with pytest.raises(SystemExit, match=r"not the same bytes: more\.whl, same\.whl"):
        wheels.compare(first, second)
