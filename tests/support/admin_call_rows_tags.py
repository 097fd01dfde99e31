"""Calls about tag types, tags and the tags of features."""

from __future__ import annotations

from typing import Any

from support.admin_call_rows import ADMIN, MEMBER, READER, WRITER, IntendedDifference, delete, get, post, put

TYPES = "/api/admin/tag-types"
PATH = "/api/admin/tags"
WEB = "/api/admin/features/web/tags"
OLD = "/api/admin/features/old/tags"
NOSUCH = "/api/admin/features/nosuch/tags"
BULK = "/api/admin/projects/default/tags"


def tag(value: Any, kind: str = "simple", **given: Any) -> dict[str, Any]:
    """Return a tag."""
    return {"type": kind, "value": value, **given}


def changes(added: tuple[Any, ...] = (), removed: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return the body that puts tags on and takes tags off."""
    return {"addedTags": list(added), "removedTags": list(removed)}


def bulk(*features: str, added: tuple[Any, ...] = (), removed: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return the body that changes the tags of several features."""
    return {"features": list(features), "tags": changes(added, removed)}


def no_feature(real: int) -> IntendedDifference:
    """Return how our server refuses a feature that is not in the project."""
    return IntendedDifference(
        404, "No feature flag found", real, "only features of the project that the path names are changed"
    )


TAG_TYPES = [
    get(TYPES),
    get(f"{TYPES}/simple"),
    get(f"{TYPES}/nosuch"),
    post(TYPES, {"name": "squad"}),
    post(TYPES, {"name": "squad"}),
    post(TYPES, {"name": "full", "description": "d", "icon": "i", "color": "#abcdef"}),
    get(f"{TYPES}/full"),
    get(f"{TYPES}/squad"),
    *[post(TYPES, {"name": name}) for name in ("t", "x" * 51, "x" * 50, "has space", "", " " * 60, "..", "ab")],
    post(TYPES, {}),
    post(TYPES, {"name": "c1", "color": "red"}),
    post(TYPES, {"name": "c2", "color": None}),
    post(TYPES, {"name": "c3", "color": ""}),
    post(TYPES, {"name": "i1", "icon": None, "description": None}),
    post(TYPES, {"name": "i2", "icon": "", "description": ""}),
    post(TYPES, {"name": "i3", "icon": 5, "description": 5}),
    post(TYPES, {"name": "zz", "extra": 1}),
    get(TYPES),
    put(f"{TYPES}/squad", {"description": "new", "icon": "x", "color": "#000000"}),
    get(f"{TYPES}/squad"),
    put(f"{TYPES}/squad", {"description": "only", "extra": 1}),
    get(f"{TYPES}/squad"),
    put(f"{TYPES}/squad", {"icon": None}),
    get(f"{TYPES}/squad"),
    put(f"{TYPES}/squad", {}, ours=IntendedDifference(200, "", 500, "to change nothing is no failure")),
    put(f"{TYPES}/squad", {"color": "red"}),
    put(f"{TYPES}/squad", {"color": None}),
    put(f"{TYPES}/nosuch", {"description": "x"}),
    put(f"{TYPES}/t", {"description": "x"}),
    put(f"{TYPES}/has space", {"description": "x"}),
    *[post(f"{TYPES}/validate", {"name": name}) for name in ("free", "squad", "has space", "f", "")],
    post(f"{TYPES}/validate", {}),
    post(f"{TYPES}/validate", {"name": "free", "description": "d", "icon": None, "color": "#123456"}),
    post(f"{TYPES}/validate", {"name": "free", "extra": 1}),
    delete(f"{TYPES}/nosuch"),
    delete(f"{TYPES}/full"),
    delete(f"{TYPES}/full"),
    post(TYPES, {"name": "rr"}, READER),
    put(f"{TYPES}/squad", {}, READER),
    delete(f"{TYPES}/squad", READER),
    post(f"{TYPES}/validate", {"name": "rr"}, READER),
    get(TYPES, READER),
    post(TYPES, {"name": "ww"}, WRITER),
    put(f"{TYPES}/ww", {"description": "w"}, WRITER),
    delete(f"{TYPES}/ww", WRITER),
]

TAGS = [
    get(PATH),
    post(PATH, tag("one")),
    post(
        PATH,
        tag("one"),
        ours=IntendedDifference(409, "A tag of simple:one already exists", 409, "theirs shows no value"),
    ),
    post(
        PATH,
        tag("one", "nosuch"),
        ours=IntendedDifference(400, "Tag type 'nosuch' does not exist", 500, "a reference to nothing"),
    ),
    post(PATH, tag("😀😀"), ours=IntendedDifference(201, "", 500, "theirs puts it into a header as it is")),
    *[
        post(PATH, tag(value))
        for value in (
            *("  trimmed  ", "o", "x" * 51, "x" * 50, "a\nb", "   ", " x ", "with space", 7, 71, "ab", "😀" * 26),
        )
    ],
    post(PATH, {"value": "one"}),
    post(PATH, {"type": "simple"}),
    post(PATH, tag("colored", color="#123456")),
    post(PATH, tag("colored", color="red")),
    post(PATH, tag("one", "has space")),
    post(PATH, tag("one", "s")),
    post(PATH, tag("zzz", x=1)),
    delete(f"{PATH}/simple/😀😀"),
    get(PATH),
    get(f"{PATH}/simple"),
    get(f"{PATH}/nosuch"),
    *[get(f"{PATH}/{place}") for place in ("simple/one", "simple/with space", "simple/nosuch", "nosuch/one")],
    delete(f"{PATH}/simple/nosuch"),
    delete(f"{PATH}/simple/one"),
    get(f"{PATH}/simple/one"),
    post(PATH, tag("by reader"), READER),
    delete(f"{PATH}/simple/trimmed", READER),
    delete(f"{PATH}/simple/trimmed", WRITER),
    delete(f"{PATH}/simple/trimmed", ADMIN),
    get(PATH),
]

OF_FEATURES = [
    get(WEB),
    get(NOSUCH),
    post(WEB, tag("first")),
    post(WEB, tag("first")),
    post(WEB, tag("red", "team", color="#000000")),
    post(NOSUCH, tag("first")),
    post(WEB, tag("first", "nosuch")),
    *[post(WEB, tag(value)) for value in ("f", "  spaced  ", " s", "  ", "x" * 51, "😀" * 50)],
    post(WEB, {"value": "f2"}),
    post(WEB, tag("one", "has space")),
    get(WEB),
    get(OLD),
    post(OLD, tag("archived")),
    get(OLD),
    put(WEB, changes((tag("second"), tag("third")), (tag("first"),))),
    put(WEB, changes()),
    put(NOSUCH, changes()),
    put(NOSUCH, changes((tag("second"),))),
    put(NOSUCH, changes((), (tag("second"),))),
    put(WEB, {"addedTags": []}),
    put(WEB, changes((tag("second", "nosuch"),))),
    put(WEB, changes((tag("second", "has space"),))),
    put(WEB, changes((tag("both"),), (tag("both"),))),
    put(WEB, changes((), (tag("never"),))),
    get(WEB),
    delete(f"{WEB}/simple/second"),
    delete(f"{WEB}/simple/nosuch"),
    delete(f"{NOSUCH}/simple/one"),
    get(WEB),
    post(WEB, tag("by reader"), READER),
    put(WEB, changes(), READER),
    delete(f"{WEB}/simple/third", READER),
    post(WEB, tag("by writer"), WRITER),
    post(WEB, tag("by member"), MEMBER),
    post(NOSUCH, tag("x y"), READER),
    post(NOSUCH, tag("x y"), WRITER),
    delete(f"{WEB}/simple/third", MEMBER),
    get(WEB, READER),
    get(PATH),
]

OF_SEVERAL = [
    post(WEB, tag("by writer")),
    put(BULK, bulk("web", "app", "web", added=(tag("bulk"),), removed=(tag("by writer"),))),
    get(WEB),
    get("/api/admin/features/app/tags"),
    put(BULK, bulk("nosuch", added=(tag("bulk"),)), ours=no_feature(500)),
    put(BULK, bulk("nosuch", removed=(tag("bulk"),)), ours=no_feature(200)),
    put(BULK, bulk("web", added=(tag("bulk", "nosuch"),))),
    put(BULK, bulk("web", added=(tag("bulk", "a b"),))),
    put("/api/admin/projects/nosuch/tags", bulk("web", removed=(tag("away"),)), ADMIN, ours=no_feature(200)),
    put(BULK, bulk("elsewhere", removed=(tag("away"),)), ours=no_feature(200)),
    put(BULK, {"features": ["web"]}),
    put(BULK, bulk("")),
    put(BULK, bulk()),
    put(BULK, bulk("web"), READER),
    put(BULK, bulk("web", added=(tag("  spaced "),)), MEMBER),
    get(WEB),
    get(PATH),
    delete(f"{PATH}/simple/bulk"),
    get(WEB),
    post(WEB, tag("red", "team")),
    delete(f"{TYPES}/team"),
    get(WEB),
    delete(f"{TYPES}/simple"),
    get(WEB),
    get(PATH),
]

TABLES = {
    "tag types": TAG_TYPES,
    "tags": TAGS,
    "tags of features": OF_FEATURES,
    "tags of several features": OF_SEVERAL,
}
