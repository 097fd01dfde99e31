"""Commands of the pages in docs/how-to, run as a reader runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.processes import ROOT

HERE = "http://127.0.0.1:4242"
"""The address of the flag server in the pages."""
FENCE = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / "how-to" / page).read_text()
    return [found for name, found in FENCE.findall(text) if name == language]


def block(page: str, mark: str, language: str = "sh") -> str:
    """Return the one block of a page that holds `mark`."""
    (found,) = [text for text in blocks(page, language) if mark in text]
    return found


def run(commands: str, folder: Path, variables: dict[str, str]) -> str:
    """Run the commands of a block with the programs of this environment first on the path, and return their output."""
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(
        ["sh", "-ec", commands],
        cwd=folder,
        env=path | {"PYTHONPATH": str(ROOT / "src")} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
    return done.stdout
