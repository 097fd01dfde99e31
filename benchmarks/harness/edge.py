"""Unleash Edge: installed by name and version with cargo, or a given binary."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

VERSION = "20.1.0"
"""The newest that cargo installs. 20.4.1, built from its repository, costs about half as much at 350 flags and above."""
FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "peers" / "edge"
SECONDS = 3600


def find(given: str, build: bool, say: Callable[[str], None], folder: Path = FOLDER) -> Path | str:
    """Return the binary, or the reason why there is none: the `given` one, one built before, or one built now if `build`."""
    if given:
        found = Path(given)
        return found if os.access(found, os.X_OK) and found.is_file() else f"EDGE=`{given}` is no program"
    binary = folder / "bin" / "unleash-edge"
    if binary.is_file():
        return binary
    if not build:
        return f"Edge {VERSION} is not built yet; `make bench` without QUICK=1 does that, once"
    return install(binary, say)


def install(binary: Path, say: Callable[[str], None]) -> Path | str:
    """Build Edge with cargo and keep it; return the binary or the reason why there is none."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return "Rust (cargo) is not installed"
    folder = binary.parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    say(f"building Edge {VERSION} with cargo, once; it takes a quarter of an hour on two cores")
    command = [
        cargo,
        "install",
        "unleash-edge",
        "--version",
        VERSION,
        "--ignore-rust-version",
        "--locked",
        "--root",
        str(folder),
    ]
    log = folder / "build.log"
    with log.open("wb") as output:
        try:
            status = subprocess.run(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"cargo did not build Edge {VERSION} within {SECONDS} s"
    if status.returncode or not binary.is_file():
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        return f"cargo could not build Edge {VERSION}: {' '.join(last)}"
    return binary
