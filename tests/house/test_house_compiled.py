"""Compiled classes have only compiled bases, and what runs only interpreted tests packages without a compiled module.

A compiled module that is older than its source is told.
"""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from support import forms
from support.needs import program
from support.statements import statements

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "flagsvc"
COMPILED = [path.relative_to(PACKAGE).as_posix() for path in forms.listed()]


def interpreted_bases(text: str, compiled: list[str]) -> Iterator[str]:
    """Give the base classes in a module's text that come from a module of ours which is not compiled."""
    origin = {
        alias.asname or alias.name: node.module
        for node in statements(text)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("flagsvc.")
        for alias in node.names
    }
    for node in statements(text):
        for base in node.bases if isinstance(node, ast.ClassDef) else []:
            module = origin.get(base.id) if isinstance(base, ast.Name) else None
            if module and f"{module.removeprefix('flagsvc.').replace('.', '/')}.py" not in compiled:
                yield f"{module}.{ast.unparse(base)}"


def test_a_compiled_class_has_no_base_that_is_not() -> None:
    """Their memory layouts differ: the process would crash later, in the garbage collector."""
    found = {name: list(interpreted_bases((PACKAGE / name).read_text(), COMPILED)) for name in COMPILED}
    assert {name: bases for name, bases in found.items() if bases} == {}


def test_such_a_base_is_found() -> None:
    """The check can fail."""
    text = "from flagsvc.core.errors import FlagsvcError\nclass Wrong(FlagsvcError): ...\nclass Fine(Exception): ...\n"
    assert list(interpreted_bases(text, ["http/messages.py"])) == ["flagsvc.core.errors.FlagsvcError"]
    assert not list(interpreted_bases(text, ["core/errors.py"]))


def test_only_packages_without_a_compiled_module_are_left_out_of_the_compiled_half() -> None:
    """The Makefile's list names folders of tests that are there, each of a package that has no compiled module."""
    printed = "print: ; @echo $(INTERPRETED_ONLY)"
    make = [program("make"), "--silent", "--eval", printed, "print"]
    folders = subprocess.run(make, cwd=PACKAGE.parents[1], capture_output=True, text=True, check=True).stdout.split()
    assert len(folders) > 10
    for folder in folders:
        package = folder.removeprefix("tests/unit/")
        assert (PACKAGE.parents[1] / folder).is_dir(), folder
        assert not [each for each in COMPILED if each.startswith(f"{package}/")], folder


def test_a_compiled_module_that_is_older_than_its_source_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of an old library would tell nothing about the source, so pytest refuses to run."""
    monkeypatch.setattr(forms, "SOURCES", tmp_path)
    (tmp_path / "flagsvc").mkdir()
    (tmp_path / "flagsvc" / "compiled.txt").write_text("module.py  # the only one\n")
    source, library = (tmp_path / "flagsvc" / f"module{end}" for end in (".py", EXTENSION_SUFFIXES[0]))
    for moment, found in ((1, ["flagsvc.module"]), (3, [])):
        for path, written in ((source, 2), (library, moment)):
            path.touch()
            os.utime(path, (written, written))
        assert forms.outdated_modules() == found
