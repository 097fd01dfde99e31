"""Request bodies for batch operations: a body with every property, and random mutations of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, TypeAlias

Json: TypeAlias = Any

MOMENT = "2024-01-28T15:21:39.975Z"
CONSTRAINT = {
    "contextName": "appName",
    "operator": "IN",
    "caseInsensitive": True,
    "inverted": False,
    "values": ["a", "b"],
    "value": "1",
}
PAYLOAD = {"type": "json", "value": "{}"}
VARIANT = {
    "name": "v",
    "weight": 1000,
    "weightType": "variable",
    "stickiness": "default",
    "payload": PAYLOAD,
    "overrides": [{"contextName": "userId", "values": ["1"]}],
}
STRATEGY_VARIANT = {"name": "v", "weight": 1000, "weightType": "fix", "stickiness": "default", "payload": PAYLOAD}
STRATEGY = {
    "id": "1",
    "name": "flexibleRollout",
    "title": "t",
    "disabled": False,
    "featureName": "a",
    "sortOrder": 1,
    "segments": [1, 2],
    "constraints": [CONSTRAINT],
    "variants": [STRATEGY_VARIANT],
    "parameters": {"rollout": "50", "7": "x", "groupId": "a"},
}
PLAN_STRATEGY = {
    "id": "1",
    "milestoneId": "1",
    "sortOrder": 1,
    "title": None,
    "name": "n",
    "strategyName": "default",
    "parameters": {"a": "b"},
    "constraints": [CONSTRAINT],
    "variants": [{**STRATEGY_VARIANT, "more": 1}],
    "segments": [1],
    "disabled": None,
}
MILESTONE = {
    "id": "1",
    "name": "m",
    "sortOrder": 1,
    "releasePlanDefinitionId": "1",
    "startedAt": None,
    "transitionCondition": {"intervalMinutes": 1},
    "progressionExecutedAt": MOMENT,
    "pausedAt": None,
    "strategies": [PLAN_STRATEGY],
}
SAFEGUARD = {
    "id": "1",
    "action": {"type": "t", "id": "1"},
    "triggerCondition": {"operator": ">", "threshold": 1.5},
    "impactMetric": {
        "id": "1",
        "metricName": "m",
        "timeRange": "day",
        "aggregationMode": "p95",
        "labelSelectors": {"a": ["b"], "c/d": ["e"]},
    },
}
PLAN = {
    "id": "1",
    "discriminator": "plan",
    "name": "p",
    "description": None,
    "featureName": "a",
    "environment": "e",
    "createdByUserId": 1,
    "createdAt": MOMENT,
    "activeMilestoneId": None,
    "milestones": [MILESTONE],
    "releasePlanTemplateId": "1",
    "safeguards": [SAFEGUARD],
}
ENVIRONMENT = {
    "name": "a",
    "featureName": "a",
    "environment": "development",
    "type": "production",
    "enabled": True,
    "sortOrder": 1,
    "variantCount": 1,
    "strategies": [STRATEGY],
    "variants": [VARIANT],
    "changeRequestIds": [1],
    "milestoneName": "m",
    "milestoneOrder": 1,
    "totalMilestones": 1,
    "lastSeenAt": MOMENT,
    "hasStrategies": True,
    "hasEnabledStrategies": True,
    "releasePlans": [PLAN],
    "yes": 1,
    "no": 0,
}
PERSON = {"id": 1, "name": "n", "imageUrl": "u"}
DEPENDENCY = {"feature": "p", "enabled": True, "variants": ["v"]}
FEATURE = {
    "name": "a",
    "type": "release",
    "description": "d",
    "archived": False,
    "project": "default",
    "enabled": True,
    "stale": False,
    "favorite": False,
    "impressionData": False,
    "createdAt": MOMENT,
    "createdBy": PERSON,
    "archivedAt": None,
    "environments": [ENVIRONMENT],
    "children": ["c"],
    "dependencies": [DEPENDENCY],
    "tags": [{"value": "team", "type": "simple", "color": "#ffFF00"}],
    "lifecycle": {"stage": "live", "status": None, "enteredStageAt": MOMENT},
    "collaborators": {"users": [{**PERSON, "more": 1}], "more": 1},
    "links": [{"id": "1", "url": "u", "title": None, "feature": "a"}],
}
FIELD = {
    "name": "f",
    "description": "d",
    "stickiness": True,
    "sortOrder": 1,
    "createdAt": MOMENT,
    "usedInFeatures": 1,
    "usedInProjects": None,
    "legalValues": [{"value": "v", "description": "d"}],
    "project": "default",
}
DATA = {
    "features": [FEATURE, {"name": "b"}],
    "featureStrategies": [STRATEGY],
    "featureEnvironments": [ENVIRONMENT],
    "contextFields": [FIELD],
    "featureTags": [{"featureName": "a", "tagType": "simple", "tagValue": "team", "createdByUserId": 1}],
    "segments": [{"id": 1, "name": "s"}],
    "tagTypes": [{"name": "simple", "description": "d", "icon": "#", "color": None}],
    "dependencies": [{"feature": "a", "dependencies": [DEPENDENCY]}],
    "links": [{"feature": "a", "links": [{"url": "u", "title": "t", "more": 1}]}],
}
IMPORT_BODY = {"project": "default", "environment": "development", "data": DATA}
EXPORT_BODIES = (
    {"environment": "development", "features": ["a", "b"], "downloadFile": False},
    {"environment": "development", "tag": "team", "downloadFile": True},
    {"environment": "", "project": "default"},
    {"environment": "development", "features": [], "tag": "t", "project": "p"},
)

TEXTS = (
    *("", " ", "a", "5", " 7 ", "1e2", "0x10", "1.5", "-1", "true", "false", "null", "NaN", "Infinity", "#12345g", "\n"),
    *(*("live", "IN", "REGEX", "SEMVER_EQ", "csv", "fix", "plan", "x" * 51, "\u00e4" * 50, "\U0001f600" * 2), 'q"\\/\u2028'),
    *("#ABCDEF", "#ABCDEF\n", "\x7f\x01", "\u0661"),
    *("2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "2024-01-28 15:21:39", "2024-01-28t23:59:60z", "2024-01-28"),
    *("2024-01-28T24:00:00Z", "2024-01-28T15:21Z", "2024-01-28T15:21:39+0100", "2024-01-28T15:21:39.1+01:00"),
    *("0000-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-01-28\u00a015:21:39", "2024-01-28T15:21:39\n"),
)
NUMBERS = (
    *(0, 1, -1, 5, 7, 1000, 1001, 2**31, 2**53 + 1, 12345678901234567890, 10**21, 10**400, 0.5, 1.0, 1.5, -0.0, 1e-7),
    *(1e21, 123456.789, -2.5e-10, 5e-324, 1.7976931348623157e308),
)
KEYS = (
    *("more", "a/b", "", "7", "12", "0", "~", "name", "constructor", "a b", "\u00e4", "__proto__", "toString"),
    *("01", "safeguards", "lastSeenAt", "variants", "strategies", "type", "value"),
)

Mutation: TypeAlias = Callable[[random.Random, Json], None]


def scalar(draw: random.Random) -> Json:
    return draw.choice((draw.choice(TEXTS), draw.choice(NUMBERS), draw.choice((None, True, False))))


def anything(draw: random.Random, depth: int = 2) -> Json:
    """Return a random JSON value, mostly a scalar."""
    kind = draw.randrange(8) if depth else 0
    if kind == 1:
        return [anything(draw, depth - 1) for _ in range(draw.randrange(3))]
    if kind == 2:
        return {draw.choice(KEYS): anything(draw, depth - 1) for _ in range(draw.randrange(4))}
    return scalar(draw)


def spots(value: Json) -> list[tuple[Json, Json]]:
    """Return each place in a value as its holder and key."""
    found: list[tuple[Json, Json]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys]
    return found


def replace(draw: random.Random, body: Json) -> None:
    """Put another value in a random place."""
    holder, key = draw.choice(spots(body))
    holder[key] = anything(draw)


def replace_scalar(draw: random.Random, body: Json) -> None:
    """Put another scalar in the place of a random one."""
    scalars = [(holder, key) for holder, key in spots(body) if not isinstance(holder[key], dict | list)]
    holder, key = draw.choice(scalars or spots(body))
    holder[key] = scalar(draw)


def remove(draw: random.Random, body: Json) -> None:
    """Take a random member away."""
    holder, key = draw.choice(spots(body))
    del holder[key]


def add(draw: random.Random, body: Json) -> None:
    """Add a member to a random object, at its end or its beginning."""
    holders = [body, *(holder[key] for holder, key in spots(body) if isinstance(holder[key], dict))]
    holder = draw.choice(holders)
    before = dict(holder) if draw.random() < 0.5 else {}
    added = {draw.choice(KEYS): anything(draw)}
    holder.update(added) if not before else (holder.clear(), holder.update(added | before))


def shuffle(draw: random.Random, body: Json) -> None:
    """Put the members of a random object in another order."""
    holder = draw.choice([body, *(holder[key] for holder, key in spots(body) if isinstance(holder[key], dict))])
    members = list(holder.items())
    draw.shuffle(members)
    holder.clear()
    holder.update(members)


MUTATIONS: tuple[Mutation, ...] = (replace, replace_scalar, replace_scalar, replace_scalar, remove, add, shuffle)


def mutated(draw: random.Random, body: Json) -> Json:
    """Return a copy of a body with up to six mutations; now and then another value altogether."""
    if draw.random() < 0.01:
        return anything(draw)
    copied = json.loads(json.dumps(body))  # no part is shared
    for _ in range(draw.randrange(1, 7)):
        if spots(copied):
            draw.choice(MUTATIONS)(draw, copied)
    return copied


def import_body(draw: random.Random) -> Json:
    data = {name: value if draw.random() < 0.5 else [] for name, value in DATA.items()}
    return mutated(draw, {**IMPORT_BODY, "data": data})


def export_body(draw: random.Random) -> Json:
    return mutated(draw, draw.choice(EXPORT_BODIES))
