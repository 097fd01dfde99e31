"""Calls about tag types, tags and links of features, and about webhooks."""

from __future__ import annotations

from typing import Any

from support.server_pair import ADMIN, BOSS, MEMBER, OWNER, READER, WRITER, IntendedDifference, Step, delete, get, post, put

TYPES = "/api/admin/tag-types"
PATH = "/api/admin/tags"
WEB = "/api/admin/features/web/tags"
OLD = "/api/admin/features/old/tags"
NOSUCH = "/api/admin/features/nosuch/tags"
BULK = "/api/admin/projects/default/tags"


def tag(value: Any, kind: str = "simple", **given: Any) -> dict[str, Any]:
    return {"type": kind, "value": value, **given}


def changes(added: tuple[Any, ...] = (), removed: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return the body that puts tags on and takes tags off."""
    return {"addedTags": list(added), "removedTags": list(removed)}


def bulk(*features: str, added: tuple[Any, ...] = (), removed: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return the body that changes the tags of several features."""
    return {"features": list(features), "tags": changes(added, removed)}


def no_feature(real: int) -> IntendedDifference:
    """Return how our server refuses a feature that is not in the project."""
    return IntendedDifference(404, "No feature flag found", real, "only features of the project that the path names are changed")


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
    post(PATH, tag("one"), ours=IntendedDifference(409, "A tag of simple:one already exists", 409, "theirs shows no value")),
    post(
        PATH, tag("one", "nosuch"), ours=IntendedDifference(400, "Tag type 'nosuch' does not exist", 500, "a reference to nothing")
    ),
    post(PATH, tag("😀😀"), ours=IntendedDifference(201, "", 500, "theirs puts it into a header as it is")),
    *[
        post(PATH, tag(value))
        for value in (*("  trimmed  ", "o", "x" * 51, "x" * 50, "a\nb", "   ", " x ", "with space", 7, 71, "ab", "😀" * 26),)
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


F = "/api/admin/projects/default/features"
LINKED, APP = f"{F}/web", f"{F}/app"
SITE = "https://example.com"
ONE = f"{LINKED}/link/{{first}}"
SCHEME = "a page shows links, and one with a script in it would run it"
OWN = "a link belongs to its feature"


def link(url: Any, **more: Any) -> dict[str, Any]:
    return {"url": url, **more}


def not_here(real: int) -> IntendedDifference:
    """Return how our server refuses a link of another feature, or a feature that does not exist."""
    return IntendedDifference(404, "", real, OWN)


REFUSED: dict[str, IntendedDifference] = {
    "javascript:alert(1)": IntendedDifference(400, "no address of a web page", 204, SCHEME),
    "ftp://example.com/": IntendedDifference(400, "no address of a web page", 204, SCHEME),
    f"{SITE}/{'x' * 10_000}": IntendedDifference(400, "more than 10000 characters", 204, "a bound"),
}
BAD: tuple[Any, ...] = ({}, [], {"title": "x"}, link("not a url"), link(""), link(None))
CHANGES: tuple[Any, ...] = (*BAD[:3], {"title": "N"}, *BAD[3:5], link("nonsense"), link(f"{SITE}/z"))
ADDING = [
    post(f"{LINKED}/link", link(f"{SITE}/a b?x=1#f", title="T")),
    get(LINKED, keep="first"),
    *[post(f"{LINKED}/link", body) for body in BAD],
    *[post(f"{APP}/link", link(url), ours=ours) for url, ours in REFUSED.items()],
    post(f"{LINKED}/link", link("example.com")),
    post(f"{LINKED}/link", link(f"{SITE}/")),
    post(f"{LINKED}/link", link(f"{SITE}/n", title=None)),
    post(f"{LINKED}/link", link(f"{SITE}/e", title="")),
    post(f"{LINKED}/link", link(f"{SITE}/5", title=5)),
    post(f"{LINKED}/link", link(5)),
    post(f"{LINKED}/link", link(f"{SITE}/more", extra=1)),
    *[post(f"{LINKED}/link", link(f"{SITE}/{who}"), who) for who in (READER, WRITER, OWNER, MEMBER, ADMIN)],
    post(f"{LINKED}/link", link("not a url")),
    get(LINKED),
    post(f"{F}/nosuch/link", link(SITE)),
    post(f"{F}/old/link", link(SITE)),
    post(f"{F}/elsewhere/link", link(SITE), ours=not_here(204)),
    post("/api/admin/projects/other/features/web/link", link(SITE), MEMBER),
]
CHANGING = [
    post(f"{LINKED}/link", link(SITE, title="T")),
    get(LINKED, keep="first"),
    put(ONE, link("HTTPS://WWW.Example.com:443/a/../b/?b=2&a=1&utm_source=x#y")),
    get(LINKED),
    *[put(ONE, body) for body in CHANGES],
    put(ONE, link("javascript:1"), ours=IntendedDifference(400, "no address of a web page", 204, SCHEME)),
    put(ONE, link(f"{SITE}/x", extra=1), ours=IntendedDifference(204, "", 500, "an unknown member has no effect")),
    put(ONE, link(f"{SITE}/x", title="")),
    get(LINKED),
    put(ONE, link(f"{SITE}/x", title=None)),
    get(LINKED),
    *[put(ONE, link(f"{SITE}/{who}"), who) for who in (BOSS, READER, WRITER, OWNER, MEMBER, ADMIN)],
    put(f"{LINKED}/link/nosuch", link(SITE)),
    get(LINKED),
    put(f"{F}/nosuch/link/{{first}}", link(SITE), ours=not_here(500)),
    put(f"{APP}/link/{{first}}", link(SITE), ours=not_here(204)),
]
REMOVING: list[Step] = [
    post(f"{LINKED}/link", link(SITE, title="T")),
    get(LINKED, keep="first"),
    delete(ONE, READER),
    delete(f"{LINKED}/link/nosuch"),
    delete(ONE, MEMBER),
    delete(ONE),
    get(LINKED),
    post(f"{LINKED}/link", link(SITE)),
    get(LINKED, keep="first"),
    delete(f"{F}/nosuch/link/nosuch", ours=IntendedDifference(404, "no feature", 404, OWN)),
    delete(LINKED),
    put(ONE, link(f"{SITE}/late")),
    delete(ONE),
    delete(ONE),
    post(f"{APP}/link", link(SITE)),
    get(APP, keep="second"),
    delete(f"{LINKED}/link/{{second}}", ours=not_here(204)),
]


FAVORITE = f"{LINKED}/favorites"
NO_TYPE = IntendedDifference(200, "", 415, "a request without a body needs no content type")


def star(path: str, who: str = BOSS, **given: Any) -> Step:
    return post(path, {}, who, **given)


def unstar(path: str, who: str = BOSS, **given: Any) -> Step:
    return Step("DELETE", path, {}, who, **given)


FAVORITES = [
    star(FAVORITE),
    get(LINKED),
    star(FAVORITE),
    get(APP),
    get(LINKED, READER),
    star(FAVORITE, READER),
    get(LINKED, READER),
    unstar(FAVORITE),
    get(LINKED),
    unstar(FAVORITE),
    get(LINKED, READER),
    star(f"{F}/old/favorites"),
    unstar(f"{F}/old/favorites"),
    star("/api/admin/projects/other/features/elsewhere/favorites", MEMBER),
    post(FAVORITE, ours=NO_TYPE),
    delete(FAVORITE, ours=NO_TYPE),
    star(f"{F}/nosuch/favorites", ours=not_here(500)),
    unstar(f"{F}/nosuch/favorites", ours=not_here(200)),
    star(f"{F}/elsewhere/favorites", ours=not_here(200)),
    star(FAVORITE, ADMIN, ours=IntendedDifference(403, "an admin token is none", 500, "it is no user")),
]


ADDONS = "/api/admin/addons"
HOOK = f"{ADDONS}/{{hook}}"
URL = "https://hooks.example.com/flags"
PARAMETERS = {"url": URL, "authorization": "Bearer s", "customHeaders": '{"X-A":"b"}', "contentType": "text/plain"}
FULL: dict[str, Any] = {
    "provider": "webhook",
    "description": "d",
    "enabled": True,
    "parameters": PARAMETERS,
    "events": ["feature-created"],
    "projects": ["*"],
    "environments": [],
}
MASKED = dict.fromkeys(("url", "authorization", "customHeaders"), "*****") | {"contentType": "text/plain"}
SECRETS = "the real server answers a change with the secrets in plain"
MADE = IntendedDifference(201, '"url":"*****"', 201, SECRETS)
CHANGED = IntendedDifference(200, '"url":"*****"', 200, SECRETS)
ONLY_ONE = IntendedDifference(200, '"addons":[]', 200, "ours has one provider, in its own words")
UNKNOWN = IntendedDifference(400, "the only one is `webhook`", 400, "the real server does not say what is wrong")
MISSING = IntendedDifference(400, "Missing required parameters: url", 400, "the real server does not say what is wrong")
NO_NUMBER = IntendedDifference(400, "must be integer", 500, "the real database refuses it")


def never(words: str) -> IntendedDifference:
    """Return the difference of a webhook that the real server stores although it can never work."""
    return IntendedDifference(400, words, 201, "a webhook that cannot work is not stored")


WEBHOOKS = [
    get(ADDONS, ours=ONLY_ONE),
    get(ADDONS, READER, ours=ONLY_ONE),
    post(ADDONS, FULL, keep="hook", ours=MADE),
    get(HOOK),
    get(HOOK, READER),
    post(ADDONS, FULL, READER),
    post(ADDONS, FULL, WRITER, ours=MADE),
    post(ADDONS, FULL | {"events": ["nosuch", "change-request-created"]}, ADMIN, ours=MADE),
    get(f"{ADDONS}/3"),
    post(ADDONS, {}),
    *[post(ADDONS, {name: FULL[name] for name in list(FULL) if name != left}) for left in ("provider", "enabled", "events")],
    post(ADDONS, {"provider": "webhook", "enabled": True, "events": []}),
    post(ADDONS, FULL | {"enabled": "yes"}),
    post(ADDONS, FULL | {"parameters": []}),
    post(ADDONS, FULL | {"events": "x"}),
    post(ADDONS, FULL | {"projects": {}}),
    post(ADDONS, FULL | {"parameters": {"url": ""}}),
    post(ADDONS, FULL | {"parameters": {}}, ours=MISSING),
    post(ADDONS, FULL | {"provider": "nosuch"}, ours=UNKNOWN),
    *[get(f"{ADDONS}/{number}") for number in (999, -1)],
    get(f"{ADDONS}/abc", ours=NO_NUMBER),
    put(HOOK, FULL | {"parameters": MASKED, "enabled": False}, ours=CHANGED),
    get(HOOK),
    put(HOOK, FULL | {"parameters": {"url": "*****"}, "description": None}, WRITER, ours=CHANGED),
    get(HOOK),
    put(HOOK, {"provider": "webhook", "enabled": True, "parameters": {"url": "*****"}, "events": []}, ours=CHANGED),
    get(HOOK),
    put(HOOK, {}),
    put(HOOK, FULL, READER),
    put(f"{ADDONS}/999", FULL),
    put(f"{ADDONS}/999", {}),
    get(f"{HOOK}/events"),
    get(f"{HOOK}/events?limit=abc"),
    get(f"{HOOK}/events?limit=0&offset=-1"),
    get(f"{HOOK}/events", WRITER),
    get(f"{HOOK}/events", READER),
    get(f"{ADDONS}/abc/events"),
    get(f"{ADDONS}/999/events"),
    delete(HOOK, READER),
    delete(HOOK),
    delete(HOOK, WRITER),
    delete(f"{ADDONS}/abc", ours=NO_NUMBER),
]

CANNOT_WORK = [
    post(ADDONS, FULL | {"parameters": {"url": "no address"}}, ours=never("must be an http or https address")),
    post(ADDONS, FULL | {"parameters": {"url": URL, "more": "x"}}, ours=never('"parameters.more" is not allowed')),
    post(ADDONS, FULL | {"parameters": {"url": URL, "bodyTemplate": "{{#a}}{{"}}, ours=never("must be a template")),
    post(ADDONS, FULL | {"parameters": {"url": URL, "customHeaders": "{"}}, ours=never("must be a JSON object")),
]

TABLES = {
    "tag types": TAG_TYPES,
    "tags": TAGS,
    "tags of features": OF_FEATURES,
    "tags of several features": OF_SEVERAL,
    "adding links": ADDING,
    "changing links": CHANGING,
    "removing links": REMOVING,
    "favorites": FAVORITES,
    "webhooks": WEBHOOKS,
    "webhooks that cannot work": CANNOT_WORK,
}
