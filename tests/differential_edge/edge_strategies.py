"""How Edge reads strategies, each said as a change of what ours evaluates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate

import edge_values
from edge_changes import NEVER, Change
from edge_reading import Case, Json, edge_context

from flagsvc.engine.hashing import STRATEGY_SEED, VARIANT_SEED, Identifier, Prefix

ROLLOUTS = {
    "flexibleRollout": "rollout",
    "gradualRolloutUserId": "percentage",
    "gradualRolloutSessionId": "percentage",
    "gradualRolloutRandom": "percentage",
}
"""Strategy → the parameter with its share."""
STICKY = {"gradualRolloutUserId": "userId", "gradualRolloutSessionId": "sessionId"}
"""Strategy → the field to which it sticks."""


def in_strategies(change: Callable[[Case, Json, Json], Json]) -> Change:
    """Return the change of each strategy. It gets the case, the feature and the strategy."""

    def changed(case: Case) -> Case:
        return case.with_features(
            lambda feature: feature | {"strategies": [change(case, feature, each) for each in feature["strategies"]]}
        )

    return changed


def off_if_strategy(is_unreadable: Callable[[Case, Json], bool]) -> Change:
    """Return the change that turns a feature off if Edge cannot read one of its strategies."""

    def changed(case: Case) -> Case:
        def feature(given: Json) -> Json:
            is_off = any(is_unreadable(case, each) for each in given["strategies"])
            return given | ({"enabled": False, "strategies": []} if is_off else {})

        return case.with_features(feature)

    return changed


def off_if_constraint(is_unreadable: Callable[[Json], bool]) -> Change:
    """Return the change that turns a feature off if Edge cannot read one of its constraints."""
    return off_if_strategy(lambda case, strategy: any(map(is_unreadable, case.constraints_of(strategy))))


def lacks_segment(case: Case, strategy: Json) -> bool:
    """Return whether a strategy names a segment that is missing."""
    return any(each not in case.segments for each in strategy.get("segments") or ())


def parameter(strategy: Json, name: str) -> str | None:
    found: str | None = (strategy.get("parameters") or {}).get(name)
    return found


def with_parameter(strategy: Json, name: str, value: str) -> Json:
    return strategy | {"parameters": {**(strategy.get("parameters") or {}), name: value}}


def off(strategy: Json) -> Json:
    """Return a strategy that admits no user."""
    return strategy | {"constraints": [*(strategy.get("constraints") or ()), NEVER]}


def share_of(strategy: Json) -> int | None:
    """Return the share of a rollout as Edge reads it: digits; None for any other text."""
    text = parameter(strategy, ROLLOUTS.get(strategy["name"], "")) or ""
    return int(text) if text.isascii() and text.isdigit() else None


def is_over_100(case: Case, strategy: Json) -> bool:
    """Return whether the share of a rollout is above 100. A random one may have such a share in Edge."""
    return strategy["name"] != "gradualRolloutRandom" and (share_of(strategy) or 0) > 100


def without_odd_share(case: Case, feature: Json, strategy: Json) -> Json:
    """Return a strategy that is off if its share is not written in digits."""
    return off(strategy) if strategy["name"] in ROLLOUTS and share_of(strategy) is None else strategy


def with_group(case: Case, feature: Json, strategy: Json) -> Json:
    """Return a strategy without a group with that of Edge: the flag's name, or none for the older rollouts, which are off."""
    if parameter(strategy, "groupId") is not None:
        return strategy
    if strategy["name"] in STICKY:
        return off(strategy)
    return with_parameter(strategy, "groupId", feature["name"] if strategy.get("variants") else case.name)


def without_empty_stickiness(case: Case, feature: Json, strategy: Json) -> Json:
    """Return a strategy that is off if it sticks to a field without a name."""
    is_empty = strategy["name"] == "flexibleRollout" and parameter(strategy, "stickiness") == ""
    return off(strategy) if is_empty else strategy


def with_one_stickiness(case: Case, feature: Json, strategy: Json) -> Json:
    """Return a strategy whose variants stick to what the strategy sticks to."""
    return sticky_as_strategy(strategy)


def sticky_as_strategy(strategy: Json) -> Json:
    """Return a strategy whose variants stick to what the strategy sticks to."""
    known = strategy.get("variants")
    sticky = {"stickiness": parameter(strategy, "stickiness") or "default"}
    return strategy | {"variants": [each | sticky for each in known]} if known else strategy


def without_overrides(case: Case, feature: Json, strategy: Json) -> Json:
    """Return a strategy whose variants have no overrides."""
    known = strategy.get("variants")
    return strategy | {"variants": [each | {"overrides": []} for each in known]} if known else strategy


def by_address(case: Case, feature: Json, strategy: Json) -> Json:
    """Return a strategy for addresses as it comes out in Edge."""
    if strategy["name"] != "remoteAddress":
        return strategy
    networks = [each.strip() for each in (parameter(strategy, "IPs") or "").split(",")]
    is_within = edge_values.is_within(case.field("remoteAddress") or "", networks)
    return strategy | {"name": "default"} if is_within else off(strategy)


def by_user(case: Case, feature: Json, strategy: Json) -> Json:
    """Return a strategy for users as it comes out in Edge: each id of the list is trimmed, and an empty one is one."""
    known = parameter(strategy, "userIds")
    if strategy["name"] != "userWithId" or known is None:
        return strategy
    is_listed = case.field("userId") in [each.strip() for each in known.split(",")]
    return strategy | {"name": "default"} if is_listed else off(strategy)


def without_host(case: Case, feature: Json, strategy: Json) -> Json:
    """Return a strategy for hosts as Edge reads it: it knows no host."""
    return off(strategy) if strategy["name"] == "applicationHostname" else strategy


def without_session(case: Case) -> Case:
    """Return the case without a session that the caller did not give."""
    is_given = "sessionId" in edge_context(case.question).standard
    return case if is_given else replace(case, context=case.context.replace(session_id=None))


# ---- an empty text, which has a bucket like any other in Edge


def sticky_to_empty(case: Case) -> Case:
    """Return the case as it comes out if an empty text has a bucket."""
    changed = in_strategies(rolled_out_to_empty)(case)
    return changed.with_features(lambda feature: drawn_for_empty(case, feature, feature["name"]))


def rolled_out_to_empty(case: Case, feature: Json, strategy: Json) -> Json:
    """Return a strategy as it comes out for an empty text, if it sticks to one."""
    group, share = parameter(strategy, "groupId") or "", share_of(strategy)
    found = drawn_for_empty(case, strategy, group)
    sticky = STICKY.get(strategy["name"]) or parameter(strategy, "stickiness") or "default"
    if share is None or strategy["name"] == "gradualRolloutRandom" or not is_empty(case, sticky):
        return found
    return found | {"name": "default"} if bucket_of_empty(group, 100, STRATEGY_SEED) <= share else off(found)


def is_empty(case: Case, stickiness: str) -> bool:
    """Return whether what Edge sticks to is an empty text."""
    if stickiness != "default":
        return case.field(stickiness) == ""
    user = case.field("userId")
    return (case.field("sessionId") if user is None else user) == ""


def bucket_of_empty(group: str, buckets: int, seed: int) -> int:
    """Return the bucket of the empty text, from 1."""
    return int(Prefix(group, seed, True).bucket(Identifier("", True), buckets))


def drawn_for_empty(case: Case, holder: Json, group: str) -> Json:
    """Return a feature or a strategy of whose variants only that of the empty text has a weight, if they stick to one."""
    known = holder.get("variants")
    if not known or not is_empty(case, known[0].get("stickiness") or "default"):
        return holder
    sums = list(accumulate(each["weight"] for each in known))
    target = bucket_of_empty(group, sums[-1], VARIANT_SEED)
    chosen = next(at for at, limit in enumerate(sums) if limit >= target)
    return holder | {"variants": [each | {"weight": int(at == chosen)} for at, each in enumerate(known)]}
