"""What `pytest --coverage REPORT` does: it measures which lines and branches of flagsvc run, in all processes of a test run.

slipcover changes the bytecode of modules when they are imported. Other tools trace on Python 3.11, which doubles the time of tests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from slipcover import FileMatcher, Slipcover, merge_coverage, wrap_spec_from_file_location
from slipcover.importer import SlipcoverLoader

from support import forms

NEVER = 2**31 - 1
"""How often a line runs before slipcover takes its probe out. It would replace the code of functions while other threads run."""
OUTPUT = "flagsvc_coverage"
"""The key under which a process of the run hands its part to its parent."""


class Covering(forms.InterpretedOnly):
    """Finds the Python sources of a package and makes them count what runs. As a plugin of pytest it writes the report."""

    def __init__(self, package: str, sources: Path, report: Path) -> None:
        super().__init__(package, sources)
        folder = str(sources / package)
        self._measured = Slipcover(branch=True, source=[folder], d_miss_threshold=NEVER)
        self._report = report
        self._parts: list[dict[str, Any]] = []
        wrap_spec_from_file_location(self._measured, FileMatcher([folder]))  # Alembic loads its steps this way
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]  # imported too early to be counted, and imported again

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the source of the module `name`, with a loader that makes it count; None for another package."""
        spec = super().find_spec(name, path, target)
        if spec is not None and spec.loader is not None and spec.origin is not None:
            spec.loader = SlipcoverLoader(self._measured, spec.loader, spec.origin)
        return spec

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._parts.append(json.loads(node.workeroutput[OUTPUT]))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Give what was counted to the process that started this one, or write the report."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[OUTPUT] = json.dumps(self._measured.get_coverage())
            return
        whole, *others = self._parts or [self._measured.get_coverage()]
        for part in others:
            merge_coverage(whole, part)
        self._report.write_text(json.dumps(whole))
