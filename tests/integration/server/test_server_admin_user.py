"""`/api/admin/user`: the current user and the user's personal tokens, as on the real server."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import select

from flagsvc.server.store.schema import events
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, EDITOR_SECRET, USER_SECRET, VIEWER_SECRET, AppClient

pytestmark = pytest.mark.one_database

PATH = "/api/admin/user"
TOKENS = f"{PATH}/tokens"
END = "2030-01-01T00:00:00Z"
BAD = "Request validation failed: your request body or params contain invalid data: "


def pats(client: AppClient, token: str = EDITOR_SECRET) -> list[dict[str, Any]]:
    """Return the tokens of a user."""
    return list(client.get(TOKENS, token=token).json()["pats"])


def made(client: AppClient, description: str = "x", token: str = EDITOR_SECRET) -> dict[str, Any]:
    """Make a token of a user."""
    answer = client.post(TOKENS, {"description": description, "expiresAt": END}, token=token)
    assert answer.status == 201, answer.body
    return dict(answer.json())


def test_a_user_is_told_who_they_are(client: AppClient) -> None:
    """The answer has the user and every permission with its place; it must not be cached."""
    answer = client.get(PATH, token=EDITOR_SECRET)
    content = answer.json()
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    user = content["user"]
    assert re.fullmatch(r"\d{4}-.*\.\d{3}Z", user.pop("createdAt"))
    assert user.pop("id") > 0
    assert user == {"accountType": "User", "name": "writer", "username": "writer", "seenAt": None, "loginAttempts": 0}
    assert {"permission": "CREATE_CONTEXT_FIELD"} in content["permissions"]
    assert {"permission": "CREATE_FEATURE", "project": "default"} in content["permissions"]
    place = {"project": "default", "environment": "production"}
    assert {"permission": "UPDATE_FEATURE_STRATEGY", **place} in content["permissions"]
    assert (content["feedback"], content["splash"]) == ([], {})


def test_a_viewer_may_nothing_and_an_admin_all(client: AppClient) -> None:
    """A user without permissions gets an empty list; a user with all of them gets one entry."""
    assert client.get(PATH, token=VIEWER_SECRET).json()["permissions"] == []
    assert client.get(PATH, token=USER_SECRET).json()["permissions"] == [{"permission": "ADMIN"}]


def test_an_admin_token_is_told_what_it_is(client: AppClient) -> None:
    """An admin token is not shown as a user, and its secret is not sent back."""
    answer = client.get(PATH, token=ADMIN_SECRET)
    assert answer.json() == {
        "user": {
            "username": "admin",
            "permissions": ["ADMIN"],
            "environment": "*",
            "type": "admin",
            "projects": ["*"],
            "internalAdminTokenUserId": -42,
        },
        "permissions": [{"permission": "ADMIN"}],
        "feedback": [],
        "splash": {},
    }
    assert ADMIN_SECRET not in answer.body.decode()


def test_a_token_is_made_and_works(client: AppClient) -> None:
    """The secret is shown once; it authenticates the same user."""
    token = made(client, "laptop")
    secret = token.pop("secret")
    assert re.fullmatch("user:[0-9a-f]{56}", secret)
    assert (token["description"], token["expiresAt"], token["seenAt"]) == ("laptop", "2030-01-01T00:00:00.000Z", None)
    assert set(token) == {"id", "description", "expiresAt", "userId", "createdAt", "seenAt"}
    assert pats(client)[-1] == token
    assert client.get(PATH, token=secret).json()["user"]["username"] == "writer"


def test_users_see_and_delete_only_their_own(client: AppClient) -> None:
    """Another user's token is a 404."""
    number = made(client)["id"]
    assert number not in [each["id"] for each in pats(client, VIEWER_SECRET)]
    for token in (VIEWER_SECRET, USER_SECRET):
        answer = client.delete(f"{TOKENS}/{number}", token=token)
        assert answer.status == 404
        assert answer.json() == {"name": "NotFoundError", "message": "No PAT found.", "details": [{"message": "No PAT found."}]}
    assert number in [each["id"] for each in pats(client)]


def test_a_deleted_token_opens_nothing(client: AppClient) -> None:
    """Deleting is an empty 200, and the second time a 404."""
    token = made(client)
    answer = client.delete(f"{TOKENS}/{token['id']}", token=EDITOR_SECRET)
    assert (answer.status, answer.body) == (200, b"")
    assert client.get(PATH, token=token["secret"]).status == 401
    assert client.delete(f"{TOKENS}/{token['id']}", token=EDITOR_SECRET).status == 404


REFUSED = (
    ({"description": "", "expiresAt": END}, "PAT description cannot be empty."),
    ({"description": "x", "expiresAt": "2020-01-01T00:00:00Z"}, "The expiry date should be in future."),
    ({"description": "", "expiresAt": "2020-01-01T00:00:00Z"}, "PAT description cannot be empty."),
)


def test_what_cannot_be_is_refused(client: AppClient) -> None:
    """A token needs a description and an expiry in the future."""
    for body, message in REFUSED:
        answer = client.post(TOKENS, body, token=EDITOR_SECRET)
        assert answer.status == 400
        assert answer.json() == {"name": "BadDataError", "message": BAD + message, "details": [{"message": message}]}


MISSHAPEN: tuple[tuple[dict[str, str], str], ...] = (({}, "/body/description"), ({"description": "x"}, "/body/expiresAt"))


def test_the_shape_is_checked(client: AppClient) -> None:
    """The error names the missing member."""
    for body, path in MISSHAPEN:
        answer = client.post(TOKENS, body, token=EDITOR_SECRET)
        assert (answer.status, answer.json()["details"][0]["path"]) == (400, path)


def test_descriptions_and_numbers_are_limited(client: AppClient) -> None:
    """A user cannot repeat a description or make an eleventh token; other users' tokens do not count."""
    made(client, "one")
    answer = client.post(TOKENS, {"description": "one", "expiresAt": END}, token=EDITOR_SECRET)
    assert (answer.status, answer.json()["name"], answer.json()["message"]) == (
        409,
        "NameExistsError",
        "PAT description already exists.",
    )
    for number in range(10 - len(pats(client))):
        made(client, f"more {number}")
    answer = client.post(TOKENS, {"description": "eleventh", "expiresAt": END}, token=EDITOR_SECRET)
    assert (answer.status, answer.json()["name"]) == (403, "OperationDeniedError")
    assert answer.json()["message"] == "Too many PATs (10) already exist for this user."
    made(client, "one", VIEWER_SECRET)


def test_only_users_have_tokens_of_their_own(client: AppClient) -> None:
    """An admin token has no personal tokens."""
    body = {"description": "x", "expiresAt": END}
    answers = [client.get(TOKENS, token=ADMIN_SECRET), client.post(TOKENS, body, token=ADMIN_SECRET)]
    answers.append(client.delete(f"{TOKENS}/1", token=ADMIN_SECRET))
    message = "PATs require an authenticated user."
    for answer in answers:
        assert answer.status == 403
        assert answer.json() == {"name": "ForbiddenError", "message": message, "details": [{"message": message}]}
    assert client.get(PATH, token=BACKEND_SECRET).status == 403


@pytest.mark.parametrize("number", ["abc", "1.5", "x1"])
def test_a_number_that_is_none_is_refused(client: AppClient, number: str) -> None:
    """The path must contain a whole number."""
    answer = client.delete(f"{TOKENS}/{number}", token=EDITOR_SECRET)
    assert (answer.status, answer.json()["details"][0]["path"]) == (400, "/params/id")
    if number == "abc":
        assert answer.json()["details"][0]["message"] == 'The `/params/id` property must be integer. You sent "abc".'


def test_a_number_that_nobody_has_is_not_found(client: AppClient) -> None:
    """Any number may be asked for, also a number that is too large for the database."""
    for number in ("0", "-1", "99999999999999999999999", "1e3", "1e999", "%20"):
        assert client.delete(f"{TOKENS}/{number}", token=EDITOR_SECRET).status == 404


def test_what_is_done_to_tokens_is_told(client: AppClient) -> None:
    """Making and deleting a token write events without the secret."""
    client.delete(f"{TOKENS}/{made(client)['id']}", token=EDITOR_SECRET)
    with client.server.store.reading() as tx:
        rows = [row for row in tx.db.execute(select(events).order_by(events.c.id)) if row.type.startswith("pat-")]
    assert [(row.type, row.created_by, (row.data or row.before)["description"]) for row in rows] == [
        ("pat-created", "writer", "x"),
        ("pat-deleted", "writer", "x"),
    ]
    assert not any("secret" in (row.data or row.before) for row in rows)


def test_a_description_has_a_length(client: AppClient) -> None:
    """One of 255 characters is stored, a longer one is refused."""
    assert made(client, "x" * 255)["description"] == "x" * 255
    answer = client.post(TOKENS, {"description": "x" * 256, "expiresAt": END}, token=EDITOR_SECRET)
    assert answer.status == 400
    assert answer.json()["details"][0]["message"] == "PAT description cannot be longer than 255 characters."
