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
    """Return rows of lines `METHOD path [keep=name]`. A line that ends in `<` takes the next body; in `<3`, the next three."""
    left = list(bodies)
    rows: list[Row] = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        words, taking, number = line.partition("<")
        method, path, *keep = words.split()
        for _ in range(int(number or 1)):
            body = left.pop(0) if taking else None
            rows.append(Row(method, path.replace("~", FEATURES), body, "".join(keep).removeprefix("keep=")))
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
        POST /projects/default/stale <2
        POST /projects/named/stale <
        GET ~/b
    """, {"features": ["a", "b", "nosuch"], "stale": True}, {"features": []}, {"features": ["a"], "stale": False})
]  # fmt: skip
HERE = "~/b/environments/development"
ROLLOUT = {"name": "flexibleRollout"}
CONSTRAINT = {"contextName": "userId", "operator": "IN", "values": ["1"]}
VARIANT = {"weight": 5, "weightType": "variable", "stickiness": "default"}
STRATEGIES = [
    *calls(f"""
        POST /segments <2
        GET {HERE}
        GET ~/b/environments/nosuch
        GET ~/nosuch/environments/development
        GET {HERE}/strategies
        GET ~/b/environments/nosuch/strategies
        GET /projects/named/features/b/environments/development/strategies
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
        PUT {HERE}/strategies/{{one}} <7
        PUT {HERE}/strategies/nosuch <
        PUT ~/a/environments/development/strategies/{{one}} <
        PUT /projects/named/features/b/environments/development/strategies/{{one}} <
        PATCH {HERE}/strategies/{{one}} <4
        PATCH {HERE}/strategies/nosuch <
        POST {HERE}/strategies/set-sort-order <4
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
    """)
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
        PUT ~/b/variants-batch <3
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
            [{**VARIANT, "name": name, "weightType": "fix", "weight": 600} for name in "uv"] + [{**VARIANT, "name": "w"}]
        )
    ))
]  # fmt: skip


NAMES = ("p", "k", "k2", "x1", "x2", "x3")
BATCH = "/projects/default"
DEPENDING = [
    *each("POST", "~", *({"name": name} for name in NAMES)),
    *each("POST", "~/k/dependencies", {"feature": "p"}, {"feature": "k"}, {"feature": "nosuch"}, {}, {"feature": "c"}),
    *calls("DELETE ~/k/dependencies/c"),
    *each("POST", "~/p/dependencies", {"feature": "x1"}),
    *each("POST", "~/x1/dependencies", {"feature": "k"}, {"feature": "abc"}),
    *each("POST", "~/k2/dependencies", {"feature": "p", "enabled": False, "variants": ["v"]}),
    *each("POST", "~/k2/dependencies", {"feature": "p", "enabled": True, "variants": ["v"]}),
    Row("POST", "/projects/default/features/nosuch/dependencies", {"feature": "p"}, ours=404, why="no 500"),
    Row("POST", "/projects/named/features/x1/dependencies", {"feature": "p"}, ours=404, why="its project is another"),
    *calls("""
        DELETE ~/x1/dependencies
        GET ~/k
        GET ~/p
        GET ~/k/parents
        GET ~/p/parents
        GET ~/nosuch/parents
        GET ~/nosuch/parent-variants
        GET /projects/default/dependencies
        DELETE ~/p
    """),
    *each("POST", f"{BATCH}/archive/validate", *({"features": names} for names in (["p"], ["k"], ["p", "k", "k2"], ["z"], []))),
    *each("POST", f"{BATCH}/archive", {"features": ["p"]}, {"features": ["p", "k"]}, {"features": ["nosuch"]}, {}),
    *each("POST", "/projects/named/archive", {"features": ["x1"]}),
    *calls("""
        DELETE ~/k/dependencies/p
        DELETE ~/k/dependencies/p
        DELETE ~/k2/dependencies
        DELETE ~/nosuch/dependencies
        GET ~/k
    """),
]  # fmt: skip
ARCHIVING = [
    *calls("""
        DELETE ~/x1
        DELETE ~/x1
        DELETE ~/nosuch
        DELETE /projects/named/features/x2
        GET ~/x1
        GET ~/x1/environments/development
        POST ~/x1/environments/development/on
        POST ~/x1/environments/development/off
        POST ~ <
        POST /features/validate <
        GET ~/p/parents
        POST ~/p/dependencies <
        POST /projects/default/archive <
        POST /projects/default/revive <2
        POST /projects/nosuch/revive <
        POST /projects/gone/revive <
        POST /projects/named/revive <
        POST /archive/revive/x3
        POST /archive/revive/x3
        POST /archive/revive/nosuch
        GET ~/x3
        POST /projects/default/delete <
        GET ~/x1
        GET ~/x2
        POST /projects/named/delete <
        DELETE /archive/x3
        GET ~/x3
        DELETE /archive/nosuch
        POST ~/k/dependencies <
        DELETE /archive/p
        POST /projects/default/delete <
        DELETE ~/k
        DELETE ~/p
        DELETE /archive/p
        GET ~
    """, {"name": "x1"}, {"name": "x1"}, {"feature": "x1"}, {"features": ["x2", "x3"]}, {"features": ["x2"]}, {"features": []},
        {"features": ["x3"]}, {"features": []}, {"features": ["x3"]}, {"features": ["x1", "x2", "nosuch"]},
        {"features": ["x3"]}, {"feature": "p"}, {"features": ["p", "x2"]}),
    *each("POST", "~/c/clone", {"name": "c2"}, {"name": "c"}, {"name": "a b"}, {}, {"name": "c3", "replaceGroupId": False}),
    *each("POST", "~/nosuch/clone", {"name": "c4"}),
    *calls("GET ~/c2\nGET ~/c3")
]  # fmt: skip


def constraint(operator: str, **given: Any) -> dict[str, Any]:
    """Return a constraint on a field that may have any value."""
    return {"contextName": "userId", "operator": operator, **given}


NUMBERS = (
    *("1", " 1 ", "1e3", "0x10", "Infinity", "1e400", "9007199254740993", "9007199254740992", "9007199254740991", ".5", "5."),
    *("+5", "-0", "1_0", "NaN", "1.7976931348623157e308", "00012", "1.50", "1,5", "--5", "1e", "1E5", " ", "\t7\n", "-.5"),
    *("123456789012345678.5", "1e-400", "0.30000000000000004", "0.1234567890123456789", "1e21", "+", "1.0e2", "0e-400"),
    *("-1.5", "1E-5", "-Infinity", "1 2", "१", "1.7976931348623157e309")
)  # fmt: skip
DATES = (
    *("2024-01-01", "2024-01-01T00:00:00", "2024-02-30", "January 1 2024", "5", "1700000000000", "2024", "2024-13-01", "12:00"),
    *("x", "2024-01-01T25:00:00Z", "-5", "1e3", "2024-01-01 10:00", "Jan", "foo 12", "2024/02/03", "1.5", "99999999999999999"),
    *(" 2024-01-01", "2024-01-01T10:00:00.123456789Z", "+10000-01-01T00:00:00Z", "2024-W01", "2024-001", "now", "1 2 3"),
    *("12345", "Tue, 3 Mar 2020", "0", "99999999999999999999")
)  # fmt: skip
VERSIONS = (
    *("1", "1.2.3", "v1.2.3", "1.2", "1.2.3-beta.1", "1.2.3+b+c", "01.2.3", " 1.2.3 ", "1.2.3-01", "1.2.3-"),
    "1.2.3-a..b",
    *("1.2.3-a-b.0", "1.2.3+", "9007199254740992.0.0", "1.2.3-" + "a" * 300),
)
PATTERNS = (
    *(*("a", "a(?=b)", "[a", "*a", "\\q", "(?P<n>a)", "(?<n>a)", "(a)\\1", "a{1001}", "a{1000}", "a**", "("), *("(?i)a", "\\pN")),
    *("[b-a]", "(?z)", "x{2,1}", "a)", "a++", "\\8", "(?", "\\"),
)
OPERATORS = ("IN", "NOT_IN", "STR_CONTAINS", "NUM_EQ", "DATE_AFTER", "SEMVER_EQ", "REGEX")
LEGAL = ("1", "x", "1.0.0", "5")
CHECKING = [
    *each("POST", "/context", {"name": "legal", "legalValues": [{"value": "x"}, {"value": "1"}, {"value": "1.0.0"}]}),
    *each("POST", "/constraints/validate", {}, constraint("IN", extra=1), constraint("IN", values=5)),
    *each("POST", "/constraints/validate", *(constraint(operator) for operator in OPERATORS)),
    *each("POST", "/constraints/validate", *(constraint(operator, values=["", "x"]) for operator in OPERATORS)),
    *each("POST", "/constraints/validate", constraint("IN", values=["x" * 101]), constraint("IN", contextName="", values=["a"])),
    *each("POST", "/constraints/validate", constraint("REGEX", value="a", inverted=True), constraint("IN", values=["a"])),
    *each("POST", "/constraints/validate", *(constraint("NUM_GT", value=text) for text in NUMBERS)),
    *each("POST", "/constraints/validate", *(constraint("DATE_BEFORE", value=text) for text in DATES)),
    *each("POST", "/constraints/validate", *(constraint("SEMVER_LT", value=text) for text in VERSIONS)),
    *each("POST", "/constraints/validate", *(constraint("REGEX", value=text) for text in PATTERNS)),
    *each("POST", "/constraints/validate", *(
        constraint(operator, contextName="legal", value=text, values=["x"]) for operator in OPERATORS for text in LEGAL
    )),
    *each("POST", "/constraints/validate", constraint("IN", contextName="legal", values=["x", "q"])),
    *each("POST", "~/c/environments/production/strategies", {"name": "default", "constraints": [constraint("IN")] * 31}),
    *each("POST", "~/c/environments/production/strategies", {
        "name": "default", "constraints": [constraint("IN", values=[str(number) for number in range(251)])]
    }),
    *each("POST", "~/c/environments/production/strategies", {"name": "default", "constraints": [constraint("NUM_GT", value="x")]}),
    *each("POST", "~/c/environments/production/strategies", *[{"name": "default"}] * 31)
]  # fmt: skip
PLACES = [
    *calls("""
        GET /environments
        GET /environments/development
        GET /environments/nosuch
        POST /environments/production/off
        GET /environments/production
        POST /environments/production/on
        POST /environments/nosuch/off
        GET /environments/project/default
        GET /environments/project/nosuch
        PUT /environments/sort-order <
        GET /environments
        PUT /environments/sort-order <3
        POST /projects/default/environments <3
        POST /projects/nosuch/environments <
        GET ~/c
        DELETE /projects/default/environments/production
        DELETE /projects/default/environments/production
        DELETE /projects/default/environments/nosuch
        GET ~/c
        GET ~/c/environments/production/strategies
        POST /projects/default/environments <
        GET ~/b
        DELETE /projects/nosuch/environments/production
    """, {"development": 3, "production": 2}, {"development": "x"}, {"nosuch": 1}, {"development": 2, "production": 3},
        {"environment": "development"}, {"environment": "nosuch"}, {}, {"environment": "development"},
        {"environment": "production"})
]  # fmt: skip
LISTS = [
    Row("GET", "/projects", why="the real server shows the default project only"),
    Row("GET", "/feature-types", why="other descriptions"),
    *calls("""
    GET /projects/default/health-report
    GET /projects/nosuch/health-report
    GET /projects/default/overview
    GET /projects/named/overview
    GET /projects/gone/overview
    GET /projects/nosuch/overview
    GET /search/features
    GET /search/features?query=k,c&sortBy=name&sortOrder=desc&limit=2
    GET /search/features?query=some%20words
    GET /search/features?project=IS:default&sortBy=name&offset=1&limit=1
    GET /search/features?project=IS_NOT:default
    GET /search/features?type=IS_ANY_OF:experiment,%20kill-switch
    GET /search/features?archived=IS:true
    GET /search/features?state=IS:stale
    GET /search/features?tag=INCLUDE:simple:nosuch
    GET /search/features?tag=DO_NOT_INCLUDE:simple:nosuch&sortBy=name
    GET /search/features?segment=INCLUDE:everywhere
    GET /search/features?limit=x&offset=-1&sortBy=name
    GET /search/features?project=nosuch
    GET /search/features?sortOrder=up
    """),
]  # fmt: skip
