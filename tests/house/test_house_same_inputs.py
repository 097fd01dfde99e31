"""The inputs that Hypothesis makes in CI are the same in every run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
LITERALS = "CHOICES = [" + ", ".join(str(123_456_789 + 7_919 * number) for number in range(300)) + "]\n"
DRAWS = """
import sys
from hypothesis import given, settings, strategies as st
if "forget" in sys.argv:
    from support.same_inputs import forget_literals
    forget_literals()
if "load" in sys.argv:
    import literals
drawn = []
@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(st.integers())
def draw(number):
    drawn.append(number)
draw()
print(drawn)
"""


def drawn(folder: Path, *words: str) -> str:
    """What a new process draws that does as `words` say."""
    path = os.pathsep.join((str(folder), str(HERE)))
    done = subprocess.run(
        [sys.executable, "-c", DRAWS, *words], cwd=folder, env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout


def test_a_loaded_module_changes_nothing(tmp_path: Path) -> None:
    """Literals of a module are drawn from by default, and not any more where they are forgotten."""
    (tmp_path / "literals.py").write_text(LITERALS)
    assert drawn(tmp_path, "forget") == drawn(tmp_path, "forget", "load")
    assert drawn(tmp_path) != drawn(tmp_path, "load")
