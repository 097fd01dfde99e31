"""The engine needs as many instructions as recorded: a guard against slower code that is independent of the machine's load."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support import forms, needs

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "instructions.py"
SAME = {"evaluate 10": 10_000, "evaluate 100": 50_000, "compile 10": 1_000_000}


@pytest.fixture
def script() -> ModuleType:
    """The script that counts, as a module."""
    specification = importlib.util.spec_from_file_location("instructions", SCRIPT)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


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


def test_with_the_same_tools_each_count_has_to_be_the_recorded_one(script: ModuleType) -> None:
    """A count must be within the tolerance in both directions: an improvement is recorded, so that it cannot get lost."""
    recorded = {"these": SAME}
    assert script.verdict(SAME, recorded, "these") == []
    within = {name: int(count * (1 + script.TOLERANCE / 2)) for name, count in SAME.items()}
    assert script.verdict(within, recorded, "these") == []
    for factor in (1 - 2 * script.TOLERANCE, 1 + 2 * script.TOLERANCE):
        (line,) = script.verdict(SAME | {"compile 10": int(1_000_000 * factor)}, recorded, "these")
        assert line.startswith("compile 10: ")
        assert "recorded are 1,000,000" in line


def test_with_other_tools_all_counts_have_to_differ_alike(script: ModuleType) -> None:
    """Another compiler or interpreter may take a third more of everything, but not twice as much of one thing alone."""
    recorded = {"these": SAME}
    more = {name: int(count * 1.33) for name, count in SAME.items()}
    assert script.verdict(more, recorded, "those") == []
    (line,) = script.verdict(more | {"evaluate 100": 100_000}, recorded, "those")
    assert line.startswith("evaluate 100: ")


def test_what_is_not_recorded_is_told(script: ModuleType) -> None:
    """A count without a recorded one is an error."""
    assert script.verdict(SAME, {}, "these") == ["nothing is recorded"]
    assert script.verdict(SAME | {"new": 5}, {"these": SAME}, "these") == ["other operations are recorded: new"]
    with pytest.raises(SystemExit, match="not understood"):
        script.read("nothing")
