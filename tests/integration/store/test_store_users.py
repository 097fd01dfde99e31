"""The users of a server, without passwords.

`test_server_resources_beside_the_real_one.py` compares all operations of users.
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from flagsvc.server.store import schema
from flagsvc.server.store.keyring import hash_secret
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


def test_a_user_is_made(seeded: SeededStore) -> None:
    """The address is stored in lower case, and the event has the user."""
    made = seeded.write(users.create, ANNA)
    assert made == {**listed(seeded)["anna"], "seatType": None, "emailSent": False}
    assert seeded.told("data") == [("user-created", {"id": made["id"], **DATA})]


def test_a_user_has_no_picture(seeded: SeededStore) -> None:
    """There is no picture and no invitation link."""
    shown = listed(seeded)["owner"]
    assert shown == {
        "accountType": "User",
        "id": shown["id"],
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
