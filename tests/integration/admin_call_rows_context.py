"""Calls about context fields and strategy types."""

from __future__ import annotations

from typing import Any

from admin_call_rows_segments import no_project

from support.server_pair import ADMIN, OWNER, READER, WRITER, IntendedDifference, delete, get, post, put

PATH = "/api/admin/context"
TYPES = "/api/admin/strategies"
TOO_LONG = "d" * 251
A_AND_A = [{"value": "a"}, {"value": "a"}]
BUILT_IN = IntendedDifference(403, "Cannot edit strategy default", 500, "that a built-in one stays is no failure of the server")


def field(name: str, **given: Any) -> dict[str, Any]:
    return {"name": name, **given}


def parameter(name: str = "p", kind: str = "string", **given: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **given}


FIELDS = [
    get(PATH),
    get(f"{PATH}/userId"),
    get(f"{PATH}/USERID"),
    get(f"{PATH}/nosuch"),
    post(PATH, field("tier")),
    get(f"{PATH}/tier"),
    post(PATH, field("tier")),
    post(PATH, field("tier", description=TOO_LONG)),
    post(
        PATH,
        field(
            "full", description="d", stickiness=True, sortOrder=7, legalValues=[{"value": "a", "description": "x"}, {"value": "b"}]
        ),
    ),
    get(f"{PATH}/full"),
    *[post(PATH, field(name)) for name in ("has space", "", "x" * 101, ".", "..", "ümlaut", " " * 101, "a'b(c)*!~")],
    post(PATH, {}),
    post(PATH, field("bad name", description=TOO_LONG)),
    post(PATH, field("long", description=TOO_LONG)),
    post(PATH, field("empty", description="")),
    post(PATH, field("nul", description=None)),
    post(PATH, field("dup", legalValues=A_AND_A)),
    post(PATH, field("dup", legalValues=[{"value": ""}, *A_AND_A])),
    post(PATH, field("lv", legalValues=[{"value": "x" * 101}])),
    post(PATH, field("lv", legalValues=[{"x": 1}])),
    post(PATH, field("lv", legalValues=[{"value": "a", "x": 1}])),
    post(PATH, field("lv", legalValues=None)),
    post(PATH, field("lv", legalValues=[{"value": 5, "description": None}])),
    post(PATH, field("extra", what=1, sortOrder=-3)),
    post(PATH, field("so", sortOrder=1.5)),
    post(
        PATH,
        field("so", sortOrder=3_000_000_000),
        ours=IntendedDifference(400, "The `/body/sortOrder` property must be <= 2147483647", 500, "beyond what is stored"),
    ),
    post(PATH, field("owned", project="default")),
    post(PATH, field("owned 2", project="default")),
    post(PATH, field("lost", project="nosuch"), ADMIN, ours=no_project("nosuch")),
    post(PATH, field("lost", project="")),
    get(PATH),
    get(f"{PATH}?include=project"),
]

CHANGES = [
    post(PATH, field("tier")),
    post(PATH, field("full", description="d", stickiness=True, sortOrder=7, legalValues=[{"value": "a"}])),
    post(PATH, field("owned", project="default")),
    put(f"{PATH}/tier", {"description": "changed", "stickiness": "true"}),
    get(f"{PATH}/tier"),
    put(f"{PATH}/full", {}),
    get(f"{PATH}/full"),
    put(f"{PATH}/full", {"name": "other", "legalValues": [{"value": "z"}], "sortOrder": 4}),
    get(f"{PATH}/full"),
    put(f"{PATH}/full", {"description": TOO_LONG}),
    put(f"{PATH}/full", {"legalValues": A_AND_A}),
    put(f"{PATH}/full", {"description": None}),
    get(f"{PATH}/full"),
    put(f"{PATH}/nosuch", {}),
    put(f"{PATH}/nosuch", {"description": TOO_LONG}),
    put(f"{PATH}/owned", {"description": "x"}),
    get(f"{PATH}/owned"),
    put(f"{PATH}/tier", {"project": "default"}),
    get(f"{PATH}/tier"),
    put(f"{PATH}/tier", {"project": ""}),
    put(f"{PATH}/tier", {"project": None}),
    put(f"{PATH}/tier", {"project": "nosuch"}, ADMIN, ours=no_project("nosuch")),
    post(f"{PATH}/full/legal-values", {"value": "new", "description": "n"}),
    post(f"{PATH}/full/legal-values", {"value": "last"}),
    post(f"{PATH}/full/legal-values", {"value": "new"}),
    get(f"{PATH}/full"),
    *[
        post(f"{PATH}/full/legal-values", body)
        for body in ({"value": ""}, {}, {"value": "x" * 101}, {"value": "v", "x": 1}, {"value": 5, "description": None})
    ],
    post(f"{PATH}/nosuch/legal-values", {"value": "new"}),
    post(f"{PATH}/nosuch/legal-values", {"value": ""}),
    delete(f"{PATH}/full/legal-values/new"),
    delete(f"{PATH}/full/legal-values/nosuch"),
    delete(f"{PATH}/nosuch/legal-values/new"),
    get(f"{PATH}/full"),
    *[
        post(f"{PATH}/validate", body)
        for body in ({"name": "free"}, {"name": "tier"}, {"name": "has space"}, {}, {"name": ""}, {"name": "x", "y": 1})
    ],
    *[get(f"{PATH}/{name}/strategies") for name in ("plan", "oldfield", "nosuch")],
    *[delete(f"{PATH}/{name}") for name in ("plan", "oldfield", "full", "full", "sessionId")],
    get(PATH),
]

WHO_MAY = [
    post(PATH, field("tier")),
    post(PATH, field("r"), READER),
    put(f"{PATH}/tier", {}, READER),
    delete(f"{PATH}/tier", READER),
    post(f"{PATH}/validate", {"name": "r"}, READER),
    post(f"{PATH}/tier/legal-values", {"value": "v"}, READER),
    delete(f"{PATH}/tier/legal-values/v", READER),
    get(PATH, READER),
    post(PATH, field("o", project="default"), OWNER),
    post(PATH, field("r"), OWNER),
    put(f"{PATH}/o", {}, OWNER),
    put(f"{PATH}/o", {"project": "default"}, OWNER),
    put(
        f"{PATH}/tier",
        {"project": "default"},
        OWNER,
        ours=IntendedDifference(403, "you need one of", 200, "an owner of one project does not take a field from the others"),
    ),
    delete(f"{PATH}/o", OWNER),
    post(PATH, field("w"), WRITER),
    put(f"{PATH}/w", {}, WRITER),
    delete(f"{PATH}/w", WRITER),
]

STRATEGY_TYPES = [
    get(TYPES),
    get(f"{TYPES}/default"),
    get(f"{TYPES}/nosuch"),
    post(TYPES, {"name": "mine", "parameters": []}),
    post(TYPES, {"name": "mine", "parameters": []}),
    post(
        TYPES,
        {
            "name": "more",
            "title": "t",
            "description": "d",
            "editable": False,
            "deprecated": True,
            "parameters": [parameter("p", "percentage", description="x", required="true", extra=1), parameter("q")],
        },
    ),
    get(f"{TYPES}/more"),
    post(TYPES, {"name": "has space", "parameters": []}),
    post(TYPES, {"name": "has space", "parameters": [parameter(""), parameter("")]}),
    post(TYPES, {"name": "x"}),
    post(TYPES, {"parameters": []}),
    post(TYPES, {"name": "", "parameters": []}),
    post(TYPES, {"name": "y", "parameters": [parameter(kind="nope")]}),
    post(TYPES, {"name": "y", "parameters": [parameter("")]}),
    post(TYPES, {"name": "y", "parameters": [{"type": "string"}]}),
    post(TYPES, {"name": "nul", "title": None, "description": None, "parameters": [parameter(description=None, required=None)]}),
    post(TYPES, {"name": "twice", "parameters": [parameter(), parameter()]}),
    post(TYPES, {"name": "...", "parameters": [], "zzz": 1}),
    get(TYPES),
    put(f"{TYPES}/mine", {"description": "new", "parameters": [parameter("z", "number", required=False)]}),
    get(f"{TYPES}/mine"),
    put(f"{TYPES}/more", {"parameters": []}),
    get(f"{TYPES}/more"),
    put(f"{TYPES}/more", {"title": "T2", "description": None, "parameters": []}),
    get(f"{TYPES}/more"),
    put(f"{TYPES}/more", {"title": None, "parameters": [], "editable": False, "deprecated": True, "name": "other"}),
    get(f"{TYPES}/more"),
    put(f"{TYPES}/mine", {}),
    put(f"{TYPES}/mine", {"parameters": [parameter("")]}),
    put(f"{TYPES}/nosuch", {"parameters": []}),
    put(f"{TYPES}/has space", {"parameters": []}),
    put(f"{TYPES}/default", {"parameters": []}, ours=BUILT_IN),
    *[
        step
        for name in ("mine", "flexibleRollout", "nosuch")
        for verb in ("deprecate", "reactivate")
        for step in (post(f"{TYPES}/{name}/{verb}"), get(f"{TYPES}/{name}"))
    ],
    post(f"{TYPES}/mine/deprecate", {}),
    delete(f"{TYPES}/default", ours=BUILT_IN),
    *[delete(f"{TYPES}/{name}") for name in ("nosuch", "custom", "mine", "mine")],
    get(TYPES),
    post(TYPES, {"name": "r", "parameters": []}, READER),
    put(f"{TYPES}/more", {"parameters": []}, READER),
    delete(f"{TYPES}/more", READER),
    post(f"{TYPES}/more/deprecate", who=READER),
    post(f"{TYPES}/more/reactivate", who=READER),
    get(TYPES, READER),
    post(TYPES, {"name": "w", "parameters": []}, WRITER),
    put(f"{TYPES}/w", {"parameters": []}, WRITER),
    post(f"{TYPES}/w/deprecate", who=WRITER),
    delete(f"{TYPES}/w", WRITER),
]

TABLES = {
    "context fields": FIELDS,
    "context fields: changing": CHANGES,
    "context fields: who may": WHO_MAY,
    "strategy types": STRATEGY_TYPES,
}
