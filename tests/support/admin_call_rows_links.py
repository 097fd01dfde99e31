"""Calls about links of features."""

from __future__ import annotations

from typing import Any

from support.admin_call_rows import (
    ADMIN,
    BOSS,
    MEMBER,
    OWNER,
    READER,
    WRITER,
    IntendedDifference,
    Step,
    delete,
    get,
    post,
    put,
)

F = "/api/admin/projects/default/features"
WEB, APP = f"{F}/web", f"{F}/app"
SITE = "https://example.com"
ONE = f"{WEB}/link/{{first}}"
SCHEME = "a page shows links, and one with a script in it would run it"
OWN = "a link belongs to its feature"


def link(url: Any, **more: Any) -> dict[str, Any]:
    """Return a link."""
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
    post(f"{WEB}/link", link(f"{SITE}/a b?x=1#f", title="T")),
    get(WEB, keep="first"),
    *[post(f"{WEB}/link", body) for body in BAD],
    *[post(f"{APP}/link", link(url), ours=ours) for url, ours in REFUSED.items()],
    post(f"{WEB}/link", link("example.com")),
    post(f"{WEB}/link", link(f"{SITE}/")),
    post(f"{WEB}/link", link(f"{SITE}/n", title=None)),
    post(f"{WEB}/link", link(f"{SITE}/e", title="")),
    post(f"{WEB}/link", link(f"{SITE}/5", title=5)),
    post(f"{WEB}/link", link(5)),
    post(f"{WEB}/link", link(f"{SITE}/more", extra=1)),
    *[post(f"{WEB}/link", link(f"{SITE}/{who}"), who) for who in (READER, WRITER, OWNER, MEMBER, ADMIN)],
    post(f"{WEB}/link", link("not a url")),
    get(WEB),
    post(f"{F}/nosuch/link", link(SITE)),
    post(f"{F}/old/link", link(SITE)),
    post(f"{F}/elsewhere/link", link(SITE), ours=not_here(204)),
    post("/api/admin/projects/other/features/web/link", link(SITE), MEMBER),
]
CHANGING = [
    post(f"{WEB}/link", link(SITE, title="T")),
    get(WEB, keep="first"),
    put(ONE, link("HTTPS://WWW.Example.com:443/a/../b/?b=2&a=1&utm_source=x#y")),
    get(WEB),
    *[put(ONE, body) for body in CHANGES],
    put(ONE, link("javascript:1"), ours=IntendedDifference(400, "no address of a web page", 204, SCHEME)),
    put(ONE, link(f"{SITE}/x", extra=1), ours=IntendedDifference(204, "", 500, "an unknown member has no effect")),
    put(ONE, link(f"{SITE}/x", title="")),
    get(WEB),
    put(ONE, link(f"{SITE}/x", title=None)),
    get(WEB),
    *[put(ONE, link(f"{SITE}/{who}"), who) for who in (BOSS, READER, WRITER, OWNER, MEMBER, ADMIN)],
    put(f"{WEB}/link/nosuch", link(SITE)),
    get(WEB),
    put(f"{F}/nosuch/link/{{first}}", link(SITE), ours=not_here(500)),
    put(f"{APP}/link/{{first}}", link(SITE), ours=not_here(204)),
]
REMOVING: list[Step] = [
    post(f"{WEB}/link", link(SITE, title="T")),
    get(WEB, keep="first"),
    delete(ONE, READER),
    delete(f"{WEB}/link/nosuch"),
    delete(ONE, MEMBER),
    delete(ONE),
    get(WEB),
    post(f"{WEB}/link", link(SITE)),
    get(WEB, keep="first"),
    delete(f"{F}/nosuch/link/nosuch", ours=IntendedDifference(404, "no feature", 404, OWN)),
    delete(WEB),
    put(ONE, link(f"{SITE}/late")),
    delete(ONE),
    delete(ONE),
    post(f"{APP}/link", link(SITE)),
    get(APP, keep="second"),
    delete(f"{WEB}/link/{{second}}", ours=not_here(204)),
]
TABLES = {"adding links": ADDING, "changing links": CHANGING, "removing links": REMOVING}
