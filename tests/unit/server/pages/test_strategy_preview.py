"""What the page of a strategy says before it is saved: figures, and what the state of the flag means for them.

The conditions of a form.
"""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.pages.conditions import MOST_BOXES, show_rows
from flagsvc.server.pages.strategy_form import drawn_variants
from flagsvc.server.pages.strategy_preview import OF_FITTING, preview_of

USERS = [{"contextName": "userId", "operator": "IN", "values": ["1"]}]


def strategy(rollout: int = 25, **more: Any) -> dict[str, Any]:
    """Return a strategy as the admin API has it."""
    parameters = {"rollout": str(rollout), "stickiness": "userId", "groupId": "a"}
    parts: dict[str, Any] = {"name": "flexibleRollout", "parameters": parameters, "disabled": False}
    return parts | {"constraints": [], "segments": [], "variants": []} | more


@pytest.mark.parametrize(
    ("stored", "wanted", "others", "enabled", "sentences", "notes"),
    [
        (strategy(10), strategy(25), [], True, ["15 % of the users by userId get it.", "No user loses it."], []),
        (
            None,
            strategy(25),
            [],
            True,
            ["75 % of the users by userId lose it.", "Those without userId lose it.", "No user gets it who does not have it now."],
            ["No strategy is active here, so the flag is on for everyone now. With this one it is on for those only."],
        ),
        (
            strategy(10),
            strategy(10, disabled=True),
            [strategy(disabled=True)],
            True,
            ["10 % of the users by userId lose it.", "No user gets it who does not have it now."],
            ["It is the last active strategy here, so the flag is switched off."],
        ),
        (
            None,
            strategy(25, constraints=USERS),
            [strategy()],
            True,
            ["25 % of the users by userId get it.", "No user loses it."],
            [
                OF_FITTING,
                "Users without `userId` do not fit.",
                "Other strategies of this flag are active here. They may give it to users all the same.",
            ],
        ),
        (
            strategy(10),
            strategy(10),
            [],
            False,
            ["No user gets it or loses it by this."],
            ["The flag is off here, so no user has it now. This holds once it is on."],
        ),
    ],
)
def test_preview(
    stored: dict[str, Any] | None,
    wanted: dict[str, Any],
    others: list[dict[str, Any]],
    enabled: bool,
    sentences: list[str],
    notes: list[str],
) -> None:
    """A flag that is on without an active strategy is on for everyone, so that its first strategy takes it away."""
    found = preview_of("a", stored, wanted, others, {}, enabled=enabled)
    assert (found["sentences"], found["notes"]) == (sentences, notes)


def test_an_odd_strategy() -> None:
    """A rollout that is no number is one of 0 %, as clients read it."""
    found = preview_of("a", None, strategy(parameters={"rollout": {}}), [], {}, enabled=False)
    assert found["sentences"] == ["No user gets it or loses it by this."]
    assert found["share"] == {"before": 0, "after": 0} and "nobody" in found["after"]


def test_variants_draw_as_the_rollout() -> None:
    """Variants without a field and strategies without a group draw as clients draw them."""
    variants = [{"name": "v", "weight": 1000}]
    assert drawn_variants(strategy(variants=variants))[1:] == ("a", "userId")
    assert drawn_variants(strategy(variants=variants, parameters={}))[1:] == ("undefined", "default")
    assert drawn_variants(strategy(variants=[variants[0] | {"stickiness": "plan"}]))[1:] == ("a", "plan")


def row(text: str) -> dict[str, Any]:
    """Return a condition on the plan."""
    return {"field": "plan", "operator": "IN", "text": text, "inverted": False, "insensitive": False}


def test_boxes_are_bounded() -> None:
    """Legal values are boxes, ticked or not; of a field with very many, all values stay in the text."""
    few = dict.fromkeys(f"value-{number}" for number in range(MOST_BOXES))
    (shown,) = show_rows([row("value-0\nother")], {"plan": few}, [])
    assert (len(shown["boxes"]), shown["text"]) == (MOST_BOXES, "other")
    assert [each["value"] for each in shown["boxes"] if each["ticked"]] == ["value-0"]
    (shown,) = show_rows([row("value-0\nother")], {"plan": few | {"one more": None}}, [])
    assert (shown["boxes"], shown["offered"], shown["text"]) == ([], [], "value-0\nother")
