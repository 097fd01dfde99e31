"""What a snapshot reads of a context: which fields, whether the time, whether random draws.

From this the proxy knows what it need not compute for a request, and which contexts must give the same answer.
"""

from __future__ import annotations

from flagsvc.engine.predicates import FieldPredicate, Moment, Predicate
from flagsvc.engine.strategies import (
    Addresses,
    Custom,
    DefaultRollout,
    RandomShare,
    Rollout,
    Strategy,
    UserIds,
)
from flagsvc.engine.variants import Choice


class Reads:
    """Gathered while compiling. `any_field` is set by a custom strategy that does not declare what it reads."""

    def __init__(self) -> None:
        self.fields: set[str] = set()
        self.any_field = False
        self.time = False
        self.random = False
        self.impure = False

    def predicate(self, predicate: Predicate) -> None:
        """Note what a predicate reads."""
        if isinstance(predicate, Moment):
            self.time = True
            self.fields.add("currentTime")
        elif isinstance(predicate, FieldPredicate):
            self.fields.add(predicate.name)

    def strategy(self, strategy: Strategy) -> None:
        """Note what a strategy's rule reads."""
        if isinstance(strategy, RandomShare):
            self.random = True
        elif isinstance(strategy, DefaultRollout):
            self.default_stickiness()
        elif isinstance(strategy, Rollout):
            self.fields.add(strategy.field)
        elif isinstance(strategy, UserIds):
            self.fields.add("userId")
        elif isinstance(strategy, Addresses):
            self.fields.add("remoteAddress")
        elif isinstance(strategy, Custom):
            self.custom(strategy)

    def custom(self, strategy: Custom) -> None:
        """Note what a custom strategy declares: `pure`, and the fields in `reads`."""
        declared = getattr(strategy.implementation, "reads", None)
        if declared is None:
            self.any_field = True
        else:
            self.fields.update(declared)
        if not getattr(strategy.implementation, "pure", False):
            self.impure = True
            self.time = True
            self.random = True

    def choice(self, choice: Choice) -> None:
        """Note what drawing a variant reads."""
        for override in choice.overrides:
            self.fields.add(override.field)
        if choice.certain() >= 0:
            return
        self.random = True
        if choice.by_default:
            self.default_stickiness()
            self.fields.add("remoteAddress")
        else:
            self.fields.add(choice.field)

    def default_stickiness(self) -> None:
        """Note default stickiness: a random draw where neither field is there."""
        self.random = True
        self.fields.update(("userId", "sessionId"))
