"""How a toggle is decided: alike for everybody, by the context, or by a share. Compiled.

OpenFeature providers are told (dialects: OpenFeature Remote Evaluation Protocol).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from flagsvc.engine.features import OFF, Toggle
from flagsvc.engine.parts import DISABLED
from flagsvc.engine.strategies import RandomShare, StickyRollout
from flagsvc.engine.variants import VariantChoice

SWITCHED_OFF: Final = 0
ALIKE: Final = 1
BY_CONTEXT: Final = 2
BY_SHARE: Final = 3


def way_of(toggle: Toggle) -> i64:
    """Return how a toggle is decided. It is a fact of the toggle and not of the strategy that was on for a context.

    A toggle is decided by a share if any of its strategies admits a share, if a variant is drawn, or if that holds for a parent.
    """
    if toggle.constant >= 0:
        return SWITCHED_OFF if toggle.constant == OFF and toggle.reason == DISABLED else ALIKE
    if has_share(toggle):
        return BY_SHARE
    for parent in toggle.parents:
        if parent.toggle.constant < 0 and has_share(parent.toggle):
            return BY_SHARE
    return BY_CONTEXT


def has_share(toggle: Toggle) -> bool:
    """Return whether a strategy of a toggle admits a share, or a variant is drawn."""
    if is_drawn(toggle.choice):
        return True
    for strategy in toggle.strategies:
        if isinstance(strategy, RandomShare) or (isinstance(strategy, StickyRollout) and strategy.share < 100):
            return True
        if is_drawn(strategy.choice):
            return True
    return False


def is_drawn(choice: VariantChoice | None) -> bool:
    """Return whether more than one variant has a weight."""
    return choice is not None and choice.only < 0
