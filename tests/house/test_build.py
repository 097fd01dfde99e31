"""Installing: compiled where a C compiler can build, interpreted with a reason where none can, never half of either."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.needs import program

ROOT = Path(__file__).resolve().parents[2]
MODULE = "engine/hashing.py"
pytestmark = pytest.mark.programs
VERSION = "src/flagsvc/core/version.py"
HEADERS = "import sysconfig\nsysconfig.get_path = lambda *_, **__: {folder!r}\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Give what a build reads, with one module to compile, and a compiled file that is left from before."""
    for name in ("setup.py", "pyproject.toml", "Makefile", "MANIFEST.in", "release/sbom.py", "requirements/runtime.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    sources = ("src/flagsvc/__init__.py", VERSION, f"src/flagsvc/{MODULE}")
    for name in ("README.md", "LICENSE", "requirements/dev.txt", *sources):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / VERSION).write_text('VERSION = "0"\n')
    (tmp_path / "src/flagsvc/compiled.txt").write_text(f"{MODULE}\n")
    stale(tmp_path).touch()
    return tmp_path


def stale(tree: Path) -> Path:
    """Return the compiled file that is left from before."""
    return tree / "src/flagsvc/engine/hashing.cpython-311-x86_64-linux-gnu.so"


def call(tree: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the tree with nothing in the environment but the search path and `env`."""
    given = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(tree), **env}
    return subprocess.run(command, cwd=tree, env=given, capture_output=True, text=True, timeout=300)


def build(tree: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return call(tree, sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", **env)


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({"FLAGSVC_PURE": "1"}, "FLAGSVC_PURE=1"),
        ({"CC": "/bin/false"}, "the C compiler `/bin/false` cannot build"),
        ({"CC": "/nowhere/cc"}, "no C compiler found at CC"),
        ({"CC": "/bin/false", "CI": "true"}, "the C compiler `/bin/false` cannot build"),
        ({"CC": "/bin/false", "REQUIRE_ALL": "1"}, "the C compiler `/bin/false` cannot build"),
    ],
)
def test_where_nothing_can_be_compiled_the_reason_is_told(tree: Path, env: dict[str, str], reason: str) -> None:
    """The installation continues with the Python sources, except where nothing may be left out: nobody builds those unnoticed."""
    built, strict = build(tree, **env), "CI" in env or "REQUIRE_ALL" in env
    assert built.returncode == strict, built.stderr
    assert f"flagsvc: {reason}" in built.stderr and ("the engine stays interpreted" in built.stderr) is not strict


def test_missing_headers_are_a_reason(tree: Path) -> None:
    """A compiler without Python.h, as on a machine without the development package of Python."""
    (tree / "sitecustomize.py").write_text(HEADERS.format(folder=str(tree)))
    built = build(tree, PYTHONPATH=str(tree), CC=sys.executable)
    assert built.returncode == 0, built.stderr
    assert "flagsvc: no Python.h found" in built.stderr


MYPYC = """from setuptools import Extension
def mypycify(*_, **__):
    open("hashing.c", "w").write({text!r})
    return [Extension("flagsvc.engine.hashing", ["hashing.c"])]
"""
OWN_HEADER = '#include "__native_internal_12ab.h"\n'


@pytest.mark.parametrize("number", [0, 2])
def test_other_c_source_than_expected_fails(tree: Path, number: int) -> None:
    """What setup.py adds to the C source must be there once, or the build says so and what to do."""
    (tree / "mypyc").mkdir()
    (tree / "mypyc" / "__init__.py").touch()
    (tree / "mypyc" / "build.py").write_text(MYPYC.format(text=OWN_HEADER * number))
    built = build(tree, PYTHONPATH=str(tree))
    assert built.returncode == 1
    assert f"flagsvc: mypyc writes other C source than setup.py expects: {number} places" in built.stderr
    assert "requirements/build.txt" in built.stderr and "Traceback" not in built.stderr


def whole_environment(tree: Path, python: str) -> Path:
    """Return an environment in which everything is installed; `python` is a shell script in place of its interpreter."""
    folder = tree / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text(f"#!/bin/sh\n{python}\n")
    (folder / "bin" / "python").chmod(0o755)
    for mark in (".created", ".installed"):
        (folder / mark).touch()
    return folder


def make(tree: Path, python: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `make compile` in a tree where everything is installed, with `python` as its interpreter."""
    whole_environment(tree, python)
    return call(tree, program("make"), "compile", **env)


def test_make_goes_on_without_a_compiler(tree: Path) -> None:
    """It prints the reason, leaves nothing compiled, and tries again next time."""
    made = make(tree, f'exec {sys.executable} "$@"', CC="/bin/false")
    assert made.returncode == 0, made.stderr
    assert "the C compiler `/bin/false` cannot build: the engine stays interpreted" in made.stdout
    assert not stale(tree).exists() and not (tree / ".venv" / ".compiled").exists()


BREAKS = "seq 100; touch src/flagsvc/engine/half.so; exit 3"


def test_make_goes_on_after_a_build_that_failed(tree: Path) -> None:
    """It prints the end of the log, and nothing of a partial build stays."""
    made = make(tree, BREAKS)
    assert made.returncode == 0, made.stderr
    assert "\n99\n100\n" in made.stdout and "\n50\n" not in made.stdout
    assert "the build failed" in made.stdout and "the engine stays interpreted" in made.stdout
    assert not list(tree.rglob("*.so")) and not (tree / ".venv" / ".compiled").exists()


@pytest.mark.parametrize("strict", ["CI=true", "REQUIRE_ALL=1"])
def test_make_fails_after_such_a_build_where_nothing_may_be_left_out(tree: Path, strict: str) -> None:
    """The end of the log is shown here too."""
    made = make(tree, BREAKS, **dict([strict.split("=")]))
    assert made.returncode == 2
    assert "\n100\n" in made.stdout and "stays interpreted" not in made.stdout
    assert not list(tree.rglob("*.so"))


def test_make_is_done_when_something_was_built(tree: Path) -> None:
    """Then it builds again only after a change."""
    made = make(tree, "exit 0")
    assert made.returncode == 0, made.stderr
    assert (tree / ".venv" / ".compiled").exists()


VENV = """#!/bin/sh
# Stands for an interpreter: `-m venv` leaves a python without pip where python3-venv is missing, and a whole one later.
case "$*" in
  *"-m venv"*)
    mkdir -p .venv/bin
    if [ -e whole ]; then printf '#!/bin/sh\\necho "python $*" >> calls\\n' > .venv/bin/python
    else printf '#!/bin/sh\\necho "No module named pip" >&2; exit 1\\n' > .venv/bin/python; fi
    chmod +x .venv/bin/python
    [ -e whole ] || { echo "ensurepip is not available" >&2; exit 1; } ;;
esac
"""


def test_make_recovers_once_python_can_make_environments(tree: Path) -> None:
    """Without python3-venv it ends with Python's message; once that is installed the same command continues."""
    (tree / "python").write_text(VENV)
    (tree / "python").chmod(0o755)
    failed = call(tree, program("make"), "compile", "PYTHON=./python")
    assert failed.returncode == 2 and "ensurepip is not available" in failed.stderr
    (tree / "whole").touch()
    made = call(tree, program("make"), "compile", "PYTHON=./python")
    assert made.returncode == 0, made.stderr
    assert "-m pip install" in (tree / "calls").read_text()


def test_make_keeps_an_environment_that_works(tree: Path) -> None:
    """An environment whose pip runs is reused."""
    folder = whole_environment(tree, 'echo "python $*" >> calls')
    for mark in (".created", ".installed"):
        (folder / mark).unlink()
    (folder / "mine").touch()
    made = call(tree, program("make"), "compile", f"PYTHON={sys.executable}")
    assert made.returncode == 0, made.stderr
    assert (folder / "mine").exists() and "-m pip install" in (tree / "calls").read_text()


SLOW = """echo noise
echo 'flagsvc: step 1 of 2'
read -r seen < seen"""
"""A build that goes on when its line has been seen."""
PATIENCE_S = 30


def test_make_shows_that_it_compiles(tree: Path) -> None:
    """A line of setup.py is shown while the build still runs; what compilers print is in the log alone."""
    folder = whole_environment(tree, SLOW)
    os.mkfifo(tree / "seen")
    seen = os.open(tree / "seen", os.O_RDWR)  # does not wait for a reader: a build that fails early has none
    with subprocess.Popen(
        [program("make"), "compile"], cwd=tree, env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE, text=True
    ) as made:
        assert made.stdout is not None
        early = bool(select.select([made.stdout], [], [], PATIENCE_S)[0])
        os.write(seen, b"yes\n")
        shown = made.stdout.read().splitlines()
    os.close(seen)
    assert early, "the line is shown before the build goes on"
    assert made.returncode == 0 and shown == ["flagsvc: step 1 of 2"]
    assert "noise" in (folder / "compile.log").read_text()


@pytest.mark.parametrize(("commands", "told"), [(("sdist",), False), (("sdist", "bdist_wheel"), True)])
def test_a_command_that_builds_is_told_what_it_builds(tree: Path, commands: tuple[str, ...], told: bool) -> None:
    """Packing the source compiles nothing; a wheel beside it does, or says why not."""
    built = call(tree, sys.executable, "setup.py", "--quiet", *commands, FLAGSVC_PURE="1")
    assert built.returncode == 0, built.stderr
    assert ("stays interpreted" in built.stderr) is told


@pytest.mark.parametrize("env", [{"FLAGSVC_PURE": "1"}, {"FLAGSVC_OPT": "0"}], ids=["pure", "compiled"])
def test_what_is_built_twice_is_the_same_bytes(tree: Path, env: dict[str, str]) -> None:
    """Neither the folder, nor the time, nor the mode of new files is in the archives. The wheel has its bill of materials."""
    made = []
    for folder, mask in (tree / "first", "022"), (tree / "second", "077"):
        shutil.copytree(tree, folder, ignore=shutil.ignore_patterns("first", "*.so"))
        words = f"umask {mask}; exec {sys.executable} setup.py --quiet sdist bdist_wheel"
        done = call(folder, "sh", "-c", words, **env)
        assert done.returncode == 0, done.stderr
        made.append({path.name: path.read_bytes() for path in (folder / "dist").iterdir()})
        (tree / "pyproject.toml").touch()
    assert made[0] == made[1] and len(made[0]) == 2
    [wheel] = (tree / "first/dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        bill = json.loads(archive.read("flagsvc-0.dist-info/sboms/flagsvc.cdx.json"))
        assert any(name.endswith(".so") for name in archive.namelist()) is ("FLAGSVC_OPT" in env)
    inside = {part["name"] for part in bill["metadata"]["component"]["components"]}
    assert inside == {"htmx.org", *(["mypy"] if "FLAGSVC_OPT" in env else [])}
    digests = [part["externalReferences"][0]["hashes"] for part in bill["components"]]
    assert sum(map(len, digests)) == (ROOT / "requirements/runtime.txt").read_text().count("--hash=sha256:")
