"""The engine needs as many instructions as recorded: a guard against slower code that is independent of the machine's load."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from support import forms, needs

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "instructions.py"
SAME = {"evaluate 10": 10_000, "evaluate 100": 50_000, "compile 10": 1_000_000}


@pytest.fixture(scope="module")
def script() -> SimpleNamespace:
    """The script that counts, by the names in it."""
    return SimpleNamespace(**runpy.run_path(str(SCRIPT)))


def test_the_compiled_engine_takes_as_many_instructions_as_recorded() -> None:
    """The message names the differences in evaluation, compilation and refresh by size, and the command that records them."""
    needs.program("valgrind")
    needs.program("cc")
    if forms.interpreted() or not all(forms.compiled_modules().values()):
        needs.missing("the engine is not compiled")
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, timeout=700, check=False)
    if "valgrind/callgrind.h" in done.stderr:
        needs.missing("valgrind's headers are not installed")
    assert done.returncode == 0, done.stdout + done.stderr


MORE = {name: int(count * 1.33) for name, count in SAME.items()}


@pytest.mark.parametrize(
    ("counts", "tools", "told"),
    [
        (SAME, "these", []),
        ({name: int(count * 1.04) for name, count in SAME.items()}, "these", []),
        *[(SAME | {"compile 10": count}, "these", ["compile 10: "]) for count in (900_000, 1_100_000)],
        (MORE, "those", []),
        (MORE | {"evaluate 100": 100_000}, "those", ["evaluate 100: "]),
        (SAME | {"new": 5}, "these", ["other operations are recorded: new"]),
    ],
)
def test_the_verdict(script: SimpleNamespace, counts: dict[str, int], tools: str, told: list[str]) -> None:
    """With the same tools each count has to be within the tolerance, in both directions: an improvement is recorded.

    Another compiler or interpreter may take a third more of everything, but not twice as much of one thing alone.
    """
    lines = script.verdict(counts, {"these": SAME}, tools)
    assert [line[: len(begin)] for line, begin in zip(lines, told, strict=True)] == told


def test_what_is_not_recorded_is_told(script: SimpleNamespace) -> None:
    """A count without a recorded one is an error."""
    assert script.verdict(SAME, {}, "these") == ["nothing is recorded"]
    with pytest.raises(SystemExit, match="not understood"):
        script.read("nothing")
