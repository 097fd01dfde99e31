"""Runs the client specification on an installed package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support import needs, peers
from support.processes import ROOT, clean_environment, scratch

SPECIFICATION = "tests/conformance/test_client_specification.py"
SECONDS = 300


def assert_answers_the_client_specification(packages: Path) -> None:
    """Run all cases with the package that lies in the folder `packages`, and no other of its name."""
    if isinstance(reason := peers.find("@unleash/client-specification"), str):
        needs.missing(reason)
    with scratch() as folder:
        env = clean_environment(folder) | {"PYTHONPATH": str(packages)}
        where = run(env, "-c", "import flagsvc; print(flagsvc.__file__)")
        assert Path(where.strip()).is_relative_to(packages)
        ran = run(env, "-m", "pytest", SPECIFICATION, "-v", "--noconftest")
        assert re.search(r"[1-9]\d\d passed", ran), ran[-500:]


def run(env: dict[str, str], *arguments: str) -> str:
    """Return what Python prints, which must succeed."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
