"""The conditions of a form."""

from __future__ import annotations

from typing import Any

from flagsvc.server.pages.conditions import MOST_BOXES, show_rows


def row(text: str) -> dict[str, Any]:
    """Return a condition on the plan."""
    return {"field": "plan", "operator": "IN", "text": text, "inverted": False, "insensitive": False}


def test_boxes_are_bounded() -> None:
    """Legal values are boxes, ticked or not; of a field with very many, all values stay in the text."""
    few = dict.fromkeys(f"value-{number}" for number in range(MOST_BOXES))
    (shown,) = show_rows([row("value-0\nother")], {"plan": few})
    assert (len(shown["boxes"]), shown["text"]) == (MOST_BOXES, "other")
    assert [each["value"] for each in shown["boxes"] if each["ticked"]] == ["value-0"]
    (shown,) = show_rows([row("value-0\nother")], {"plan": few | {"one more": None}})
    assert (shown["boxes"], shown["offered"], shown["text"]) == ([], [], "value-0\nother")
