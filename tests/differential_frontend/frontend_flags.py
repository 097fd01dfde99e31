"""Flags and contexts for the comparison of frontend APIs: generated from a seed, in the form of the real server's admin API."""

from __future__ import annotations

import random
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

USERS = [str(number) for number in range(1, 30)]
REGIONS = ["eu", "us", "Ελλάς", "e u", ""]
PLANS = ["free", "pro", "Enterprise"]
VERSIONS = ["1.2.3", "2.0.0-beta.1", "10.0.0", "nothing"]
SIZES = ["0", "-1.5", "7", "1e3", "many"]
FIELDS: dict[str, list[str]] = {
    "userId": USERS,
    "region": REGIONS,
    "plan": PLANS,
    "appName": ["web", "app"],
    "environment": ["default", "development"],
    "sessionId": ["s1", "s2"],
    "remoteAddress": ["10.0.0.1", "10.0.0.2", "192.168.0.1"],
}
LISTS = ("IN", "NOT_IN", "STR_CONTAINS", "STR_STARTS_WITH", "STR_ENDS_WITH")
NUMBERS = ("NUM_EQ", "NUM_GT", "NUM_GTE", "NUM_LT", "NUM_LTE")
SEMVERS = ("SEMVER_EQ", "SEMVER_GT", "SEMVER_LT")
DATES = ("DATE_AFTER", "DATE_BEFORE")
PAYLOADS = [
    {"type": "string", "value": "some text"},
    {"type": "json", "value": '{"colour": "grün"}'},
    {"type": "csv", "value": "a,b"},
    {"type": "number", "value": "42"},
    None,
]


class Maker:
    """Makes flags and contexts, the same ones for each seed."""

    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)

    def chance(self, share: float) -> bool:
        """Return true with this probability."""
        return self.rng.random() < share

    def constraint(self) -> Json:
        """Return a constraint of any operator."""
        pick = self.rng.choice
        found: Json = {"inverted": self.chance(0.2), "caseInsensitive": self.chance(0.2)}
        kind = pick("LLLLNSD")
        if kind == "N":
            return found | {"contextName": "size", "operator": pick(NUMBERS), "value": pick(["0", "7", "100"]), "values": []}
        if kind == "S":
            return found | {"contextName": "version", "operator": pick(SEMVERS), "value": "2.0.0", "values": []}
        if kind == "D":
            moment = pick(["2020-01-01T00:00:00.000Z", "2090-01-01T00:00:00.000Z"])
            return found | {"contextName": "currentTime", "operator": pick(DATES), "value": moment, "values": []}
        name = pick(list(FIELDS))
        values = self.rng.sample(FIELDS[name], self.rng.randint(1, 2))
        return found | {"contextName": name, "operator": pick(LISTS), "values": [value for value in values if value] or ["x"]}

    def variants(self, stickiness: str) -> list[Json]:
        """Return two or three variants."""
        names = ["a", "b", "c"][: self.rng.randint(2, 3)]
        made: list[Json] = []
        for name in names:
            payload = self.rng.choice(PAYLOADS)
            base = {"name": name, "weight": 1, "weightType": "variable", "stickiness": stickiness}
            made.append(base if payload is None else base | {"payload": payload})
        return made

    def strategy(self) -> Json:
        """Return a strategy of any kind."""
        pick = self.rng.choice
        constraints = [self.constraint() for _ in range(self.rng.choice([0, 0, 1, 1, 2]))]
        kind = pick(["flexibleRollout"] * 5 + ["default"])
        made: Json = {"name": kind, "constraints": constraints, "parameters": {}}
        if kind == "flexibleRollout":
            stickiness = pick(["default", "userId", "sessionId", "region"])
            rollout = str(pick([0, 10, 50, 90, 100, 100]))
            made["parameters"] = {"rollout": rollout, "stickiness": stickiness, "groupId": pick(["g", "h"])}
            if self.chance(0.4):
                made["variants"] = self.variants(stickiness)
        return made

    def flag(self, number: int) -> Json:
        """Return a flag: its name, whether it is on and reports impressions, and its strategies."""
        return {
            "name": f"flag-{self.rng.randint(100, 999)}-{number}",
            "enabled": self.chance(0.9),
            "impressionData": self.chance(0.3),
            "strategies": [self.strategy() for _ in range(self.rng.choice([1, 1, 1, 2, 3]))],
        }

    def context(self) -> Json:
        """Return a context with a user, a session and an application.

        Without them an answer is random, or depends on the server's own name.
        """
        pick = self.rng.choice
        made: Json = {"userId": pick(USERS), "sessionId": pick(["s1", "s2", "s3"]), "appName": pick(["web", "app", "other"])}
        for name, values in FIELDS.items():
            if name not in made and self.chance(0.6):
                made[name] = pick(values)
        for name, values in (("size", SIZES), ("version", VERSIONS)):
            if self.chance(0.7):
                made[name] = pick(values)
        if self.chance(0.7):
            made["remoteAddress"] = pick(["10.0.0.1", "10.0.0.2", "192.168.0.1", "::1", "nowhere"])
        return made
