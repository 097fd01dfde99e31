"""A document and questions for rows that generated ones seldom need."""

from __future__ import annotations

import json

from diff_requests import Question
from edge_documents import Json


def limited(name: str, field: str, operator: str, *values: str, value: str | None = None) -> Json:
    constraint: Json = {"contextName": field, "operator": operator, "values": list(values)}
    return flag(name, {"name": "default", "constraints": [constraint | ({} if value is None else {"value": value})]})


def flag(name: str, strategy: Json) -> Json:
    return {"name": name, "enabled": True, "impressionData": False, "strategies": [strategy]}


def variants(stickiness: str, override: Json) -> list[Json]:
    """Return two variants, the second one for the value of an override."""
    first = {"name": "a", "weight": 500, "stickiness": stickiness}
    return [first, first | {"name": "b", "overrides": [override]}]


ALL = {"rollout": "100", "stickiness": "userId", "groupId": "g"}
BY_USER = {"contextName": "userId", "values": ["4", "5", "6", "7", "9"]}
DOCUMENT: Json = {
    "version": 2,
    "features": [
        limited("region", "region", "IN", "eu"),
        limited("joined", "region", "IN", "eu,us"),
        limited("application", "appName", "STR_ENDS_WITH", "-proxy"),
        limited("environment", "environment", "IN", "default"),
        limited("whole", "size", "IN", "7"),
        limited("trimmed", "region", "IN", " eu "),
        limited("hexadecimal", "size", "NUM_EQ", value="16"),
        limited("version", "version", "SEMVER_EQ", value="1.2.3"),
        limited("date", "region", "DATE_AFTER", value="2020-01-01T00:00:00Z"),
        limited("pattern", "region", "REGEX"),
        limited("network", "remoteAddress", "IN_CIDR", "10.0.0.0/8"),
        limited("networks of IPv6", "remoteAddress", "IN_CIDR", "2001:db8::/32"),
        flag("addresses", {"name": "remoteAddress", "parameters": {"IPs": "2001:db8::/32,nowhere"}}),
        flag("users", {"name": "userWithId", "parameters": {"userIds": "\u00a07, 8"}}),
        flag("stickiness", {"name": "flexibleRollout", "parameters": ALL | {"rollout": "50", "stickiness": ""}}),
        flag("overrides", {"name": "flexibleRollout", "parameters": ALL, "variants": variants("userId", BY_USER)}),
        flag("sticky", {"name": "flexibleRollout", "parameters": ALL, "variants": variants("region", {**BY_USER, "values": []})}),
        flag("parent", {"name": "default"}),
        flag("child", {"name": "default"}) | {"dependencies": [{"feature": "parent", "variants": ["a"]}]},
    ],
}
CONTEXTS = (
    "userId=7&sessionId=s&region=us&properties[region]=eu",
    "userId=7&sessionId=s&region=eu&region=us",
    "userId=9&sessionId=s&region=eu&size=0x10&appName=x&environment=y",
    "userId=8&sessionId=s&size=+16&version=1.2.3%2Bbuild&region=us&appName=x&environment=y",
    "userId=&sessionId=s&remoteAddress=10.1.2.3/32&region=eu",
    "userId=5&sessionId=s&remoteAddress=2001:db8::1%25zone&version=1.2.3",
    "userId=6&sessionId=s&remoteAddress=2001:db8::1&region=a",
    "userId=4&sessionId=s&remoteAddress=nowhere&region=b",
)
BODIES: tuple[Json, ...] = (
    {"userId": "7", "sessionId": "s", "properties": {"size": 7.0}},
    {"userId": "7", "sessionId": "s", "size": 7},
)
QUESTIONS = [
    *(Question("GET", f"/all?{query}") for query in CONTEXTS),
    *(Question("POST", "/all", json.dumps({"context": body}).encode()) for body in BODIES),
]
