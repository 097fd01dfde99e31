"""The source distribution: what somebody without a matching wheel installs, compiled and pure, from the archive alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
import peers
from processes import ROOT, clean_environment, scratch

SECONDS = 900
"""For a command: compiling takes a minute, and five where the machine is busy."""
SPECIFICATION = "tests/conformance/test_client_specification.py"
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)#]+)[^)]*\)")
OURS = "https://github.com/flagsvc/flagsvc/"


def call(folder: Path, *command: str, **env: str) -> str:
    """Return what a command prints that runs in `folder` and must succeed."""
    keep = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "NO_PROXY"))}
    given = clean_environment(folder) | keep | env
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def archive() -> Iterator[Path]:
    """Give the source distribution, made of what the repository holds, in a folder with nothing else."""
    with scratch() as folder:
        source = folder / "source"
        source.mkdir()
        for name in (
            "pyproject.toml",
            "setup.py",
            "MANIFEST.in",
            "README.md",
            "LICENSE",
            "CHANGELOG.md",
            "SECURITY.md",
            "src",
        ):
            (source / name).symlink_to(ROOT / name)
        call(
            source,
            sys.executable,
            "-m",
            "build",
            "--sdist",
            "--no-isolation",
            "--outdir",
            str(folder / "dist"),
            FLAGSVC_PURE="1",
        )
        yield next((folder / "dist").glob("flagsvc-*.tar.gz"))


def test_it_holds_what_a_build_reads_and_nothing_that_was_built(archive: Path) -> None:
    """No compiled module, no C source, no bytecode."""
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {
        "setup.py",
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "src/flagsvc/compiled.txt",
        "src/flagsvc/py.typed",
    } <= names
    assert not {name for name in names if name.endswith((".so", ".c", ".pyc"))}


def test_the_page_of_the_package_has_links_that_work_anywhere(archive: Path) -> None:
    """A package index shows the README without the repository around it: files by their pages, pictures as they are."""
    with tarfile.open(archive) as tar:
        found = tar.extractfile(
            next(name for name in tar.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
        )
        assert found is not None
        text = found.read().decode()
    links = LINK.findall(text)
    assert len(links) > 20
    for sign, link in links:
        assert link.startswith("https://"), link
        if link.startswith(OURS):
            kind, _, path = link.removeprefix(OURS).partition("/main/")
            assert kind == ("raw" if sign else "blob"), "a page that shows a picture is none"
            assert (ROOT / path).is_file(), path


@pytest.mark.parametrize("form", ["interpreted", "compiled"])
def test_what_is_installed_from_it_answers_the_client_specification(archive: Path, form: str) -> None:
    """Installed into an empty folder; `flagsvc --version` says which form it is."""
    if isinstance(folder := peers.find("@unleash/client-specification"), str):
        needs.missing(folder)
    if form == "compiled":
        needs.program("cc", "gcc", "clang")
    with scratch() as empty:
        pip = (
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-build-isolation",
        )
        build = {"FLAGSVC_PURE": "1"} if form == "interpreted" else {"FLAGSVC_OPT": "0", "CI": "true"}
        call(empty, *pip, "--target", str(empty / "lib"), str(archive), **build)
        installed = {"PYTHONPATH": str(empty / "lib")}
        assert form in call(empty, sys.executable, "-m", "flagsvc", "--version", **installed)
        ran = call(ROOT, sys.executable, "-m", "pytest", SPECIFICATION, "-v", "--noconftest", **installed)
        assert re.search(r"[1-9]\d\d passed", ran), ran[-500:]
        where = call(empty, sys.executable, "-c", "import flagsvc; print(flagsvc.__file__)", **installed)
        assert Path(where.strip()).is_relative_to(empty)
