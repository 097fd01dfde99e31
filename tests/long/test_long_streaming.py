"""Thousands of random changes: real SDKs that hear of changes, and such that poll, give the same answers.

`make test-long ARGS=tests/long/test_long_streaming.py`
"""

from __future__ import annotations

import pytest

from support.sdk_modes import sdk_scene

pytestmark = pytest.mark.long
STEPS, CHANGES = 300, 7


def test_every_mode_gives_the_same_answers() -> None:
    """So many documents, with 2,100 changes, as in the short test."""
    with sdk_scene(seed=2) as scene:
        scene.walk(STEPS, CHANGES)
