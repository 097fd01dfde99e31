"""The users of a server: listed and made, without passwords."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from flagsvc.server.store import schema
from flagsvc.server.store.keyring import hash_secret, read_actors
from flagsvc.server.store.resources import users
from flagsvc.server.store.seed.apply import apply_seed
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.seed.once import missing
from support.seeded_store import NOW, SeededStore

ANNA = {"username": "anna", "email": "Anna@Example.com", "name": "Anna", "rootRole": 2, "sendEmail": True}
DATA = {"name": "Anna", "username": "anna", "email": "anna@example.com", "rootRole": 2}


def listed(seeded: SeededStore) -> dict[str, dict[str, Any]]:
    """Return the users by what they are called."""
    found = seeded.read(users.list_users)["users"]
    return {user.get("username") or user["email"]: user for user in found}


def test_users_are_listed_with_their_roles(seeded: SeededStore) -> None:
    """Each user has the number of a root role, and the roles have names; there is no picture and no invitation link."""
    answer = seeded.read(users.list_users)
    assert [(role["id"], role["name"], role["type"]) for role in answer["rootRoles"]] == [
        (1, "Admin", "root"),
        (2, "Editor", "root"),
        (3, "Viewer", "root"),
    ]
    assert listed(seeded)["owner"] == {
        "accountType": "User",
        "id": answer["users"][0]["id"],
        "name": "owner",
        "username": "owner",
        "imageUrl": "",
        "seenAt": None,
        "loginAttempts": 0,
        "createdAt": NOW,
        "scimId": None,
        "companyRole": None,
        "productUpdatesEmailConsent": None,
        "rootRole": 3,
        "inviteLink": "",
    }


def test_a_user_is_made(seeded: SeededStore) -> None:
    """The address is stored in lower case, no mail is sent, and the event has the user; the role applies immediately."""
    made = seeded.write(users.create, ANNA)
    assert made == {**listed(seeded)["anna"], "seatType": None, "emailSent": False}
    assert {key: made[key] for key in DATA} == DATA
    assert seeded.told("data") == [("user-created", {"id": made["id"], **DATA})]
    assert seeded.read(read_actors)[made["id"]].root_role == "editor"


@pytest.mark.parametrize(
    ("given", "shown", "kept"), [(1, 1, 1), ("2", 2, 2), ("Viewer", "Viewer", 3), ("Admin", "Admin", 1)]
)
def test_a_role_is_a_number_or_a_name(seeded: SeededStore, given: Any, shown: Any, kept: int) -> None:
    """The answer has the role as it was given, the list has its number."""
    assert seeded.write(users.create, {"email": "carl@example.com", "rootRole": given})["rootRole"] == shown
    carl = listed(seeded)["carl@example.com"]
    assert carl["rootRole"] == kept and "username" not in carl and "name" not in carl


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"name": "Anna"}, "You must specify username or email"),
        ({"username": "", "email": ""}, "You must specify username or email"),
        ({"username": "anna"}, "User already exists"),
        ({"username": "new", "email": "ANNA@example.COM"}, "User already exists"),
        ({"username": "anna", "email": "new@example.com"}, "User already exists"),
        ({"username": "new", "rootRole": 4}, "Could not find rootRole=4"),
        ({"username": "new", "rootRole": "Owner"}, "Could not find rootRole=Owner"),
        ({"username": "new", "name": ""}, '"value" is not allowed to be empty.'),
        ({"username": "new", "email": "no address"}, '"value" must be a valid email. You provided "no address".'),
        ({"username": "new", "email": "a@b@c"}, '"value" must be a valid email. You provided "a@b@c".'),
    ],
)
def test_what_cannot_be_made(seeded: SeededStore, wanted: dict[str, Any], message: str) -> None:
    """A user without a name, with a taken one, with no known role or a bad address is refused, without an event."""
    seeded.write(users.create, ANNA)
    before = listed(seeded)
    assert seeded.refusal(users.create, {"rootRole": 3, **wanted}) == (400, "BadDataError", [message])
    assert listed(seeded) == before and len(seeded.told()) == 1


@pytest.mark.parametrize("key", ["username", "email", "name"])
def test_names_have_a_length(seeded: SeededStore, key: str) -> None:
    """255 characters are stored; a longer text is refused with the name of its member."""
    text = "a@" + "x" * 253
    assert seeded.write(users.create, {"username": "a", "rootRole": 3, key: text})[key] == text
    told = seeded.refusal(users.create, {"username": "b", "rootRole": 3, key: text + "x"})
    assert told[0] == 400
    assert told[2][0].startswith(f'"{key}" length must be less than or equal to 255 characters long.')


def test_a_password_is_refused(seeded: SeededStore) -> None:
    """A password would be useless here; the error says what authenticates and does not repeat it. An empty password is ignored."""
    status, name, [message] = seeded.refusal(users.create, {**ANNA, "password": "s3cret"})
    assert (status, name) == (400, "BadDataError")
    assert message.startswith("This server has no passwords") and "s3cret" not in message
    assert seeded.write(users.create, {**ANNA, "password": ""})["username"] == "anna"


@pytest.mark.parametrize("called", ["anna", "carl@example.com"])
def test_a_seed_gives_a_token_to_a_user_that_is_there(seeded: SeededStore, called: str) -> None:
    """A seed names a user by the user name, or by the mail address of one who has no user name."""
    seeded.write(users.create, ANNA)
    seeded.write(users.create, {"email": "carl@example.com", "rootRole": 1})
    before = listed(seeded)
    token = {"type": "personal", "user": called, "secret": "user:of-a-seed"}
    seed = parse_seed({"users": [{"name": called}], "tokens": [token]})
    seeded.write(lambda tx: apply_seed(tx, missing(tx, seed)))
    assert listed(seeded) == before
    hashed = schema.tokens.c.hash == hash_secret("user:of-a-seed")
    owner = seeded.read(lambda tx: tx.db.execute(select(schema.tokens.c.user_id).where(hashed)).scalar_one())
    assert owner == before[called]["id"]
