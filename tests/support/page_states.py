"""States of a flag server in which its pages are looked at: empty, one flag, thousands, and hostile words everywhere."""

from __future__ import annotations

from typing import Any

SCRIPT = "<script>document.title='run'</script>\"'><img src=x onerror=\"document.title='run'\">"
RIGHT_TO_LEFT = "مفتاح الميزة ‮abc‬ חדש"
LONG = "word " * 60 + "x" * 200
"""500 characters, 200 of them without a place to break."""
WORDS = f"{SCRIPT} {RIGHT_TO_LEFT}"
CONSTRAINT = {"contextName": "plan", "operator": "IN", "values": [SCRIPT, RIGHT_TO_LEFT, "x" * 100]}


def strategy(feature: str, words: str) -> dict[str, Any]:
    """Return a strategy of a flag in development, with these words wherever words may stand."""
    parameters = {"rollout": "25", "stickiness": "default", "groupId": words}
    constraints = [CONSTRAINT] if words != feature else []
    place = {"feature": feature, "environment": "development", "name": "flexibleRollout"}
    return {**place, "parameters": parameters, "constraints": constraints}


def flags(*names: str, words: str = "") -> dict[str, Any]:
    """Return a seed of these flags, on in development, each with a strategy."""
    features = [{"name": name, "description": words or "A flag.", "enabled": ["development"]} for name in names]
    return {"features": features, "strategies": [strategy(name, words or name) for name in names]}


STATES: dict[str, dict[str, Any]] = {
    "empty": {},
    "one": flags("new"),
    "hostile": {
        **flags("new", "n" * 100, words=f"{WORDS} {LONG}"),
        "segments": [{"name": "beta", "description": LONG, "constraints": [CONSTRAINT]}],
        "contextFields": [{"name": "plan", "description": LONG, "legalValues": [{"value": "x" * 100}]}],
        "tagTypes": [{"name": "team", "description": LONG, "icon": WORDS, "color": "#1d4ed8"}],
        "strategyTypes": [{"name": "hours", "parameters": [{"name": "x" * 90, "type": "number", "description": LONG}]}],
    },
    "5,000 flags": flags("new", *(f"flag-{number:04}" for number in range(4999))),
}
"""State → the seed that comes on top of the users and tokens of all tests."""

PATHS = (
    "/flags",
    "/flags?q=new",
    "/flags?q=nosuch",
    "/flags/new",
    "/flags/new/production/switch",
    "/flags/new/production/strategies/new",
    "/new-flag",
    "/import",
    "/compare",
    "/compare?from=production&to=production",
    "/flags/new/copy",
    "/export",
    "/flags/new/edit",
    "/flags/new/development/variants",
    "/flags/new/parent",
    f"/flags/new/parent?parent={'n' * 100}",
    "/try",
    "/segments",
    "/segments/new",
    "/segments/1",
    "/projects",
    "/new-project",
    "/projects/default",
    "/tokens",
    "/tokens/new",
    "/tokens/2",
    "/my-tokens",
    "/sessions",
    "/people",
    "/people/new",
    "/people/1",
    "/settings",
    "/environments",
    "/new-environment",
    "/environments/development",
    "/context-fields",
    "/new-context-field",
    "/context-fields/plan",
    "/tag-types",
    "/new-tag-type",
    "/tag-types/team",
    "/strategy-types",
    "/new-strategy-type",
    "/strategy-types/hours",
    "/webhooks",
    "/new-webhook",
    "/webhooks/1",
    "/proxies",
    "/history",
    "/history?feature=new",
    "/export",
    "/nowhere",
)
