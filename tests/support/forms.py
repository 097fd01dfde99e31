"""The two forms of the package, compiled modules and Python sources, and a hook that insists on the sources."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

SWITCH = "set FLAGSVC_INTERPRETED=1 for the sources"
SOURCES = Path(__file__).resolve().parents[2] / "src"


class InterpretedOnly(MetaPathFinder):
    """Finds the modules of one package as Python sources only, also if there is a compiled module."""

    def __init__(self, package: str, sources: Path) -> None:
        self._package = package
        self._sources = sources

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the source of the module `name`; None for another package."""
        if name.partition(".")[0] != self._package:
            return None
        folders = [str(self._sources)] if path is None else list(path)
        specs = (FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name) for folder in folders)
        return next((spec for spec in specs if spec), None)


def interpreted() -> bool:
    """Return whether this run was asked to leave the compiled modules alone."""
    return os.environ.get("FLAGSVC_INTERPRETED") == "1"


def compiled_modules() -> dict[str, bool]:
    """Return each module of `compiled.txt`, and whether its compiled form is there."""
    return {_module(path): any(path.with_suffix(end).exists() for end in EXTENSION_SUFFIXES) for path in listed()}


def outdated_modules() -> list[str]:
    """Return the modules whose compiled form is older than their source."""
    found = []
    for path in listed():
        libraries = [path.with_suffix(end) for end in EXTENSION_SUFFIXES]
        if any(each.exists() and each.stat().st_mtime < path.stat().st_mtime for each in libraries):
            found.append(_module(path))
    return found


def listed() -> list[Path]:
    """Return the sources of the modules that are meant to be compiled."""
    lines = (line.partition("#")[0].strip() for line in (SOURCES / "flagsvc" / "compiled.txt").read_text().splitlines())
    return [SOURCES / "flagsvc" / line for line in lines if line]


def _module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts)


def form() -> str:
    """Return which form of the package this run tests, in a word and a reason."""
    there = compiled_modules()
    if interpreted():
        return "interpreted (FLAGSVC_INTERPRETED=1)"
    if there and all(there.values()):
        return f"compiled ({len(there)} modules)"
    if any(there.values()):
        return "partly compiled: " + ", ".join(name for name, found in there.items() if not found) + " are not"
    return "interpreted (nothing is compiled)"


def loaded_compiled() -> list[str]:
    """Return which of the modules meant to be compiled have been imported in their compiled form."""
    return [name for name in compiled_modules() if _origin(name).endswith(tuple(EXTENSION_SUFFIXES))]


def _origin(name: str) -> str:
    spec: ModuleSpec | None = getattr(sys.modules.get(name), "__spec__", None)
    return (spec.origin or "") if spec else ""
