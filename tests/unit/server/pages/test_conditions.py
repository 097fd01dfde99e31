"""The guards of conditions: unknown fields, and what happens to users for whom no such field is sent."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.pages.conditions import show_rows, words_without


@pytest.mark.parametrize(
    ("field", "unknown", "near"),
    [("country", False, ""), ("contry", True, "country"), ("Country", True, "country"), ("company", True, ""), ("", False, "")],
)
def test_an_unknown_field(field: str, unknown: bool, near: str) -> None:
    """A field that is no context field is unknown, and the nearest known name is offered."""
    row = {"field": field, "operator": "IN", "text": "a\nb", "inverted": False, "insensitive": False}
    (shown,) = show_rows([row], {}, ["country", "userId"])
    assert (shown["unknown"], shown["near"], shown["count"]) == (unknown, near, 2)


def constraint(field: str, operator: str, *, inverted: bool = False, **more: Any) -> dict[str, Any]:
    """Return a constraint with one value."""
    return {"contextName": field, "operator": operator, "values": ["a"], "inverted": inverted, **more}


FIT, NOT = "Users without `plan` fit.", "Users without `plan` do not fit."


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ([constraint("plan", "IN")], [NOT]),
        ([constraint("plan", "NOT_IN")], [FIT]),
        ([constraint("plan", "IN", inverted=True)], [FIT]),
        ([constraint("plan", "NUM_EQ", value="1", inverted=True)], [FIT]),
        ([constraint("plan", "NOT_IN"), constraint("plan", "STR_CONTAINS")], [NOT]),
        ([constraint("plan", "NOT_IN"), constraint("userId", "IN")], [FIT, "Users without `userId` do not fit."]),
        ([constraint("plan", "DATE_AFTER", value="2026-01-01")], []),
        ([constraint("appName", "IN")], []),
        ([constraint("plan", "NOSUCH")], []),
    ],
)
def test_a_field_that_nobody_sends(constraints: list[dict[str, Any]], words: list[str]) -> None:
    """Users without a field fit if all conditions on it hold without it. A date looks at the time, and SDKs send their name."""
    assert words_without(constraints) == words
