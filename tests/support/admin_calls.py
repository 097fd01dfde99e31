"""Calls of the admin API in an order: what the real server and ours are compared on (tests/integration/test_server_admin.py).

A row is a method, a path below `/api/admin` and a body. `keep` names the `id` of the answer, which later rows mention as `{name}`.
`why` says what differs on purpose: then bodies are not compared, and `ours` is the status of our server where that differs, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FEATURES = "/projects/default/features"


@dataclass(frozen=True)
class Row:
    """One call."""

    method: str
    path: str
    body: Any = None
    keep: str = ""
    ours: int | None = None
    why: str = ""


def calls(text: str, *bodies: Any) -> list[Row]:
    """Return rows of lines `METHOD path [keep=name]`; a line that ends in `<` takes the next body."""
    left = list(bodies)
    rows: list[Row] = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        words = line.removesuffix("<").split()
        keep = next((word[5:] for word in words if word.startswith("keep=")), "")
        body = left.pop(0) if line.endswith("<") else None
        rows.append(Row(words[0], words[1].replace("~", FEATURES), body, keep))
    assert not left
    return rows


def each(method: str, path: str, *bodies: Any) -> list[Row]:
    """Return one call with each of some bodies."""
    return [Row(method, path.replace("~", FEATURES), body) for body in bodies]


def replaced(*operations: tuple[str, Any]) -> list[dict[str, Any]]:
    """Return a JSON Patch that replaces values."""
    return [{"op": "replace", "path": path, "value": value} for path, value in operations]


LONG = "x" * 101
CREATING = [
    *each("POST", "~", {"name": "a", "description": "some words"}, {"name": "a"}, {}, {"name": None}, {"name": ""}),
    *each("POST", "~", {"name": "has space"}, {"name": LONG}, {"name": "."}, {"name": ".."}, {"name": "a", "x": 1}),
    *each("POST", "~", {"name": "x", "type": "nosuch"}, {"name": "x", "tags": [{"type": "simple", "value": "v"}]}),
    *each("POST", "~", {"name": "b", "type": "experiment", "impressionData": "true", "description": ""}),
    *each("POST", "~", {"name": "c", "description": 5}, {"name": "x", "description": []}, {"name": "C", "extra": 1}),
    *each("POST", "/projects/nosuch/features", {"name": "x"}),
    *each("POST", "/projects/gone/features", {"name": "x"}),
    *each("POST", "/projects/named/features", {"name": "zz"}, {"name": "abc"}),
    *each("POST", "/projects/small/features", {"name": "small-1"}, {"name": "small-2"}),
    *each("POST", "/features/validate", {"name": "a"}, {"name": "new"}, {"name": "a b"}, {}, {"name": ""}),
    *each("POST", "/features/validate", {"name": "zz", "projectId": "named"}, {"name": "zz", "projectId": "nosuch"}),
    *calls("""
        GET ~
        GET ~?namePrefix=A
        GET ~?namePrefix=%20
        GET ~?tag=bad
        GET ~?tag=simple:nosuch
        GET ~/a
        GET ~/a?variantEnvironments=true
        GET ~/nosuch
        GET /projects/nosuch/features
        GET /projects/nosuch/features/a
        GET /projects/named/features
    """),
]
CHANGING = [
    *each("PUT", "~/a", {"description": "x", "type": "kill-switch", "stale": True}, {}, {"name": "b"}, {"name": "a"}),
    *each("PUT", "~/a", {"description": None}, {"type": "nosuch"}, {"stale": "x"}, {"archived": True}, {"archived": 0}),
    *each("PUT", "~/nosuch", {}),
    *each("PATCH", "~/a", replaced(("/description", "patched")), replaced(("/stale", True)), {}, [{"op": "bad"}], []),
    *each("PATCH", "~/a", replaced(("/name", "zz")), replaced(("/nosuch", 1)), replaced(("/type", 5), ("/stale", 1))),
    *each("PATCH", "~/a", replaced(("/variants", [])), replaced(("/type", "")), replaced(("/description", [])), [{}]),
    *each("PATCH", "~/a", [{"op": "remove", "path": "/nosuch"}], [{"op": "move", "path": "/description", "from": "/type"}]),
    *each("PATCH", "~/nosuch", []),
    *each("PATCH", "/projects/named/features/a", []),
    *calls("""
        GET ~/a
        POST /projects/default/stale <
        POST /projects/default/stale <
        POST /projects/named/stale <
        GET ~/b
    """, {"features": ["a", "b", "nosuch"], "stale": True}, {"features": []}, {"features": ["a"], "stale": False}),
]  # fmt: skip
HERE = "~/b/environments/development"
ROLLOUT = {"name": "flexibleRollout"}
CONSTRAINT = {"contextName": "userId", "operator": "IN", "values": ["1"]}
VARIANT = {"weight": 5, "weightType": "variable", "stickiness": "default"}
STRATEGIES = [
    *calls(f"""
        POST /segments <
        POST /segments <
        GET {HERE}
        GET ~/b/environments/nosuch
        GET ~/nosuch/environments/development
        GET {HERE}/strategies
        GET ~/b/environments/nosuch/strategies
        GET ~/nosuch/environments/development/strategies
        POST {HERE}/strategies keep=one <
        POST {HERE}/strategies keep=two <
        POST {HERE}/strategies keep=three <
    """, {"name": "everywhere", "constraints": []}, {"name": "elsewhere", "constraints": [], "project": "named"}, ROLLOUT,
        {"name": "default", "title": "t", "disabled": True, "sortOrder": 7, "parameters": {"a": 5, "b": None}},
        {**ROLLOUT, "parameters": {"rollout": "", "stickiness": "", "groupId": ""}, "extra": 1}),
    *each("POST", f"{HERE}/strategies", {}, {"name": "nosuch"}, {"name": ""}, {"name": "default", "segments": [99]}),
    *each("POST", f"{HERE}/strategies", {"name": "default", "segments": [2]}, {"name": "default", "segments": [1] * 6}),
    *each("POST", "~/nosuch/environments/development/strategies", ROLLOUT),
    *each("POST", "~/b/environments/nosuch/strategies", ROLLOUT),
    *each("POST", "/projects/named/features/b/environments/development/strategies", ROLLOUT),
    *calls(f"""
        GET {HERE}/strategies
        GET {HERE}/strategies/{{one}}
        GET {HERE}/strategies/nosuch
        GET {HERE}
        GET ~/b
        PUT {HERE}/strategies/{{one}} <
        PUT {HERE}/strategies/{{one}} <
        PUT {HERE}/strategies/{{one}} <
        PUT {HERE}/strategies/{{one}} <
        PUT {HERE}/strategies/{{one}} <
        PUT {HERE}/strategies/{{one}} <
        PUT {HERE}/strategies/{{one}} <
        PUT {HERE}/strategies/nosuch <
        PUT ~/a/environments/development/strategies/{{one}} <
        PUT /projects/named/features/b/environments/development/strategies/{{one}} <
        PATCH {HERE}/strategies/{{one}} <
        PATCH {HERE}/strategies/{{one}} <
        PATCH {HERE}/strategies/{{one}} <
        PATCH {HERE}/strategies/{{one}} <
        PATCH {HERE}/strategies/nosuch <
        POST {HERE}/strategies/set-sort-order <
        POST {HERE}/strategies/set-sort-order <
        POST {HERE}/strategies/set-sort-order <
        POST {HERE}/strategies/set-sort-order <
        POST ~/b/environments/nosuch/strategies/set-sort-order <
        GET {HERE}/strategies
    """, {"parameters": {"rollout": "50"}}, {**ROLLOUT, "parameters": {"rollout": "50"}, "segments": [1]},
        {**ROLLOUT, "title": "x", "constraints": [CONSTRAINT], "variants": [{**VARIANT, "name": "v"}]},
        {"title": None, "disabled": None, "sortOrder": 3}, {"name": "nosuch"}, {"segments": [7]}, {"disabled": "x"},
        {}, {}, {}, replaced(("/parameters/rollout", "25")), replaced(("/zz", 1)), replaced(("/name", "nosuch")),
        [{"op": "remove", "path": "/name"}], [], [{"id": "{one}", "sortOrder": 9}, {"id": "{two}", "sortOrder": 3}],
        [{"id": "nosuch", "sortOrder": 1}], {}, [{"id": "x"}], []),
    *calls(f"""
        DELETE ~/a/environments/development/strategies/{{three}}
        DELETE {HERE}/strategies/{{three}}
        DELETE {HERE}/strategies/{{three}}
        GET {HERE}/strategies
    """),
]  # fmt: skip
SWITCH = "~/c/environments/development"
SWITCHING = [
    *calls(
        f"""
        POST {SWITCH}/on
        POST {SWITCH}/on
        GET {SWITCH}/strategies keep=first
        POST {SWITCH}/off
        GET {SWITCH}
        POST ~/nosuch/environments/development/on
        POST ~/c/environments/nosuch/on
        POST /projects/named/features/c/environments/development/on
        POST {SWITCH}/on
        PUT {SWITCH}/strategies/{{first}} <
        GET {SWITCH}
        POST {SWITCH}/on?shouldActivateDisabledStrategies=true
        GET {SWITCH}
        PUT {SWITCH}/strategies/{{first}} <
        POST {SWITCH}/on
        GET {SWITCH}
        DELETE {SWITCH}/strategies/{{first}}
        GET {SWITCH}
    """,
        {**ROLLOUT, "disabled": True},
        {**ROLLOUT, "disabled": True},
    ),
    *each("POST", "/projects/default/bulk_features/environments/development/on", {"features": ["a", "c"]}, {}),
    *each("POST", "/projects/default/bulk_features/environments/development/on", {"features": ["a", "nosuch"]}),
    *each("POST", "/projects/default/bulk_features/environments/nosuch/on", {"features": ["a"]}, {"features": []}),
    *each("POST", "/projects/default/bulk_features/environments/development/off", {"features": ["a"]}),
    *calls("GET ~/a\nGET ~"),
]
PLACE = "~/b/environments/production/variants"
BARE = {"name": "v", "weight": 1}
VARIANTS = [
    *calls(f"""
        GET {PLACE}
        GET ~/b/environments/nosuch/variants
        GET ~/nosuch/environments/development/variants
        PUT {PLACE} <
        PATCH {PLACE} <
        PUT ~/b/variants-batch <
        PUT ~/b/variants-batch <
        PUT ~/b/variants-batch <
        GET {PLACE}
    """, [BARE], [], {"variants": [BARE], "environments": []}, {"variants": [BARE], "environments": ["nosuch"]},
        {"variants": [{"name": "z", "weight": 1}, {**BARE, "name": "A"}, BARE], "environments": ["production"]}),
    *each("PUT", PLACE, [BARE]),
    *each("PUT", PLACE, [BARE, {**BARE, "name": "u", "weightType": "variable", "stickiness": "userId"}]),
    *each("PUT", PLACE, [BARE, BARE], [{**BARE, "weight": 1.5}], {}, [{**BARE, "weight": 1001}], [{"weight": 1}]),
    *each("PATCH", PLACE, replaced(("/0/name", "has s")), replaced(("/0/weight", "5.5")), replaced(("/0/weight", -1))),
    *each("PATCH", PLACE, [{"op": "add", "path": "/0/zz", "value": -1}], replaced(("", {})), [{"op": "remove", "path": "/0/name"}]),
    *each("PATCH", PLACE, replaced(("/0/weightType", "q")), replaced(("/0/weight", None)), [{"op": "remove", "path": "/0"}]),
    *calls(f"GET {PLACE}\nGET ~/b?variantEnvironments=true\nGET ~/b/parent-variants\nPUT ~/b/environments/nosuch/variants <", []),
    *each("POST", "~/a/environments/production/strategies", *(
        {"name": "default", "variants": variants} for variants in (
            [{**VARIANT, "name": "has space"}], [{**VARIANT, "name": ""}], [{**VARIANT, "name": LONG}], [BARE],
            [{**VARIANT, "name": "v"}] * 2, [{**VARIANT, "name": "v", "weight": 1.5}], [{**VARIANT, "name": "v", "stickiness": ""}],
            [{**VARIANT, "name": "v", "payload": {"type": "json", "value": "{"}}], [{**VARIANT, "name": "v", "zz": 1}],
            [{**VARIANT, "name": "v", "payload": {"type": "json", "value": "5"}}],
            [{**VARIANT, "name": "v", "payload": {"type": "string", "value": ""}}],
            [{**VARIANT, "name": "v", "payload": {"type": "string", "value": "x", "zz": 1}}],
            [{**VARIANT, "name": "v", "weightType": "fix"}], [{**VARIANT, "name": name} for name in "zbCaB-_"],
            [{**VARIANT, "name": "v", "weightType": "fix", "weight": 1000}, {**VARIANT, "name": "u"}],
            [{**VARIANT, "name": name, "weightType": "fix", "weight": 600} for name in "uv"] + [{**VARIANT, "name": "w"}],
        )
    )),
]  # fmt: skip
