"""Activation strategies: the built-in ones as rows of a table, and custom ones (specification: Options).

A strategy is on for a run if all its conditions hold and its own rule admits the run. A rule never raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.context import FIELDS, PROPERTY, SESSION_ID, USER_ID, Context
from flagsvc.engine.hashing import STRATEGY_SEED, Identifier, Prefix, hashed
from flagsvc.engine.model import StrategySpec
from flagsvc.engine.predicates import Predicate
from flagsvc.engine.run import STRATEGY, Run
from flagsvc.engine.values import jsnumber
from flagsvc.engine.values.cidr import AddressList
from flagsvc.engine.values.text import lower, split_list
from flagsvc.engine.variants import VariantChoice

BY_HOST: Final = "applicationHostname"
"""The strategy whose answer depends on the proxy's host."""


class CustomStrategy(Protocol):
    """The interface of a custom strategy: its name, and whether it is on for a context."""

    name: str

    def is_enabled(self, parameters: Mapping[str, str], context: Context) -> object:
        """Return whether the strategy is on; any true value counts."""


@mypyc_attr(acyclic=True)
class CompiledStrategy:
    """A compiled strategy: its conditions, then its own rule. `choice` draws one of its variants, if it has any.

    Most strategies have at most one condition and are the only one of their toggle, and an attribute is faster to reach than an
    item of a list. So the first condition and the next strategy are attributes.
    """

    def __init__(self) -> None:
        self.condition: Predicate | None = None
        self.others: list[Predicate] | None = None
        self.name = ""
        self.choice: VariantChoice | None = None
        self.first: i64 = 0
        self.following: CompiledStrategy | None = None

    @property
    def conditions(self) -> list[Predicate]:
        """All conditions."""
        if self.condition is None:
            return []
        return [self.condition, *([] if self.others is None else self.others)]

    def require(self, condition: Predicate) -> None:
        """Add a condition."""
        if self.condition is None:
            self.condition = condition
        elif self.others is None:
            self.others = [condition]
        else:
            self.others.append(condition)

    def admits(self, run: Run) -> bool:
        """Return whether the strategy's own rule admits the run."""
        return False

    def active(self, run: Run) -> bool:
        """Return whether all conditions hold and the rule admits the run."""
        condition = self.condition
        if condition is not None:
            if not condition.holds(run):
                return False
            if self.others is not None:
                for other in self.others:
                    if not other.holds(run):
                        return False
        return self.admits(run)


@mypyc_attr(acyclic=True)
class Everyone(CompiledStrategy):
    """A rule that admits everyone."""

    def admits(self, run: Run) -> bool:
        """Return true."""
        return True


@mypyc_attr(acyclic=True)
class NeverEnabled(CompiledStrategy):
    """A rule that admits no context; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


@mypyc_attr(acyclic=True)
class UserIds(CompiledStrategy):
    """userWithId: the user is in the list."""

    def __init__(self, users: frozenset[str]) -> None:
        super().__init__()
        self.users = users

    def admits(self, run: Run) -> bool:
        """Return whether the user is in the list."""
        user = run.context.user_id
        return user is not None and user in self.users


@mypyc_attr(acyclic=True)
class Addresses(CompiledStrategy):
    """remoteAddress: the address is in the list, as text or in one of its networks."""

    def __init__(self, addresses: AddressList) -> None:
        super().__init__()
        self.addresses = addresses

    def admits(self, run: Run) -> bool:
        """Return whether the address is in the list. Networks are IPv4 only."""
        address = run.context.remote_address
        return address is not None and self.addresses.matches(address)


@mypyc_attr(acyclic=True)
class RandomShare(CompiledStrategy):
    """A rule that admits a share of the requests, by a new random draw for each request."""

    def __init__(self, share: i64) -> None:
        super().__init__()
        self.share: i64 = share

    def admits(self, run: Run) -> bool:
        """Return true for `share` of a hundred draws."""
        return run.draw(100) <= self.share


@mypyc_attr(acyclic=True)
class StickyRollout(CompiledStrategy):
    """A rule that admits the identifiers whose bucket is within the share: stickiness on one context field.

    `share` is a percentage. Buckets are 1 to 100, so `share` is also the last bucket that the rule admits.

    The beginning of the hash is copied from the prefix, so that a request finds it beside the share and not in another place of
    memory.
    """

    def __init__(self, kind: i64, field: str, prefix: Prefix, share: i64) -> None:
        super().__init__()
        self.share: i64 = share
        self.state: i64 = prefix.state
        self.rest: i64 = prefix.rest
        self.size: i64 = prefix.size
        self.kind: i64 = kind
        self.field = field
        self.prefix = prefix

    def identifier(self, run: Run) -> Identifier | None:
        """Return the identifier the rollout sticks to."""
        return run.identify(self.kind, self.field)

    def admits(self, run: Run) -> bool:
        """Return whether the identifier is in the first buckets; false if the field is absent."""
        identifier = self.identifier(run)
        if identifier is None:
            return False
        return self.share == 100 or self.bucket(identifier) <= self.share

    def bucket(self, identifier: Identifier) -> i64:
        """Return the identifier's bucket, 1 to 100."""
        return hashed(identifier, self.state, self.rest, self.size) % 100 + 1


@mypyc_attr(acyclic=True)
class OwnFieldRollout(StickyRollout):
    """gradualRolloutUserId and gradualRolloutSessionId: the standard field itself, never a property of the same name."""

    def identifier(self, run: Run) -> Identifier | None:
        """Return the identifier in the standard field."""
        own = run.context.user_id if self.kind == USER_ID else run.context.session_id
        return run.identify(self.kind, self.field) if own else None


@mypyc_attr(acyclic=True)
class DefaultRollout(StickyRollout):
    """Default stickiness: userId, else sessionId, else a random draw."""

    def identifier(self, run: Run) -> Identifier | None:
        """Return the identifier of the user, else of the session."""
        return run.user_or_session()

    def admits(self, run: Run) -> bool:
        """Return whether the identifier is in the first buckets. Without an identifier, admit a share of the draws."""
        identifier = run.user_or_session()
        bucket = run.draw(100) if identifier is None else self.bucket(identifier)
        return bucket <= self.share


@mypyc_attr(acyclic=True)
class Custom(CompiledStrategy):
    """A custom strategy. An exception counts as false, and is recorded."""

    def __init__(self, implementation: CustomStrategy, parameters: dict[str, str]) -> None:
        super().__init__()
        self.implementation = implementation
        # read-only, because it belongs to the snapshot
        self.parameters: Mapping[str, str] = MappingProxyType(parameters)

    def admits(self, run: Run) -> bool:
        """Return the result of the custom code."""
        try:
            return bool(self.implementation.is_enabled(self.parameters, run.context))
        except Exception as error:
            run.memory.record_fault(STRATEGY, self.name, error)
            return False


@mypyc_attr(acyclic=True)
class StrategyOptions:
    """The input of the strategies' compilers in addition to the document."""

    def __init__(self, utf8: bool, hostname: str, custom: Mapping[str, CustomStrategy]) -> None:
        self.utf8 = utf8
        self.hostname = hostname
        self.custom = custom


def percentage(text: str | None) -> int:
    """Return the last bucket, 0 to 100, that a percentage includes. A text that is not a number gives 0, which includes none."""
    number = math.nan if text is None else jsnumber.parse(text)
    if not number > 0:
        return 0
    return 100 if number >= 100 else math.floor(number)


def compile_default(spec: StrategySpec, options: StrategyOptions) -> CompiledStrategy:
    """default: everyone."""
    return Everyone()


def compile_user_ids(spec: StrategySpec, options: StrategyOptions) -> CompiledStrategy:
    """userWithId: `userIds`, separated by commas."""
    listed = spec.parameters.get("userIds")
    return UserIds(frozenset(split_list(listed))) if listed else NeverEnabled("no `userIds` are given")


def compile_addresses(spec: StrategySpec, options: StrategyOptions) -> CompiledStrategy:
    """remoteAddress: `IPs`, addresses and networks separated by commas."""
    listed = spec.parameters.get("IPs")
    if not listed:
        return NeverEnabled("no `IPs` are given")
    return Addresses(AddressList(split_list(listed)) if spec.addresses is None else spec.addresses)


def compile_hostname(spec: StrategySpec, options: StrategyOptions) -> CompiledStrategy:
    """applicationHostname: `hostNames`, separated by commas. The proxy's host is known at compile time."""
    listed = spec.parameters.get("hostNames")
    if listed and options.hostname.lower() in split_list(lower(listed)):
        return Everyone()
    return NeverEnabled("this host is not in `hostNames`")


def compile_random(spec: StrategySpec, options: StrategyOptions) -> CompiledStrategy:
    """gradualRolloutRandom: a share of the requests."""
    return share_of_draws(percentage(spec.parameters.get("percentage")))


def compile_rollout_user(spec: StrategySpec, options: StrategyOptions) -> CompiledStrategy:
    """gradualRolloutUserId."""
    return own_field_rollout(spec, options, USER_ID, "userId")


def compile_rollout_session(spec: StrategySpec, options: StrategyOptions) -> CompiledStrategy:
    """gradualRolloutSessionId."""
    return own_field_rollout(spec, options, SESSION_ID, "sessionId")


def own_field_rollout(spec: StrategySpec, options: StrategyOptions, kind: int, field: str) -> CompiledStrategy:
    """Return a rollout on one standard field, with `percentage` and `groupId`."""
    share = percentage(spec.parameters.get("percentage"))
    prefix = Prefix(spec.parameters.get("groupId") or "", STRATEGY_SEED, options.utf8)
    return OwnFieldRollout(kind, field, prefix, share) if share else NeverEnabled("rolled out to 0 %")


def compile_flexible(spec: StrategySpec, options: StrategyOptions) -> CompiledStrategy:
    """flexibleRollout: `rollout` percent of `stickiness` within `groupId` (behaviour: Stickiness)."""
    share = percentage(spec.parameters.get("rollout"))
    stickiness = spec.parameters.get("stickiness") or "default"
    prefix = Prefix(spec.parameters.get("groupId") or "", STRATEGY_SEED, options.utf8)
    if share == 0:
        return NeverEnabled("rolled out to 0 %")
    if stickiness == "random":
        return share_of_draws(share)
    if stickiness == "default":
        return Everyone() if share == 100 else DefaultRollout(USER_ID, "userId", prefix, share)
    return StickyRollout(FIELDS.get(stickiness, PROPERTY), stickiness, prefix, share)


def share_of_draws(share: int) -> CompiledStrategy:
    """Return the rule that admits a share of random draws."""
    if share == 0:
        return NeverEnabled("rolled out to 0 %")
    return Everyone() if share == 100 else RandomShare(share)


STRATEGIES: Final[dict[str, Callable[[StrategySpec, StrategyOptions], CompiledStrategy]]] = {
    "default": compile_default,
    BY_HOST: compile_hostname,
    "gradualRolloutRandom": compile_random,
    "gradualRolloutUserId": compile_rollout_user,
    "gradualRolloutSessionId": compile_rollout_session,
    "userWithId": compile_user_ids,
    "remoteAddress": compile_addresses,
    "flexibleRollout": compile_flexible,
}
"""The built-in strategies, in the order of the proxy's registration."""


def compile_rule(spec: StrategySpec, options: StrategyOptions) -> CompiledStrategy:
    """Return the strategy without its conditions and variants. Custom ones come first; an unknown name never admits."""
    built_in = STRATEGIES.get(spec.name)
    if spec.name in options.custom:
        strategy: CompiledStrategy = Custom(options.custom[spec.name], spec.parameters)
    elif built_in is not None:
        strategy = built_in(spec, options)
    else:
        strategy = NeverEnabled(f"unknown strategy `{spec.name}`")
    strategy.name = spec.name
    return strategy
