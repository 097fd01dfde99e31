"""Builds source distribution, pure wheel and compiled wheels for the Pythons of this machine into dist/, and tests each wheel.

`make wheels` runs it: `wheels.py [--twice] [--pure] [PYTHON…]`. It follows [tool.cibuildwheel] of pyproject.toml, by which
cibuildwheel builds the wheels of a release in containers. --twice builds each file again in another folder, and compares the bytes.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RULES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
PYTHONS = [f"python3.{name.split('-')[0].removeprefix('cp3')}" for name in RULES["build"].split()]
SOURCES = [
    "CHANGELOG.md",
    "LICENSE",
    "MANIFEST.in",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
    "setup.py",
    "release",
    "requirements",
    "src",
]
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")


def main() -> None:
    """Build what the command line says. Raises CalledProcessError where a step fails, SystemExit where two builds differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--twice", action="store_true", help="build everything again, and compare the bytes")
    parser.add_argument("--pure", action="store_true", help="only the source distribution and the pure wheel")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help=f"interpreters to build for [default: {' '.join(PYTHONS)}]")
    given = parser.parse_args()
    for name in given.pythons:
        if not runs(name):
            parser.error(f"`{name}` is no interpreter that runs here; expected for example {PYTHONS[0]}")
    pythons = [] if given.pure else given.pythons or [name for name in PYTHONS if runs(name)]
    build_all(pythons, ROOT / "dist")
    if given.twice:
        with tempfile.TemporaryDirectory() as folder:
            build_all(pythons, Path(folder))
            compare(ROOT / "dist", Path(folder))


def runs(python: str) -> bool:
    """Return whether an interpreter is here and runs; a shim of a version manager may be there without one."""
    return shutil.which(python) is not None and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


def build_all(pythons: list[str], target: Path) -> None:
    """Build into an empty folder: source distribution and pure wheel from the tree, each compiled wheel from that archive."""
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tree = folder / "tree"
        for name in SOURCES:
            source = ROOT / name
            shutil.copytree(source, tree / name, ignore=LEFT_OUT) if source.is_dir() else shutil.copy(source, made(tree) / name)
        [wheel] = build(sys.executable, tree, folder / "pure", target, pure=True)
        check(sys.executable, wheel, folder / "tested")
        with tarfile.open(next(target.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
        [unpacked] = folder.glob("flagsvc-*")
        for number, python in enumerate(pythons):
            [wheel] = build(python, shutil.copytree(unpacked, folder / f"source{number}"), folder / f"build{number}", target)
            check(python, wheel, folder / f"tested{number}")


def build(python: str, source: Path, folder: Path, target: Path, *, pure: bool = False) -> list[Path]:
    """Build in an environment of its own with the pinned tools; return the wheel, which lies in `target`."""
    environment = RULES["environment"] | ({"FLAGSVC_PURE": "1"} if pure else {})
    tools = make_environment(python, folder)
    run(tools, shlex.split(RULES["before-build"].format(project=ROOT)), source, environment)
    made(target)
    words = ["python", "-m", "build", *RULES["build-frontend"]["args"], *([] if pure else ["--wheel"])]
    run(tools, [*words, "--outdir", str(target if pure else folder / "raw")], source, environment)
    if pure:
        return list(target.glob("*-none-any.whl"))
    [raw] = (folder / "raw").glob("*.whl")
    if sys.platform != "linux":
        return [Path(shutil.move(raw, target))]
    # Its name gets the oldest glibc that its symbols allow; cibuildwheel's containers have an older one than most machines.
    words = ["auditwheel", "repair", "--wheel-dir", str(folder / "repaired"), str(raw)]
    run(Path(sysconfig.get_path("scripts")), words, source, environment)
    [repaired] = (folder / "repaired").glob("*.whl")
    return [Path(shutil.move(repaired, target))]


def check(python: str, wheel: Path, folder: Path) -> None:
    """Install a wheel into an empty environment, its packages at the pinned versions, and run the test of [tool.cibuildwheel]."""
    tools, extras = make_environment(python, folder), ",".join(RULES["test-extras"])
    pins = ROOT / "requirements/runtime.txt"
    run(tools, ["python", "-m", "pip", "install", "--require-hashes", "--requirement", str(pins)], folder, {})
    run(tools, ["python", "-m", "pip", "install", "--no-index", f"{wheel}[{extras}]"], folder, {})
    run(tools, shlex.split(RULES["test-command"].format(project=ROOT)), folder, {})


def make_environment(python: str, folder: Path) -> Path:
    """Return the folder of programs of a new environment."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    return folder / "bin"


def made(folder: Path) -> Path:
    """Return a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(tools: Path, command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a program of an environment."""
    print("+", shlex.join(command), flush=True)
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    clean |= {"PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    path = f"{tools}{os.pathsep}{clean.get('PATH', os.defpath)}"
    program = shutil.which(command[0], path=path) or command[0]
    subprocess.run([program, *command[1:]], cwd=folder, env=clean | dict(environment) | {"PATH": path}, check=True)


def compare(first: Path, second: Path) -> None:
    """Raise SystemExit for files that are not the same in both folders."""
    names = sorted({path.name for folder in (first, second) for path in folder.iterdir()})
    differing = [name for name in names if not same(first / name, second / name)]
    if differing:
        raise SystemExit(f"built twice, and not the same bytes: {', '.join(differing)}")
    print(f"built twice, the same bytes: {', '.join(names)}")


def same(first: Path, second: Path) -> bool:
    """Return whether both files exist and have the same bytes."""
    return first.is_file() and second.is_file() and first.read_bytes() == second.read_bytes()


if __name__ == "__main__":
    main()
