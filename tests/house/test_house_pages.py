"""The generated pages match the present tables."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

ROOT = Path(__file__).resolve().parents[2]


def generator() -> ModuleType:
    """Return docs/generate.py as a module."""
    spec = importlib.util.spec_from_file_location("flagsvc_docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_of_options_in_the_readme_is_current() -> None:
    """`make docs` would change nothing."""
    text = (ROOT / "README.md").read_text()
    assert generator().readme(text) == text


def test_the_page_of_the_metrics_is_current() -> None:
    """`make docs` would change nothing."""
    assert (ROOT / "docs" / "reference" / "metrics.md").read_text() == generator().metrics()


def test_the_table_of_limits_is_current() -> None:
    """`make docs` would change nothing; both programs stand in it, and what bounds callers is not missing."""
    text = (ROOT / "SECURITY.md").read_text()
    made = generator()
    assert made.security(text) == text
    table = made.limit_table()
    assert all(f"`{option.name}`" in table for option in (*OPTIONS, *SERVER_OPTIONS) if option.stops)
