"""Variants: weights, draws and payloads. The corpus has stickiness, overrides and a strategy's own variants."""

from __future__ import annotations

from collections import Counter
from typing import Any

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.engine.context import Context
from support.evaluating import feature, snapshot, toggles

SEED = 86028157


def variant(name: str, weight: object = 1, **more: Any) -> dict[str, Any]:
    """Return a variant."""
    return {"name": name, "weight": weight, **more}


def drawn(flag: dict[str, Any], context: Context) -> str:
    """Return the name of a context's variant; `disabled` without one."""
    return str(toggles(snapshot(flag).all(context))[flag["name"]]["variant"]["name"])


def target(group: str, identifier: str, total: int) -> int:
    """The slow and obvious way."""
    return mmh3.hash(f"{group}:{identifier}", SEED, signed=False) % total + 1


@given(weights=st.lists(st.integers(0, 50), min_size=1, max_size=6), identifier=st.text("abc123", min_size=1))
def test_the_draw_follows_the_weights(weights: list[int], identifier: str) -> None:
    """The variant is the first whose running sum of weights reaches the identifier's bucket."""
    flag = feature("f", variants=[variant(f"v{at}", weight) for at, weight in enumerate(weights)])
    total = sum(weights)
    expected = "disabled"
    if total:
        bucket = target("f", identifier, total)
        expected = next(f"v{at}" for at in range(len(weights)) if weights[at] and sum(weights[: at + 1]) >= bucket)
    assert drawn(flag, Context(user_id=identifier)) == expected


def test_stickiness_is_the_first_variant_s() -> None:
    """A named field is used. If it is absent, the draw is random. Null is the default stickiness."""
    sticky = feature("f", variants=[variant(f"v{at}", stickiness="region") for at in range(100)])
    assert drawn(sticky, Context(user_id="u", properties={"region": "eu"})) == f"v{target('f', 'eu', 100) - 1}"
    made = snapshot(sticky)
    assert len({made.decide(Context(user_id="u", entropy=seed), "f")[1] for seed in range(50)}) > 10
    null = feature("f", variants=[variant(f"v{at}", stickiness=None) for at in range(100)])
    assert drawn(null, Context(user_id="u")) == f"v{target('f', 'u', 100) - 1}"


def test_a_random_draw_follows_the_weights() -> None:
    """Without any stickiness, random draws follow the weights."""
    made = snapshot(feature("f", variants=[variant("a", 30), variant("b", 70)]))
    counted = Counter(made.decide(Context(entropy=seed * 7919), "f")[1] for seed in range(3000))
    assert 0.25 < counted["a"] / 3000 < 0.35


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"type": "string", "value": "x"}, {"type": "string", "value": "x"}),
        ({"type": "json", "value": '{"a": 1}'}, {"type": "json", "value": '{"a": 1}'}),
        ({"type": "json", "value": {"a": [1, None]}}, {"type": "json", "value": '{"a":[1,null]}'}),
        ({"type": "number", "value": 5}, {"type": "number", "value": "5"}),
        ({"type": "number", "value": 1.0}, {"type": "number", "value": "1"}),
        ({"type": "number", "value": True}, {"type": "number", "value": "true"}),
        ({"type": "string", "value": "x", "more": 1}, {"type": "string", "value": "x"}),
        ({"type": "string"}, {"type": "string"}),
    ],
)
def test_payloads(payload: dict[str, Any], expected: dict[str, str]) -> None:
    """A payload's value is always a text; nothing else of it goes out."""
    body = snapshot(feature("f", variants=[variant("a", payload=payload)])).enabled(Context())
    assert toggles(body)["f"]["variant"] == {"name": "a", "enabled": True, "payload": expected}


def test_the_feature_s_state_inside_the_variant_is_an_option() -> None:
    """With the option each variant repeats the state under both names; without it neither name appears."""
    made = snapshot(feature("f"), {"name": "off", "enabled": False, "strategies": []}, variant_feature_state=True)
    answer = toggles(made.all(Context()))
    assert answer["f"]["variant"] == {"name": "disabled", "enabled": False, "feature_enabled": True, "featureEnabled": True}
    assert answer["off"]["variant"]["feature_enabled"] is False
    unknown = toggles(made.named(Context(), ["nobody"])[0])["nobody"]
    assert unknown["variant"]["featureEnabled"] is False
