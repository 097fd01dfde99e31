"""The hook that leaves compiled modules alone, and the count of what is compiled."""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path

import pytest

from support import forms


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


def test_a_compiled_module_that_is_older_than_its_source_is_found(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_every_module_named_for_compiling_exists() -> None:
    """A line of compiled.txt that names no source would silently compile nothing."""
    names = forms.compiled_modules()
    missing = [name for name in names if not (forms.SOURCES / Path(*name.split("."))).with_suffix(".py").exists()]
    assert not missing
