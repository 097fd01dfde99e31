"""Calls about the users of a server."""

from __future__ import annotations

from typing import Any

from support.admin_call_rows import ADMIN, READER, WRITER, IntendedDifference, get, post

PATH = "/api/admin/user-admin"
TAKEN = IntendedDifference(
    400, "User already exists", 500, "a user name twice beside another mail address: the real database refuses it"
)
NO_PASSWORDS = IntendedDifference(
    400, "This server has no passwords", 201, "a password that opens nothing is not taken"
)


def user(role: Any = 3, **given: Any) -> dict[str, Any]:
    """Return a user that is to be."""
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

TABLES = {"users": USERS}
