"""Where ours answers something else than Edge on purpose: a row for each difference, with its reason and with how Edge reads it.

A difference is explained if ours gives Edge's answer as soon as it reads the document and the request as Edge does. So everything
else that Edge answered must be ours, also about flags with a difference. A row that explains nothing must go. The order counts:
what turns a flag off stands before what settles a constraint.
"""

from __future__ import annotations

from typing import NamedTuple

import edge_changes as changes
import edge_strategies as strategies

from flagsvc.engine.operators import OPERATORS


class Exclusion(NamedTuple):
    """A difference that is meant: what ours does, why, where that is written, and the change of a case to what Edge does."""

    name: str
    reason: str
    source: str
    change: changes.Change


SERVER = "as at `/proxy` and at the real server"
OTHERS_COUNT = f"{SERVER}: the other strategies still count; Edge turns the flag off"

EXCLUSIONS: tuple[Exclusion, ...] = (
    Exclusion(
        "a caller without a session gets one for each list",
        f"{SERVER}; Edge makes up none",
        "behaviour: Sessions",
        strategies.without_session,
    ),
    Exclusion(
        "a missing application is the proxy's own",
        "as at `/proxy`, and the real server has a default, too; Edge has none",
        "behaviour: Default context; decision 0011",
        changes.missing("appName"),
    ),
    Exclusion(
        "a missing environment is `default`",
        "as at `/proxy`, and the real server has a default, too; Edge has none",
        "behaviour: Default context; decision 0011",
        changes.missing("environment"),
    ),
    Exclusion(
        "an empty standard field is absent",
        "as at `/proxy`; Edge takes the empty text for an id",
        "behaviour: Context by GET",
        changes.fields(changes.is_empty_field),
    ),
    Exclusion(
        "properties win over plain fields",
        "the reading of the real server; in Edge plain fields win",
        "decision 0011",
        changes.fields(changes.is_in_two_places),
    ),
    Exclusion(
        "a repeated property is joined with a comma",
        "as at `/proxy`; Edge ignores it",
        "behaviour: Context by GET",
        changes.fields(changes.is_repeated),
    ),
    Exclusion(
        "numbers become their JavaScript text",
        f"{SERVER}: 7.0 is 7, in Edge it is 7.0",
        "behaviour: Context by POST",
        changes.fields(changes.is_number),
    ),
    Exclusion(
        "a property may be a number wherever it stands",
        "as at `/proxy`; Edge reads numbers inside `properties` alone",
        "dialects: Contexts of the frontend API",
        changes.fields(changes.is_plain_number),
    ),
    Exclusion(
        "an unknown operator turns off its strategy",
        OTHERS_COUNT,
        "behaviour: Strategies",
        strategies.off_if_constraint(lambda each: each["operator"] not in OPERATORS),
    ),
    Exclusion(
        "a missing segment turns off its strategy",
        OTHERS_COUNT,
        "behaviour: Strategies",
        strategies.off_if_strategy(strategies.lacks_segment),
    ),
    Exclusion(
        "a value that is none makes its constraint false",
        OTHERS_COUNT,
        "behaviour: Numbers; Versions; Dates",
        strategies.off_if_constraint(changes.is_unreadable),
    ),
    Exclusion(
        "an empty list matches nothing",
        OTHERS_COUNT,
        "behaviour: List constraints",
        strategies.off_if_constraint(
            lambda each: changes.has_list(each) and each["operator"] not in ("IN", "NOT_IN") and not each.get("values")
        ),
    ),
    Exclusion(
        "a share above 100 is everybody",
        f"{SERVER}; Edge turns the flag off",
        "behaviour: Numbers",
        strategies.off_if_strategy(strategies.is_over_100),
    ),
    Exclusion(
        "a share is a number as JavaScript reads it",
        f"{SERVER}; for Edge a share that is not written in digits is none",
        "behaviour: Numbers",
        strategies.in_strategies(strategies.without_odd_share),
    ),
    Exclusion(
        "a strategy knows the host",
        f"{SERVER}; in Edge applicationHostname is off",
        "behaviour: Strategies",
        strategies.in_strategies(strategies.without_host),
    ),
    Exclusion(
        "a strategy without a group has that of the reference",
        "users stay in their buckets; Edge takes the name of the flag",
        "decision 0004",
        strategies.in_strategies(strategies.with_group),
    ),
    Exclusion(
        "an empty stickiness is the default one",
        f"{SERVER}; Edge takes it for the name of a field",
        "behaviour: Stickiness",
        strategies.in_strategies(strategies.without_empty_stickiness),
    ),
    Exclusion(
        "variants of a strategy have a stickiness of their own",
        f"{SERVER}; in Edge they stick to what their strategy sticks to",
        "behaviour: Stickiness",
        strategies.in_strategies(strategies.with_one_stickiness),
    ),
    Exclusion(
        "variants of a strategy have overrides",
        f"{SERVER}; Edge does not read them",
        "specification: Variant",
        strategies.in_strategies(strategies.without_overrides),
    ),
    Exclusion("an empty text is no stickiness", f"{SERVER}; Edge hashes it", "behaviour: Stickiness", strategies.sticky_to_empty),
    Exclusion(
        "users are listed as the reference splits them",
        "as at `/proxy`: blanks around commas alone are dropped, and so are empty ids; Edge trims each id, and an empty one is one",
        "behaviour: Strategies",
        strategies.in_strategies(strategies.by_user),
    ),
    Exclusion(
        "a strategy knows addresses, and networks of IPv4",
        f"{SERVER}; Edge also knows networks of IPv6, and wants addresses",
        "behaviour: Addresses",
        strategies.in_strategies(strategies.by_address),
    ),
    Exclusion(
        "values of a list are trimmed, and empty ones dropped",
        f"{SERVER}; Edge takes them as they are",
        "behaviour: List constraints",
        changes.decided("", changes.listed),
    ),
    Exclusion(
        "a number is what JavaScript reads",
        f"{SERVER}; Edge's numbers are those of Rust",
        "behaviour: Numbers",
        changes.decided("NUM_", changes.compared),
    ),
    Exclusion(
        "versions compare without build metadata",
        f"{SERVER}; in Edge it counts",
        "behaviour: Versions",
        changes.decided("SEMVER_", changes.compared),
    ),
    Exclusion(
        "a date constraint compares the current time",
        f"{SERVER}; Edge compares the field of the constraint, and reads only RFC 3339",
        "behaviour: Dates",
        changes.decided("DATE_", changes.compared),
    ),
    Exclusion(
        "patterns are those of RE2",
        f"{SERVER}; Edge's are those of Rust, and a missing one matches everything",
        "behaviour: Patterns",
        changes.in_constraints(changes.as_rust_pattern),
    ),
    Exclusion(
        "an address may have a prefix or a zone",
        f"{SERVER}; Edge wants a bare address, and takes a mask behind a network",
        "behaviour: Addresses",
        changes.decided("IN_CIDR", changes.in_networks),
    ),
    Exclusion(
        "a dependency on variants wants one of them",
        f"{SERVER}; Edge is content with a parent that has none, and also asks a parent that must be off",
        "behaviour: Dependencies",
        changes.by_parents,
    ),
)
