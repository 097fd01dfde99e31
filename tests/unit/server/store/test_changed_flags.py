"""Which flags commits have changed: only what is certain is known, anything else is read as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.store.changed_flags import MAX_COMMITS, MAX_FLAGS, OF_ONE_FLAG, ChangedFlags
from flagsvc.server.store.event_kinds import KINDS

ON, STRATEGY = "feature-environment-enabled", "feature-strategy-update"


def events(kind: str, *names: str | None) -> list[dict[str, Any]]:
    return [{"type": kind, "feature": name} for name in names]


def names(*given: object) -> frozenset[object]:
    return frozenset(given)


def test_the_flags_of_all_commits_between() -> None:
    """The names of the commits after the one revision, until the other; of no commit, no name."""
    changed = ChangedFlags()
    changed.note(5, events(ON, "a"))
    changed.note(6, [*events(ON, "b"), *events(STRATEGY, "b", "c")])
    assert changed.find(4, 6) == names("a", "b", "c")
    assert (changed.find(5, 6), changed.find(6, 6)) == (names("b", "c"), names())


@pytest.mark.parametrize(
    "unknown",
    [
        events("feature-created", "b"),
        events("feature-archived", "b"),
        events("segment-updated", None),
        events("features-imported", None),
        [*events(ON, "b"), *events("tag-type-deleted", None)],
        events(ON, *map(str, range(MAX_FLAGS + 1))),
        [],
    ],
    ids=["a new flag", "an archived flag", "a segment", "an import", "more than a flag", "many flags", "no event"],
)
def test_what_is_not_certain_is_unknown(unknown: list[dict[str, Any]]) -> None:
    """One commit that is unknown, or was not noted, makes all that contains it unknown."""
    changed = ChangedFlags()
    changed.note(1, events(ON, "a"))
    assert changed.find(0, 1) == names("a")
    changed.note(2, unknown)
    assert changed.find(0, 2) is None and changed.find(1, 2) is None
    changed.note(4, events(ON, "d"))
    assert changed.find(3, 4) == names("d") and changed.find(2, 4) is None and changed.find(4, 9) is None


def test_a_database_that_was_restored() -> None:
    """A revision that goes back, or comes again, makes all unknown that was noted."""
    changed = ChangedFlags()
    for revision in range(1, 9):
        changed.note(revision, events(ON, "a"))
    assert changed.find(2, 5) is None and changed.find(7, 8) is None, "revision 5 is older than what was noted"
    changed.note(9, events(ON, "b"))
    assert changed.find(8, 9) == names("b")
    changed.note(9, events(ON, "c"))
    assert (changed.find(8, 9), changed.find(7, 9)) == (names("c"), None)


def test_the_last_commits_are_remembered() -> None:
    changed = ChangedFlags()
    for revision in range(1, MAX_COMMITS + 3):
        changed.note(revision, events(ON, str(revision)))
    assert changed.find(1, MAX_COMMITS + 2) is None
    assert changed.find(2, MAX_COMMITS + 2) == names(*map(str, range(3, MAX_COMMITS + 3)))


def test_the_types_exist() -> None:
    """Every type is one that events have."""
    assert set(KINDS) >= OF_ONE_FLAG
