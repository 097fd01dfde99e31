"""What `flagsvc migrate` prints for a peer answers the peer's callers as the peer did, but for a list of exclusions.

The reference runs beside ours. Unleash Edge is no package of a registry that tests use, so its answers are recorded
(`edge_recording`). Where the variable EDGE names its program, the recording is compared with it.
"""

from __future__ import annotations

import functools
from collections import Counter

import edge_recording
import peer_exclusions
import pytest
from peer_compare import Records, explain
from peer_rows import Exclusion
from peer_runs import ask_ours, ask_peer, edge_program
from peer_scenes import EDGE, REFERENCE, SCENES, Scene

from support import needs

WAYS = [
    pytest.param(scene, written, printed, id=f"{scene.name}-{written}-{printed}".replace(" ", "-"))
    for scene in SCENES
    for written, printed in scene.ways
]
TABLE = {name: each for name, each in vars(peer_exclusions).items() if isinstance(each, Exclusion)}


@functools.cache
def answers_of(scene: Scene) -> Records:
    """Return what the peer of a scene answers."""
    return edge_recording.read()[scene.name] if scene.peer == EDGE else ask_peer(scene)


@pytest.mark.parametrize(("scene", "written", "printed"), WAYS)
def test_ours_answers_as_the_peer_did(scene: Scene, written: str, printed: str) -> None:
    """Every answer is the peer's, or what the exclusions of its row say; and each exclusion is needed there.

    Ours is started from the peer's configuration in one form, and as another one.
    """
    theirs = answers_of(scene)
    found = ask_ours(scene, written, printed, theirs)
    problems = [each for row in scene.rows for each in explain(row, theirs, found, is_ordered=scene.peer == REFERENCE)]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


if edge_program() or not needs.everything():  # no registry that CI uses has Edge

    @pytest.mark.parametrize("scene", [scene for scene in SCENES if scene.peer == EDGE], ids=lambda scene: scene.name)
    def test_the_recording_is_true(scene: Scene) -> None:
        """Edge itself answers as recorded, where the variable EDGE names it."""
        if not edge_program():
            pytest.skip("the variable EDGE names no program; its answers are recorded")
        found = ask_peer(scene)
        assert {title: each for title, each in found.items() if each != answers_of(scene)[title]} == {}
        assert found.keys() == answers_of(scene).keys()


def test_every_exclusion_is_in_use() -> None:
    """An exclusion of the table is one of a row, with the reason that the table has; titles of rows are unique.

    At least 90 requests must be answered as by the peer, without any exclusion.
    """
    assert sum(not row.but for scene in SCENES for row in scene.rows) >= 90
    used = {each.name for scene in SCENES for row in scene.rows for each in row.but}
    assert used == {each.name for each in TABLE.values()}
    reasons = {(each.name, each.reason) for scene in SCENES for row in scene.rows for each in row.but}
    assert reasons == {(each.name, each.reason) for each in TABLE.values()}
    for scene in SCENES:
        assert [title for title, times in Counter(row.title for row in scene.rows).items() if times > 1] == []
