"""Odd weights draw as in the reference: a text makes a sum a text, what is missing makes it NaN, a fraction leaves a gap."""

from __future__ import annotations

import time
from typing import Any

import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.values.jsvalue import MISSING
from flagsvc.engine.weights import LONGEST, Weights
from support import javascript
from support.evaluating import feature, strategy

DRAW = """
(([stated, hashes]) => {
  const variants = stated.map(each => (each === 'missing' ? {} : { weight: each }));
  const total = variants.reduce((sum, each) => sum + each.weight, 0);
  if (total <= 0) return hashes.map(() => -1);
  return hashes.map(hash => {
    const target = (hash % total) + 1;
    let counter = 0;
    return variants.findIndex(each => {
      if (each.weight === 0) return false;
      counter += each.weight;
      return !(counter < target);
    });
  });
})
"""
"""The index that each hash draws of some weights, in JavaScript; -1 for none."""
HASHES = [
    *[third + step for third in (1, 333, 500, 667, 999) for step in (-1, 0, 1)],
    7,
    123_456_789,
    2**31,
    2**32 - 1,
    *range(10**6, 10**6 + 999, 37),
]
WEIGHTS: list[list[Any]] = [
    *([333.3] * 3, [500, 500], [333.3, 333.3, 333.4], [0.5], [0.5, 0], [1.5, -0.25], [1e300, 1], [10**20, 5]),
    *(["500", 500], [500, "500"], ["500"], ["500", 0], ["333.3", 500], ["0", "0"], ["", 5], ["x", 5], ["1e", 5]),
    *(["missing", 5], [0, "missing", 5], [None, 5], [5, None], [None], [True, 5], [False, 5], [[], 5], [[5], 5], [{}, 5]),
    *([0, 0], [-5, 10], [10, -5], [-10, 5], ["0x10", 5], ["-5", 5], []),
]


def test_draws_are_those_of_node() -> None:
    """Each hash draws the same variant of each list of weights; whole numbers that stand for weights draw the same, too."""
    expected = javascript.apply(DRAW, [[stated, HASHES] for stated in WEIGHTS])
    for stated, drawn in zip(WEIGHTS, expected, strict=True):
        weights = Weights([MISSING if each == "missing" else each for each in stated])
        assert [by_hash(weights, hashed) for hashed in HASHES] == drawn, stated


def by_hash(weights: Weights, hashed: int) -> int:
    """Return the index that a hash draws: by whole numbers where they draw the same."""
    rounded = weights.rounded()
    if not weights.is_whole():
        return weights.draw(hashed)
    target, reached = hashed % sum(rounded) + 1 if sum(rounded) > 0 else 0, 0
    for at, weight in enumerate(rounded):
        reached += weight
        if target and weight and reached >= target:
            return at
    return -1


def test_a_sum_of_texts_stays_short() -> None:
    """Many texts take linear time: of a sum so many characters are kept."""
    started = time.monotonic()
    weights = Weights(["9"] * 400_000)
    assert time.monotonic() - started < 10
    assert weights.total == float("inf") and len(weights.limits) == 400_000
    assert LONGEST > 400  # more digits than any number has


def variants(*weights: Any) -> list[dict[str, Any]]:
    """Return variants named by their place."""
    return [{"name": str(at), "weight": weight, "stickiness": "userId"} for at, weight in enumerate(weights)]


def drawn(flag: dict[str, Any]) -> dict[str, int]:
    """Return how many of a thousand users get each variant."""
    made = compile_document({"features": [flag]}, CompileOptions(class_sightings=1)).snapshot
    found: dict[str, int] = {}
    for number in range(1000):
        enabled, variant = made.decide(Context(user_id=str(number)), "f")
        assert enabled
        found[variant] = found.get(variant, 0) + 1
    return found


def test_a_share_without_a_variant() -> None:
    """A total with a fraction leaves some users without a variant: they get that of the feature, else none."""
    uneven = variants(0.5, 0.7)
    assert set(drawn(feature("f", variants=uneven))) == {"1", "disabled"}
    own = strategy("default", parameters={"groupId": "g"}, variants=uneven)
    assert "disabled" in drawn(feature("f", own))
    other = [{"name": "fallback", "weight": 1}]
    assert set(drawn(feature("f", own, variants=other))) == {"1", "fallback"}


@pytest.mark.parametrize("weights", [("500", 500), (333.3, 333.3), (None, 7), (0.1,)])
def test_lists_and_single_answers_agree(weights: tuple[Any, ...]) -> None:
    """A list answer, with classes of contexts or without, has the variant of the single one."""
    flag = feature("f", strategy("flexibleRollout", parameters={"rollout": "50", "groupId": "g"}), variants=variants(*weights))
    made = [compile_document({"features": [flag]}, CompileOptions(class_bytes=size)).snapshot for size in (0, 8_000_000)]
    for number in range(300):
        context = Context(user_id=str(number))
        for _ in range(3):
            one, other = (each.all(context) for each in made)
            assert one == other
            enabled, variant = made[0].decide(context, "f")
            assert f'"enabled":{str(enabled).lower()},"variant":{{"name":"{variant}"'.encode() in one
