"""Calls that show, change and delete users."""

from __future__ import annotations

from support.admin_call_rows import ADMIN, MEMBER, OWNER, READER, WRITER, IntendedDifference, delete, get, put

PATH = "/api/admin/user-admin"
ME = "/api/admin/user"
ONE = f"{PATH}/{{reader}}"
LAST = IntendedDifference(
    403, "This is the only administrator", 200, "without an administrator no role can be given any more"
)
TAKEN = IntendedDifference(400, "User already exists", 500, "an address twice: the real database refuses it")

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
    put(f"{PATH}/{{member}}", {"email": "R@example.com"}, ours=TAKEN),
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

TABLES = {"people": PEOPLE, "the only administrator": THE_ONLY_ADMINISTRATOR}
