"""Pages, messages and build files install flagsvc from where it is: no index has a release until `PACKAGE` says so."""

from __future__ import annotations

import re
from pathlib import Path

from flagsvc.core.extras import EXTRAS, PACKAGE, WHERE, install_command
from support.processes import ROOT

COMMAND = re.compile(r"pip install ((?:--[a-z-]+ )*)(['\"]?(?:flagsvc|\.)(?:\[([a-z,]+)\])?['\"]?)(?![\w./])")
"""A command that installs flagsvc: its options, what it installs, and the extras."""
PAGES = (*("README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "Dockerfile", "compose.yaml", "docs", "src"), "examples")
SUFFIXES = (".md", ".py", ".html", ".toml", ".yaml", "")


def texts() -> dict[Path, str]:
    """Return the texts that people read, and the texts that build."""
    named = [ROOT / name for name in PAGES]
    files = [each for place in named for each in (place.rglob("*") if place.is_dir() else (place,))]
    return {each: each.read_text() for each in files if each.is_file() and each.suffix in SUFFIXES}


def test_every_command_installs_from_one_place() -> None:
    """Commands of pages name the package as `install_command` does, and extras that exist. What builds installs the source."""
    found = {
        (path.relative_to(ROOT), installed[2], installed[3])
        for path, text in texts().items()
        if path.name != "extras.py"
        for installed in COMMAND.finditer(text)
    }
    assert {path.name for path, _, _ in found} >= {"README.md", "first-day.md", "run-the-flag-server.md"}
    for path, installed, extras in found:
        builds = path.suffix not in (".md", ".py", ".html")
        expected = install_command(extras).removeprefix("pip install ") if extras else "." if builds else PACKAGE
        assert installed.strip("'\"") == expected.strip("'"), path
        assert set(extras.split(",") if extras else ()) <= {*EXTRAS, "all"}, path


def test_a_page_that_installs_says_where() -> None:
    """While the package is the source, each page with such a command says that its folder is meant."""
    assert (PACKAGE == ".") == bool(WHERE)
    for path, text in texts().items():
        if path.suffix == ".md" and COMMAND.search(text) and WHERE:
            assert "folder of the source" in text or "in its folder" in text, path
