"""`flagsvc move` for long: 18,000 evaluations by the SDK for Node, on the real server, on ours, and on the real one again."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import flagservers, moving, processes

FLAGS, CONTEXTS = 150, 60


@pytest.mark.long
def test_eighteen_thousand_evaluations(tmp_path: Path) -> None:
    """No answer differs in either direction; moved without the order of strategies, some would."""
    with (
        processes.postgresql() as database,
        processes.unleash_server(database) as first,
        flagservers.our_flag_server() as second,
        flagservers.our_flag_server() as third,
    ):
        real, ours, without_order = moving.real(first), moving.ours(second), moving.ours(third)
        names = moving.filled(real, FLAGS)
        asked = moving.contexts(CONTEXTS)
        before = moving.evaluated(real, names, asked)
        assert moving.move(real, ours, folder=tmp_path)[0] == 0
        between = moving.evaluated(ours, names, asked)
        moved_without_order(real, without_order)
        otherwise = moving.evaluated(without_order, names, asked)
        moving.emptied(real, names)
        assert moving.move(ours, real, folder=tmp_path)[0] == 0
        after = moving.evaluated(real, names, asked)
    assert len(before) == 18_000
    assert moving.differing(before, otherwise) > 100
    assert [moving.differing(before, between), moving.differing(before, after)] == [0, 0]


def moved_without_order(source: moving.Server, target: moving.Server) -> None:
    """Export and import as a server's own answers are, into a server that has what the flags need."""
    moving.filled(target, 0)
    for environment in moving.ENVIRONMENTS:
        data = source.admin("/features-batch/export", {"environment": environment, "project": "default"})
        target.admin("/features-batch/import", {"project": "default", "environment": environment, "data": data})
