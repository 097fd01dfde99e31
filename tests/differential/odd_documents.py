"""Documents with one odd value each: every kind of part that real documents have, of which one value is another or missing."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import diff_documents

Json = dict[str, Any]

HOST = "odd-host"


def flag(name: str, *strategies: Json, **more: Any) -> Json:
    """Return a feature as a server writes it."""
    common = {"name": name, "type": "release", "enabled": True, "stale": False, "impressionData": False, "project": "default"}
    return common | {"description": None, "strategies": list(strategies), "variants": [], "dependencies": []} | more


def strategy(name: str, *constraints: Json, segments: list[Any] | None = None, **parameters: Any) -> Json:
    """Return a strategy as a server writes it."""
    return {"name": name, "parameters": parameters, "constraints": list(constraints), "segments": segments or [], "variants": []}


def rollout(share: str, sticky: str = "userId", *constraints: Json, **more: Any) -> Json:
    """Return a rollout."""
    return strategy("flexibleRollout", *constraints, rollout=share, stickiness=sticky, groupId="group") | more


def variant(name: str, weight: Any, sticky: str = "userId", **more: Any) -> Json:
    """Return a variant as a server writes it."""
    return {"name": name, "weight": weight, "weightType": "variable", "stickiness": sticky} | more


def limit(operator: str, field: str, *values: str, **more: Any) -> Json:
    """Return a constraint with a list of values."""
    common = {"contextName": field, "operator": operator, "values": list(values)}
    return common | {"inverted": False, "caseInsensitive": False} | more


def compared(operator: str, field: str, value: str, **more: Any) -> Json:
    """Return a constraint with a single value."""
    return limit(operator, field, value=value, **more)


THREE = [
    variant("blue", 500, payload={"type": "string", "value": "b"}),
    variant("green", 300, overrides=[{"contextName": "userId", "values": ["2", "77"]}]),
    variant("red", 200, payload={"type": "json", "value": '{"a":1}'}),
]
TWO = [variant("left", 600, "region"), variant("right", 400, "region", payload={"type": "number", "value": "5"})]
FIXED = [variant("one", 0), variant("two", 1000), variant("three", 0)]
EVERYONE = strategy("default")

BASE: Json = {
    "version": 2,
    "features": [
        flag("plain", EVERYONE),
        flag("nothing"),
        flag("off", EVERYONE, enabled=False, variants=THREE),
        flag("rolled-out", rollout("50"), variants=THREE, impressionData=True),
        flag("weighted", EVERYONE, variants=THREE),
        flag("thirds", rollout("100"), variants=[variant(name, 333) for name in "abc"]),
        flag("fixed", EVERYONE, variants=FIXED),
        flag("own-variants", rollout("60", "default", variants=TWO), EVERYONE, variants=THREE),
        flag("two", rollout("30", "region", limit("IN", "region", "eu", "us"), variants=TWO), rollout("40", "sessionId")),
        flag("users", strategy("userWithId", userIds="1,2,77")),
        flag("addresses", strategy("remoteAddress", IPs="10.0.0.0/8,192.168.1.1")),
        flag("hosts", strategy("applicationHostname", hostNames=f"other,{HOST}")),
        flag("older-users", strategy("gradualRolloutUserId", percentage="50", groupId="older")),
        flag("older-sessions", strategy("gradualRolloutSessionId", percentage="50", groupId="older")),
        flag("older-share", strategy("gradualRolloutRandom", percentage="100")),
        flag("texts", strategy("default", limit("STR_CONTAINS", "region", "E", caseInsensitive=True))),
        flag("not-in", strategy("default", limit("NOT_IN", "region", "us"), limit("STR_ENDS_WITH", "region", "a", inverted=True))),
        flag("starts", strategy("default", limit("STR_STARTS_WITH", "region", "a", "e"))),
        flag("numbers", strategy("default", compared("NUM_GTE", "count", "5"), compared("NUM_LT", "count", "500"))),
        flag("equal", strategy("default", compared("NUM_EQ", "count", "7", inverted=True))),
        flag("dates", strategy("default", compared("DATE_AFTER", "currentTime", "2024-01-01T00:00:00.000Z"))),
        flag("dates-before", strategy("default", compared("DATE_BEFORE", "currentTime", "2030-01-01T00:00:00.000Z"))),
        flag("versions", strategy("default", compared("SEMVER_GT", "version", "1.2.0"))),
        flag("any-pattern", strategy("default", compared("REGEX", "region", ""))),
        flag("patterns", strategy("default", compared("REGEX", "region", "^[ea]"))),
        flag("networks", strategy("default", limit("IN_CIDR", "remoteAddress", "10.0.0.0/8"))),
        flag("in-segment", strategy("default", segments=[1]), variants=THREE),
        flag("in-segments", rollout("80", segments=[1, 2])),
        flag("child", EVERYONE, dependencies=[{"feature": "rolled-out", "enabled": True, "variants": ["blue", "red"]}]),
        flag("child-off", EVERYONE, dependencies=[{"feature": "rolled-out", "enabled": False}]),
        flag("child-two", rollout("70"), dependencies=[{"feature": "plain"}, {"feature": "users", "enabled": True}]),
        flag("unknown", strategy("of-the-future", anything="x"), strategy("userWithId", userIds="1"))
    ],
    "segments": [
        {"id": 1, "name": "europe", "constraints": [limit("IN", "region", "eu", "de")]},
        {"id": 2, "name": "many", "constraints": [compared("NUM_GT", "count", "1"), limit("NOT_IN", "userId", "9")]}
    ],
}  # fmt: skip

ODD_FIELDS = {"7": "seven", "500": "five hundred", "true": "yes", "null": "eu", "undefined": "eu", "odd": "o", "": "blank"}
"""Properties with the names that an odd name of a field becomes."""


def context(number: int) -> Json:
    """Return one of the contexts. Each field has a value, so that nothing is drawn at random."""
    region = ("eu", "us", "asia", "de")[number % 4]
    properties = ODD_FIELDS | {"region": region, "count": str((7, 3, 700)[number % 3]), "version": ("1.2.3", "1.1.0")[number % 2]}
    return {
        "userId": ("1", "2", "9", "77")[number] if number < 4 else f"user-{number * 7919}",
        "sessionId": f"session-{number * 31}",
        "remoteAddress": ("10.1.2.3", "192.168.1.1", "172.16.0.1")[number % 3],
        "appName": "web",
        "environment": "default",
        "currentTime": "2025-06-01T12:00:00.000Z",
        "properties": properties,
    }


CONTEXTS = [context(number) for number in range(12)]


Path = tuple[str | int, ...]

MISSING = object()
VALUES: dict[str, Any] = {
    "missing": MISSING,
    "null": None,
    "zero": 0,
    "a number": 7,
    "a number with a fraction": 333.3,
    "a small fraction": 0.5,
    "a negative number": -5,
    "a huge number": 1e300,
    "a whole number beyond 2^53": 10**20,
    "a number in quotes": "500",
    "a fraction in quotes": "333.3",
    "zero in quotes": "0",
    "a text": "odd",
    "a text with commas": "blue,green",
    "an empty text": "",
    "true in quotes": "true",
    "false in quotes": "false",
    "true": True,
    "false": False,
    "an empty list": [],
    "a list of a text": ["userId"],
    "a list of a number": [50],
    "a list of null": [None],
    "an empty object": {},
    "an object": {"odd": 1},
}
"""Name of an odd value → the value. `missing`: the key or the item is not there."""


class Odd(NamedTuple):
    """A document, the place of its odd value, and the name of the value."""

    document: Json
    path: Path
    value: str

    def place(self) -> str:
        """Return the kind of the place: its keys, without the numbers in lists."""
        return ".".join("[]" if isinstance(each, int) else each for each in self.path).replace(".[]", "[]")


def document(seed: str, number: int) -> Odd:
    """Return a document with an odd value, the same one for the same seed and number. Every second one is random."""
    rng = random.Random(f"odd {seed} {number}")
    plain = copy.deepcopy(BASE) if number % 2 == 0 else diff_documents.document(f"odd {seed}", number)
    places = list(paths(plain))
    # few of the places are in features and variants themselves, so each kind of place is equally likely
    kinds: dict[str, list[Path]] = {}
    for path in places:
        kinds.setdefault(Odd(plain, path, "").place(), []).append(path)
    return with_value(plain, rng.choice(kinds[rng.choice(sorted(kinds))]), rng.choice(list(VALUES)))


def with_value(document: Json, path: Path, value: str) -> Odd:
    """Return a document with the named odd value at a path. The document is changed."""
    holder: Any = document
    for each in path[:-1]:
        holder = holder[each]
    if VALUES[value] is MISSING:
        del holder[path[-1]]
    else:
        holder[path[-1]] = copy.deepcopy(VALUES[value])
    return Odd(document, path, value)


def paths(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value inside features and segments, outer ones first."""
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, item in items:
        if path or key in ("features", "segments"):
            if path:
                yield (*path, key)
            yield from paths(item, (*path, key))
