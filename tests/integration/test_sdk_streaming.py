"""Real server-side SDKs that hear of changes give the answers of those that poll (dialects: Delta and streaming)."""

from __future__ import annotations

import pytest

from support.sdk_modes import sdk_scene

pytestmark = pytest.mark.programs


@pytest.mark.parametrize(("seed", "steps", "changes"), [(1, 2, 15), pytest.param(2, 300, 7, marks=pytest.mark.long)])
def test_every_mode_gives_the_same_answers(seed: int, steps: int, changes: int) -> None:
    """At the flag server and at a proxy that follows it: npm `unleash-client` that polls, polls for deltas, and streams, and PyPI
    `UnleashClient` that polls and streams, all give the same answers after the same random changes."""
    with sdk_scene(seed) as scene:
        scene.walk(steps, changes)
        answers = scene.said(f"step-{scene.step}")
        assert len(answers) == 10 and len(set(" ".join(answers["node-streaming-proxy"]).split())) > 2, "flags are on, and off"
