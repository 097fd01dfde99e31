"""The documents that benchmarks evaluate: a realistic mix, the same for the same size every time.

Of ten flags three are static; the rest are rollouts, constraints, segments, user lists and variants with payloads.
"""

from __future__ import annotations

import random
from typing import Any

REGIONS = ["eu-west", "eu-north", "us-east", "us-west", "ap-south", "sa-east"]
PLANS = ["free", "team", "business", "enterprise"]


def document(flags: int, seed: int = 7) -> dict[str, Any]:
    """Return a client-features document of so many flags."""
    rng = random.Random(seed)
    segments = [segment(at, rng) for at in range(1, 6)]
    return {"version": 2, "features": [feature(at, rng) for at in range(flags)], "segments": segments}


def changed(flag: dict[str, Any], version: int) -> dict[str, Any]:
    """Return a flag as it is in a version: with another description and, where it has one, another rollout.

    It is never 0: without a single rollout, all callers are of one class, and the next version would find no other to follow.
    """
    strategies = [
        {**each, "parameters": {**each["parameters"], "rollout": str(1 + version % 99)}}
        if "rollout" in each["parameters"]
        else each
        for each in flag["strategies"]
    ]
    return {**flag, "description": f"as of {version}", "strategies": strategies}


def segment(at: int, rng: random.Random) -> dict[str, Any]:
    """Return one segment of two constraints."""
    plans = {"contextName": "plan", "operator": "IN", "values": rng.sample(PLANS, 2)}
    regions = {"contextName": "region", "operator": "STR_STARTS_WITH", "values": [rng.choice(["eu", "us"])]}
    return {"id": at, "name": f"segment-{at}", "constraints": [plans, regions]}


def feature(at: int, rng: random.Random) -> dict[str, Any]:
    """Return one flag; its place decides of which kind it is."""
    name = f"team-{at % 17}.feature-{at:05d}"
    kinds = [static_on, static_off, static_on, rollout, rollout, constrained, segmented, listed, varied, constrained]
    own = kinds[at % 10](name, rng)
    return {
        "name": name,
        "type": "release",
        "project": "default",
        "enabled": True,
        "stale": False,
        "impressionData": at % 5 == 0,
        "strategies": [],
        "variants": [],
        **own,
    }


def static_on(name: str, rng: random.Random) -> dict[str, Any]:
    """Return a flag that is on for everyone."""
    return {"strategies": [{"name": "default", "parameters": {}, "constraints": []}]}


def static_off(name: str, rng: random.Random) -> dict[str, Any]:
    """Off for everyone."""
    return {"enabled": False, "strategies": [{"name": "default", "parameters": {}, "constraints": []}]}


def flexible(name: str, rng: random.Random, **more: Any) -> dict[str, Any]:
    """Return a flexible rollout strategy to some share of the users."""
    parameters = {"groupId": name, "rollout": str(rng.choice([5, 25, 50, 75])), "stickiness": "default"}
    return {"name": "flexibleRollout", "parameters": parameters, "constraints": [], **more}


def rollout(name: str, rng: random.Random) -> dict[str, Any]:
    """Rolled out to a share of the users."""
    return {"strategies": [flexible(name, rng)]}


def constrained(name: str, rng: random.Random) -> dict[str, Any]:
    """Rolled out where constraints hold."""
    choices = [
        {"contextName": "region", "operator": "IN", "values": rng.sample(REGIONS, 3)},
        {"contextName": "plan", "operator": "NOT_IN", "values": rng.sample(PLANS, 1)},
        {"contextName": "appVersion", "operator": "SEMVER_GT", "value": f"{rng.randint(1, 4)}.{rng.randint(0, 9)}.0"},
    ]
    return {"strategies": [flexible(name, rng, constraints=rng.sample(choices, rng.choice([1, 2])))]}


def segmented(name: str, rng: random.Random) -> dict[str, Any]:
    """Rolled out to a segment."""
    return {"strategies": [flexible(name, rng, segments=[rng.randint(1, 5)])]}


def listed(name: str, rng: random.Random) -> dict[str, Any]:
    """Return a flag that is on for a list of users."""
    users = ",".join(str(rng.randint(1, 100000)) for _ in range(40))
    return {"strategies": [{"name": "userWithId", "parameters": {"userIds": users}, "constraints": []}]}


def varied(name: str, rng: random.Random) -> dict[str, Any]:
    """Rolled out with three variants, two of them with payloads."""
    variants = [
        {"name": "control", "weight": 334, "weightType": "variable", "stickiness": "default"},
        {"name": "blue", "weight": 333, "stickiness": "default", "payload": {"type": "string", "value": "#0000ff"}},
        {
            "name": "tuned",
            "weight": 333,
            "stickiness": "default",
            "payload": {"type": "json", "value": '{"limit": 20}'},
        },
    ]
    return {"strategies": [flexible(name, rng)], "variants": variants}


def context(at: int) -> dict[str, str]:
    """Return the query parameters of the at-th user."""
    return {
        "userId": str(at * 7919 % 100000),
        "sessionId": f"{at * 2654435761 % 2**32:08x}",
        "appName": "web-shop",
        "properties[region]": REGIONS[at % 6],
        "properties[plan]": PLANS[at % 4],
        "properties[appVersion]": f"{at % 5}.{at % 10}.1",
    }
