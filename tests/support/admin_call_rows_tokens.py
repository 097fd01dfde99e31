"""Calls about the tokens of a project."""

from __future__ import annotations

from support.admin_call_rows import ADMIN, BOSS, MEMBER, OWNER, READER, WRITER, IntendedDifference, delete, get, post

PATH = "/api/admin/projects/default/api-tokens"
OTHER = "/api/admin/projects/other/api-tokens"
ALL = IntendedDifference(200, '"tokens":[]', 200, "an admin token sees the tokens of the project, not those of all")
GONE = IntendedDifference(404, "There is no such token", 404, "the real server answers 404 without a reason")
SHARED = IntendedDifference(
    400, "reads other projects, too: other", 400, "the real server answers 400 without a reason"
)
FOREIGN = IntendedDifference(404, "There is no such token", 400, "for an admin token every token is one of the project")

TOKENS = [
    *[get(PATH, who) for who in (BOSS, OWNER, MEMBER, WRITER, READER)],
    get(PATH, ADMIN, ours=ALL),
    post(PATH, {"tokenName": "one", "type": "client"}, OWNER, keep="one"),
    post(PATH, {"tokenName": "two", "type": "FRONTEND", "environment": "production"}, MEMBER, keep="two"),
    post(
        PATH,
        {"tokenName": "three", "type": "backend", "expiresAt": "2030-01-01T00:00:00Z", "projects": ["other"]},
        WRITER,
    ),
    post(PATH, {"tokenName": "four", "type": "backend", "project": "other", "more": 1}, ADMIN),
    post(PATH, {"tokenName": "five", "type": "backend"}, READER),
    *[post(PATH, {"tokenName": "bad", "type": kind}) for kind in ("admin", "", "personal", 5)],
    *[post(PATH, {"tokenName": "bad", "type": "client", "environment": name}, ADMIN) for name in ("nosuch", "*", "")],
    post(PATH, {"tokenName": "", "type": "client"}),
    post(PATH, {"tokenName": "bad", "type": "client", "expiresAt": "soon"}),
    post(PATH, {"tokenName": "bad"}),
    post(PATH, {}),
    post(OTHER, {"tokenName": "x", "type": "client"}, OWNER),
    post(OTHER, {"tokenName": "far", "type": "client"}, ADMIN, keep="far"),
    post("/api/admin/projects/nosuch/api-tokens", {"tokenName": "x", "type": "client"}, ADMIN),
    get("/api/admin/projects/nosuch/api-tokens", ADMIN),
    post(
        "/api/admin/api-tokens", {"tokenName": "both", "type": "client", "projects": ["default", "other"]}, keep="both"
    ),
    get(PATH),
    get(PATH, MEMBER),
    get(OTHER, OWNER),
    delete(f"{PATH}/{{one}}", READER),
    delete(f"{PATH}/{{one}}", MEMBER),
    delete(f"{PATH}/{{one}}", MEMBER, ours=GONE),
    delete(f"{PATH}/{{two}}", ADMIN),
    delete(f"{PATH}/{{both}}", OWNER, ours=SHARED),
    delete(f"{PATH}/{{far}}", OWNER, ours=GONE),
    delete(f"{PATH}/{{far}}", ADMIN, ours=FOREIGN),
    delete(f"{OTHER}/{{far}}", OWNER),
    get(PATH),
]
"""In another project the real server's open-source edition lets only admin tokens do anything."""

TABLES = {"tokens of a project": TOKENS}
