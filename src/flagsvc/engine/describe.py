"""Describes compiled nodes in words: the test of a constraint and the context's value, the bucket of a rollout."""

from __future__ import annotations

from typing import Final

from flagsvc.engine.predicates import (
    EQUAL,
    GREATER,
    LESS,
    Contains,
    DateComparison,
    EndsWith,
    FieldPredicate,
    InList,
    InNetwork,
    Matches,
    Never,
    NumberComparison,
    Predicate,
    SemverComparison,
    StartsWith,
)
from flagsvc.engine.run import Run
from flagsvc.engine.strategies import (
    Addresses,
    CompiledStrategy,
    Custom,
    DefaultRollout,
    Everyone,
    NeverEnabled,
    RandomShare,
    StickyRollout,
    UserIds,
)
from flagsvc.engine.values import jsdate, jsnumber

ORDERS: Final[dict[int, str]] = {
    EQUAL: "=",
    GREATER: ">",
    GREATER | EQUAL: ">=",
    LESS: "<",
    LESS | EQUAL: "<=",
}
MAX_LISTED: Final = 5


def format_values(values: list[str]) -> str:
    """Return the first few values, and the number of the others."""
    quoted = ", ".join([f"`{value}`" for value in values[:MAX_LISTED]])
    more = len(values) - MAX_LISTED
    return f"[{quoted}{f', and {more} more' if more > 0 else ''}]"


def describe_test(predicate: Predicate) -> str:
    """Return the test of a constraint in words."""
    if isinstance(predicate, InList):
        return f"in {format_values(sorted(predicate.values))}"
    if isinstance(predicate, StartsWith):
        return f"starts with one of {format_values(list(predicate.values))}"
    if isinstance(predicate, EndsWith):
        return f"ends with one of {format_values(list(predicate.values))}"
    if isinstance(predicate, Contains):
        return f"contains one of {format_values(list(predicate.values))}"
    if isinstance(predicate, NumberComparison):
        return f"{ORDERS[int(predicate.accepts)]} {jsnumber.to_text(predicate.value)}"
    if isinstance(predicate, SemverComparison):
        return f"{ORDERS[int(predicate.accepts)]} version `{predicate.text}`"
    if isinstance(predicate, DateComparison):
        return f"{ORDERS[int(predicate.accepts)]} {jsdate.to_text(predicate.value)}"
    if isinstance(predicate, Matches):
        return f"matches `{predicate.text}`"
    return f"in network {format_values(list(predicate.values))}" if isinstance(predicate, InNetwork) else "holds"


def describe(predicate: Predicate, run: Run) -> str:
    """Return a constraint in words, with the context's value."""
    if isinstance(predicate, Never):
        return predicate.reason
    if not isinstance(predicate, FieldPredicate):
        return "always holds"
    found = run.context.read(predicate.kind, predicate.name)
    if isinstance(predicate, DateComparison):
        given = run.context.current_time
        found = jsdate.to_text(run.context.now if given is None else given)
    has = "is absent" if found is None else f"is `{found}`"
    return f"{predicate.name} {'not ' if predicate.negate else ''}{describe_test(predicate)}; it {has}"


def describe_rule(strategy: CompiledStrategy, run: Run) -> tuple[bool, str]:
    """Apply a strategy's own rule. Returns its answer and a description."""
    if isinstance(strategy, NeverEnabled):
        return False, strategy.reason
    if isinstance(strategy, Everyone):
        return True, "admits everyone"
    if isinstance(strategy, RandomShare):
        bucket = int(run.draw(100))
        return bucket <= strategy.share, f"random draw {bucket}, admits up to {strategy.share}"
    if isinstance(strategy, StickyRollout):
        return describe_rollout(strategy, run)
    admits = strategy.admits(run)
    if isinstance(strategy, UserIds):
        return admits, f"userId {format_value(run.context.user_id)} in {format_values(sorted(strategy.users))}"
    if isinstance(strategy, Addresses):
        return (
            admits,
            f"remoteAddress {format_value(run.context.remote_address)} in {format_values(sorted(strategy.addresses.texts))}",
        )
    return admits, "custom strategy" if isinstance(strategy, Custom) else "rule of its own"


def describe_rollout(strategy: StickyRollout, run: Run) -> tuple[bool, str]:
    """Apply a rollout. Returns its answer and the bucket."""
    by_default = isinstance(strategy, DefaultRollout)
    identifier = run.user_or_session() if by_default else strategy.identifier(run)
    if identifier is None and not by_default:
        return False, f"sticks to {strategy.field}, which is absent"
    bucket = int(run.draw(100) if identifier is None else strategy.prefix.bucket(identifier, 100))
    field = strategy.field
    if by_default:
        field = "a random draw" if identifier is None else "userId" if run.context.user_id else "sessionId"
    return (
        bucket <= strategy.share,
        f"bucket {bucket} by {field} in group `{strategy.prefix.group}`, admits up to {strategy.share}",
    )


def format_value(value: str | None) -> str:
    """Return a context value in words."""
    return "(absent)" if value is None else f"`{value}`"
