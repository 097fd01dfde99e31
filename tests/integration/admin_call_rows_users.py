"""Calls about the users of a server, and about the tokens of a project."""

from __future__ import annotations

from typing import Any

from support.server_pair import ADMIN, BOSS, MEMBER, OWNER, READER, WRITER, IntendedDifference, delete, get, post, put

PATH = "/api/admin/user-admin"
TAKEN = IntendedDifference(
    400, "User already exists", 500, "a user name twice beside another mail address: the real database refuses it"
)
NO_PASSWORDS = IntendedDifference(400, "This server has no passwords", 201, "a password that opens nothing is not taken")


def user(role: Any = 3, **given: Any) -> dict[str, Any]:
    return {"rootRole": role, "sendEmail": False, **given}


USERS = [
    get(PATH),
    get(PATH, READER),
    get(PATH, WRITER),
    post(PATH, user(2, username="anna", email="Anna@Example.com", name="Anna")),
    post(PATH, {"username": "bert", "rootRole": "Viewer"}),
    post(PATH, user("1", email="carl@example.com"), ADMIN),
    post(PATH, user(username="dora", email="", password="")),
    post(PATH, user(username=7)),
    post(PATH, user(username="ANNA", name="Another")),
    post(PATH, user(name="nothing")),
    post(PATH, user(username="", email="")),
    post(PATH, user(username="anna")),
    post(PATH, user(username="new", email="ANNA@example.com")),
    post(PATH, user(username="anna", email="other@example.com"), ours=TAKEN),
    post(PATH, user(99, username="anna")),
    post(PATH, user(99, username="new")),
    post(PATH, user("Owner", username="new")),
    post(PATH, user(username="new", email="no address")),
    post(PATH, user(username="anna", name="")),
    post(PATH, user(username="late", password="s3cret"), ours=NO_PASSWORDS),
    post(PATH, user(username="late"), ours=IntendedDifference(201, '"late"', 400, "the call before made no user here")),
    *[post(PATH, user(role, username="new")) for role in ("Nosuch", -1, "")],
    post(PATH, {"username": "new"}),
    post(PATH, user(username="new", extra=1)),
    post(PATH, user(username=[])),
    post(PATH, user(username="new"), WRITER),
    get(PATH),
    get(PATH, ADMIN),
]
"""At most twenty that have the shape of a user: the real server takes that many in a minute."""


ME = "/api/admin/user"
ONE = f"{PATH}/{{reader}}"
LAST = IntendedDifference(403, "This is the only administrator", 200, "without an administrator no role can be given any more")
TAKEN_OF_PEOPLE = IntendedDifference(400, "User already exists", 500, "an address twice: the real database refuses it")

OWN = IntendedDifference(200, '"permissions"', 200, "ours has no picture, and its permissions have an order")
OUT = IntendedDifference(401, "does not know this token", 401, "the real server says to log in")

PEOPLE = [
    get(ME, READER, keep="reader", ours=OWN),
    get(ME, MEMBER, keep="member", ours=OWN),
    *[get(f"{PATH}/{{reader}}", who) for who in (ADMIN, OWNER, WRITER)],
    get(ONE),
    *[get(f"{PATH}/{number}") for number in (999999, "abc", -1, 1.5)],
    get(f"{PATH}/admin-count"),
    get(f"{PATH}/admin-count", WRITER),
    put(ONE, {"name": "R", "email": "R@Example.com", "rootRole": 2}),
    get(ONE),
    get(ME, READER, ours=OWN),
    put(ONE, {}),
    put(ONE, {"name": "", "email": ""}),
    put(ONE, {"email": "no address"}),
    put(ONE, {"email": "r@example.com", "username": "other", "more": 1}, ADMIN),
    *[put(ONE, {"rootRole": role}) for role in (99, "Owner", "Editor", "nosuch", "3", 0, -1)],
    put(ONE, {"name": 7}),
    put(ONE, {"name": []}),
    put(f"{PATH}/{{member}}", {"email": "R@example.com"}, ours=TAKEN_OF_PEOPLE),
    put(ONE, {"name": "x"}, WRITER),
    put(f"{PATH}/999999", {"name": "x"}),
    put(f"{PATH}/abc", {"name": "x"}),
    get(PATH),
    delete(ONE, WRITER),
    delete(ONE),
    delete(ONE),
    get(ME, READER, ours=OUT),
    delete(f"{PATH}/abc"),
    delete(f"{PATH}/{{member}}", ADMIN),
    get(PATH),
    get(f"{PATH}/admin-count"),
]

THE_ONLY_ADMINISTRATOR = [
    get(ME, keep="boss", ours=OWN),
    put(f"{PATH}/{{boss}}", {"rootRole": "Viewer"}, ADMIN, ours=LAST),
    put(f"{PATH}/{{boss}}", {"rootRole": "Admin"}, ADMIN),
]


API_TOKENS = "/api/admin/projects/default/api-tokens"
OTHER = "/api/admin/projects/other/api-tokens"
ALL = IntendedDifference(200, '"tokens":[]', 200, "an admin token sees the tokens of the project, not those of all")
GONE = IntendedDifference(404, "There is no such token", 404, "the real server answers 404 without a reason")
SHARED = IntendedDifference(400, "reads other projects, too: other", 400, "the real server answers 400 without a reason")
FOREIGN = IntendedDifference(404, "There is no such token", 400, "for an admin token every token is one of the project")

TOKENS = [
    *[get(API_TOKENS, who) for who in (BOSS, OWNER, MEMBER, WRITER, READER)],
    get(API_TOKENS, ADMIN, ours=ALL),
    post(API_TOKENS, {"tokenName": "one", "type": "client"}, OWNER, keep="one"),
    post(API_TOKENS, {"tokenName": "two", "type": "FRONTEND", "environment": "production"}, MEMBER, keep="two"),
    post(API_TOKENS, {"tokenName": "three", "type": "backend", "expiresAt": "2030-01-01T00:00:00Z", "projects": ["other"]}, WRITER),
    post(API_TOKENS, {"tokenName": "four", "type": "backend", "project": "other", "more": 1}, ADMIN),
    post(API_TOKENS, {"tokenName": "five", "type": "backend"}, READER),
    *[post(API_TOKENS, {"tokenName": "bad", "type": kind}) for kind in ("admin", "", "personal", 5)],
    *[post(API_TOKENS, {"tokenName": "bad", "type": "client", "environment": name}, ADMIN) for name in ("nosuch", "*", "")],
    post(API_TOKENS, {"tokenName": "", "type": "client"}),
    post(API_TOKENS, {"tokenName": "bad", "type": "client", "expiresAt": "soon"}),
    post(API_TOKENS, {"tokenName": "bad"}),
    post(API_TOKENS, {}),
    post(OTHER, {"tokenName": "x", "type": "client"}, OWNER),
    post(OTHER, {"tokenName": "far", "type": "client"}, ADMIN, keep="far"),
    post("/api/admin/projects/nosuch/api-tokens", {"tokenName": "x", "type": "client"}, ADMIN),
    get("/api/admin/projects/nosuch/api-tokens", ADMIN),
    post("/api/admin/api-tokens", {"tokenName": "both", "type": "client", "projects": ["default", "other"]}, keep="both"),
    get(API_TOKENS),
    get(API_TOKENS, MEMBER),
    get(OTHER, OWNER),
    delete(f"{API_TOKENS}/{{one}}", READER),
    delete(f"{API_TOKENS}/{{one}}", MEMBER),
    delete(f"{API_TOKENS}/{{one}}", MEMBER, ours=GONE),
    delete(f"{API_TOKENS}/{{two}}", ADMIN),
    delete(f"{API_TOKENS}/{{both}}", OWNER, ours=SHARED),
    delete(f"{API_TOKENS}/{{far}}", OWNER, ours=GONE),
    delete(f"{API_TOKENS}/{{far}}", ADMIN, ours=FOREIGN),
    delete(f"{OTHER}/{{far}}", OWNER),
    get(API_TOKENS),
]
"""In another project the real server's open-source edition lets only admin tokens do anything."""

TABLES = {"users": USERS, "people": PEOPLE, "the only administrator": THE_ONLY_ADMINISTRATOR, "tokens of a project": TOKENS}
