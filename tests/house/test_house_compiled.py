"""Compiled classes have only compiled bases, and what runs only interpreted tests packages without a compiled module.

The hook that leaves compiled modules alone, and the count of what is compiled.
The inputs that Hypothesis makes in CI are the same in every run.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path

import pytest

from support import forms
from support.needs import program
from support.statements import statements

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "flagsvc"
LINES = (line.split("#")[0].strip() for line in (PACKAGE / "compiled.txt").read_text().splitlines())
COMPILED = [line for line in LINES if line]


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


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Give a folder with a package of one module that stands there as a source and as a compiled file."""
    folder = tmp_path / "sample"
    folder.mkdir()
    for name in ("__init__.py", "module.py", f"module{EXTENSION_SUFFIXES[0]}"):
        (folder / name).write_text("VALUE = 1\n")
    return tmp_path


def test_the_source_is_found_where_a_compiled_module_stands_beside_it(package: Path) -> None:
    """An interpreted run must load the .py file although Python itself prefers the compiled one."""
    finder = forms.InterpretedOnly("sample", package)
    spec = finder.find_spec("sample.module", [str(package / "sample")])
    assert spec is not None
    assert spec.origin == str(package / "sample" / "module.py")
    usual = PathFinder.find_spec("sample.module", [str(package / "sample")])
    assert usual is not None
    assert str(usual.origin).endswith(EXTENSION_SUFFIXES[0])


def test_the_package_itself_is_found_in_the_sources(package: Path) -> None:
    """The package comes from the checkout, not from an installation."""
    spec = forms.InterpretedOnly("sample", package).find_spec("sample", None)
    assert spec is not None
    assert spec.submodule_search_locations == [str(package / "sample")]


def test_other_packages_are_left_to_the_other_finders(package: Path) -> None:
    """Compiled modules of other distributions are loaded as ever."""
    assert forms.InterpretedOnly("sample", package).find_spec("samples.module", [str(package)]) is None
    assert forms.InterpretedOnly("sample", package).find_spec("sample.absent", [str(package / "sample")]) is None


def test_a_compiled_module_that_is_older_than_its_source_is_found(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of an old library would tell nothing about the source, so pytest refuses to run."""
    (package / "flagsvc").mkdir()
    (package / "flagsvc" / "compiled.txt").write_text("../sample/module.py  # the only one\n")
    monkeypatch.setattr(forms, "SOURCES", package)
    monkeypatch.setattr(forms, "_module", lambda path: path.stem)
    library = package / "sample" / f"module{EXTENSION_SUFFIXES[0]}"
    for moment, found in ((1, ["module"]), (3, [])):
        os.utime(library, (moment, moment))
        os.utime(package / "sample" / "module.py", (2, 2))
        assert forms.outdated_modules() == found


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
