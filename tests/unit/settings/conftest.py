"""Fixtures of the tests of the settings."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a future configuration file."""
    return tmp_path / "flagsvc.toml"
