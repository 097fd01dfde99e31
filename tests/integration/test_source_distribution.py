"""The source distribution: an installation without a matching wheel, from the archive alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.conforming import assert_answers_the_client_specification
from support.processes import ROOT, clean_environment, scratch

SECONDS = 300
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)#]+)[^)]*\)")
OURS = "https://github.com/flagsvc/flagsvc/"


def call(folder: Path, *command: str, **env: str) -> str:
    """Return the output of a command that runs in `folder` and must succeed."""
    keep = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "NO_PROXY"))}
    given = clean_environment(folder) | keep | env
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def archive() -> Iterator[Path]:
    """Yield the source distribution of the repository, in a folder of its own."""
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


def test_what_is_installed_from_it_answers_the_client_specification(archive: Path) -> None:
    """It runs interpreted, in an empty folder. test_container covers the compiled form: the image is made from the archive."""
    with scratch() as empty:
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation")
        call(empty, sys.executable, *pip, "--target", str(empty / "lib"), str(archive), FLAGSVC_PURE="1")
        version = call(empty, sys.executable, "-m", "flagsvc", "--version", PYTHONPATH=str(empty / "lib"))
        assert version.endswith("(interpreted)\n")
        assert_answers_the_client_specification(empty / "lib")
