"""Segments and context fields: bounds, cost, and what the real server does not check.

`test_server_resources_beside_the_real_one.py` compares all operations of segments, context fields and strategy types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import event

from flagsvc.server.store.resources import context_fields, segments
from flagsvc.server.store.resources.strategies import read_legal_values
from support.admin_call_rows import STRATEGIES
from support.seeded_store import SeededStore

HERE = {"project": "default", "environment": "development"}


def wanted(name: str = "beta", **given: Any) -> dict[str, Any]:
    """Return a segment to make."""
    return {"name": name, "constraints": [{"contextName": "userId", "operator": "IN", "values": ["a"]}], **given}


def test_a_segment_has_a_longest_name(seeded: SeededStore) -> None:
    """A longer name is refused where it is asked about and where it is made. A refusal leaves nothing behind."""
    long = "x" * 256
    told = f'"name" length must be less than or equal to 255 characters long. You provided "{long}".'
    assert seeded.refusal(segments.create, wanted(long)) == (400, "BadDataError", [told])
    assert seeded.refusal(segments.check_name, long) == (400, "BadDataError", [told])
    assert seeded.read(segments.list_segments) == seeded.told() == []


def test_there_are_so_many_segments_and_no_more(seeded: SeededStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the limit of segments."""
    monkeypatch.setattr(segments, "MAX_SEGMENTS", 2)
    for name in ("a", "b"):
        seeded.write(segments.create, wanted(name))
    limit = "Failed to create segment. You can't create more than the established limit of 2."
    assert seeded.refusal(segments.create, wanted("c")) == (400, "ExceedsLimitError", [limit])


def test_the_segments_of_a_strategy_are_set_at_its_place(seeded: SeededStore) -> None:
    """The segments keep their order, without repeats. A strategy is not found in another project or environment."""
    numbers = [seeded.write(segments.create, wanted(name))["id"] for name in ("a", "b", "c")]
    seeded.write(segments.set_segments, STRATEGIES["used"], [numbers[2], numbers[0], numbers[2]], **HERE)
    for place in (HERE | {"project": "other"}, HERE | {"environment": "production"}):
        assert seeded.refusal(segments.set_segments, STRATEGIES["used"], [], **place)[0] == 404
    assert [each["name"] for each in seeded.read(segments.segments_of, STRATEGIES["used"])] == ["c", "a"]


def test_a_legal_value_changes_nothing_else(seeded: SeededStore) -> None:
    """A new legal value is the last one, and the field keeps its place in lists."""
    before = seeded.read(context_fields.find, "plan")
    seeded.write(context_fields.set_legal_value, "plan", {"value": "wood"})
    after = seeded.read(context_fields.find, "plan")
    assert after == before | {"legalValues": [*before["legalValues"], {"value": "wood"}]}
    assert before["sortOrder"] != 0


def test_the_fields_of_a_project_are_deleted_together(seeded: SeededStore) -> None:
    """All strategies are read once for all fields: for each field, 5,000 fields and as many strategies took minutes."""
    names = [f"of-{number}" for number in range(10)]
    for name in names:
        seeded.write(context_fields.create, {"name": name})
    sent: list[str] = []
    event.listen(seeded.store.engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    seeded.write(context_fields.remove, *names)
    assert sum("FROM strategies" in each for each in sent) == 1 and len(sent) < 15
    assert seeded.told()[-10:] == [("context-field-deleted",)] * 10
    assert seeded.refusal(context_fields.remove, "userId", "plan")[:2] == (409, "ConflictError")


def test_legal_values_are_looked_up(seeded: SeededStore) -> None:
    """Legal values are in order and in no list, because strategies look thousands of values up among thousands."""
    several = ("b", "a", "c")
    seeded.write(context_fields.create, {"name": "many", "legalValues": [{"value": each} for each in several]})
    found = seeded.read(read_legal_values, ["many"])["many"]
    assert tuple(found) == several
    assert not isinstance(found, Sequence)
