"""Reloads while callers ask: no request of a lasting key fails, no answer has foreign flags, revoked keys open nothing.

The long version, with one, two and four workers, is tests/long/test_long_reload.py.
"""

from __future__ import annotations

from pathlib import Path

from support.reload_walk import walking


def test_several_environments(tmp_path: Path) -> None:
    """Two workers with ten environments."""
    with walking(tmp_path, seed=1, number=2) as walk:
        walk.steps(10)


def test_a_single_environment(tmp_path: Path) -> None:
    """Two workers with one environment: the last change is of its upstream, and of a key with it."""
    with walking(tmp_path, seed=1, number=2, single=True) as walk:
        walk.steps(4)
        walk.step("another upstream")
        walk.settle()
