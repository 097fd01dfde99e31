"""More calls of the admin API in an order: archive, dependencies, constraints, environments and the rest (see admin_calls.py)."""

from __future__ import annotations

from typing import Any

from support.admin_calls import Row, calls, each

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
        POST /projects/default/revive <
        POST /projects/default/revive <
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
    *calls("GET ~/c2\nGET ~/c3"),
]  # fmt: skip


def constraint(operator: str, **given: Any) -> dict[str, Any]:
    """Return a constraint on a field that may have any value."""
    return {"contextName": "userId", "operator": operator, **given}


NUMBERS = (
    *("1", " 1 ", "1e3", "0x10", "Infinity", "1e400", "9007199254740993", "9007199254740992", "9007199254740991", ".5", "5."),
    *("+5", "-0", "1_0", "NaN", "1.7976931348623157e308", "00012", "1.50", "1,5", "--5", "1e", "1E5", " ", "\t7\n", "-.5"),
    *("123456789012345678.5", "1e-400", "0.30000000000000004", "0.1234567890123456789", "1e21", "+", "1.0e2", "0e-400"),
)  # fmt: skip
DATES = (
    *("2024-01-01", "2024-01-01T00:00:00", "2024-02-30", "January 1 2024", "5", "1700000000000", "2024", "2024-13-01", "12:00"),
    *("x", "2024-01-01T25:00:00Z", "-5", "1e3", "2024-01-01 10:00", "Jan", "foo 12", "2024/02/03", "1.5", "99999999999999999"),
    *(" 2024-01-01", "2024-01-01T10:00:00.123456789Z", "+10000-01-01T00:00:00Z", "2024-W01", "2024-001", "now", "1 2 3"),
)  # fmt: skip
VERSIONS = (
    "1",
    "1.2.3",
    "v1.2.3",
    "1.2",
    "1.2.3-beta.1",
    "1.2.3+b+c",
    "01.2.3",
    " 1.2.3 ",
    "1.2.3-01",
    "1.2.3-",
    "1.2.3-a..b",
)
PATTERNS = (
    *(
        "a",
        "a(?=b)",
        "[a",
        "*a",
        "\\q",
        "(?P<n>a)",
        "(?<n>a)",
        "(a)\\1",
        "a{1001}",
        "a{1000}",
        "a**",
        "(",
        "(?i)a",
        "\\pN",
    ),
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
        "name": "default", "constraints": [constraint("IN", values=[str(number) for number in range(251)])],
    }),
    *each("POST", "~/c/environments/production/strategies", {"name": "default", "constraints": [constraint("NUM_GT", value="x")]}),
    *each("POST", "~/c/environments/production/strategies", *[{"name": "default"}] * 31),
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
        PUT /environments/sort-order <
        PUT /environments/sort-order <
        PUT /environments/sort-order <
        POST /projects/default/environments <
        POST /projects/default/environments <
        POST /projects/default/environments <
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
        {"environment": "production"}),
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
