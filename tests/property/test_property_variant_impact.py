"""The impact of a change of variants agrees with what the engine gives to drawn users."""

from __future__ import annotations

from collections import Counter
from math import sqrt
from typing import Any

import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.parse import parse_strategy
from flagsvc.reasons.variant_impact import Draw, variant_impact

DRAWN = 20_000


def strategy(group: str, field: str, **weights: int) -> dict[str, Any]:
    """Return a strategy for everyone with variants of these weights."""
    variants = [{"name": name, "weight": weight, "stickiness": field} for name, weight in weights.items()]
    parameters = {"rollout": "100", "stickiness": "default", "groupId": group}
    return {"name": "flexibleRollout", "parameters": parameters, "variants": variants}


def draw(given: dict[str, Any]) -> Draw:
    """Return the draw of a strategy's variants."""
    spec = parse_strategy(given, "strategy")
    return Draw(spec.variants, spec.parameters["groupId"], spec.variants[0].stickiness or "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (strategy("g", "userId", a=500, b=500), strategy("g", "userId", a=433, b=67, c=500)),
        (strategy("g", "userId", a=100, b=200, c=700), strategy("g", "default", b=200, c=300, d=500)),
        (strategy("g", "default", a=500, b=500), strategy("h", "userId", a=250, b=750)),
        (strategy("g", "userId", a=500, b=500), strategy("g", "company", a=500, b=300, c=200)),
        (strategy("g", "userId", a=1000), strategy("h", "company", a=334, b=333, c=333)),
        (strategy("g", "userId", a=200, b=0, c=800), strategy("h", "userId", b=1000)),
    ],
)
def test_percentages_agree_with_drawn_users(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Each percentage is within four standard deviations of what drawn users get, and no other user changes."""
    features = [
        {"name": name, "enabled": True, "strategies": [each]} for name, each in (("old", before), ("new", after))
    ]
    snapshot = compile_document({"version": 2, "features": features, "segments": []}, CompileOptions()).snapshot
    moves: Counter[tuple[str, str]] = Counter()
    for number in range(DRAWN):
        context = Context(user_id=f"user-{number}", properties={"company": f"company-{number}"})
        was, will = (snapshot.decide(context, name)[1] for name in ("old", "new"))
        if was != will:
            moves[was, will] += 1
    found = variant_impact(draw(before), draw(after)).moves
    assert found.keys() == moves.keys()
    for pair, share in found.items():
        assert abs(moves[pair] - share / 100 * DRAWN) <= 4 * sqrt(DRAWN * share / 100 * (1 - share / 100))
