"""`/api/admin/user-admin`: only administrators list and make users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.flagservers import (
    ADMIN_SECRET,
    BACKEND_SECRET,
    EDITOR_SECRET,
    USER_SECRET,
    VIEWER_SECRET,
    AppClient,
    app_client,
)

PATH = "/api/admin/user-admin"
ANNA = {"username": "anna", "email": "anna@example.com", "name": "Anna", "rootRole": 2, "sendEmail": False}


@pytest.fixture
def client(database_url: str) -> Iterator[AppClient]:
    """Give a flag server."""
    with app_client(database_url) as client:
        yield client


@pytest.mark.parametrize("token", [USER_SECRET, ADMIN_SECRET])
def test_an_administrator_makes_a_user(client: AppClient, token: str) -> None:
    """The answer has the user's `Location`, and the list has the new user beside those of the seed."""
    answer = client.post(PATH, ANNA, token=token)
    made = answer.json()
    assert (answer.status, answer.headers["location"]) == (201, str(made["id"])), answer.body
    assert {key: made[key] for key in ("username", "email", "name", "rootRole", "emailSent")} == {
        **{key: each for key, each in ANNA.items() if key != "sendEmail"},
        "emailSent": False,
    }
    answer = client.get(PATH, token=token)
    assert answer.status == 200
    assert [user["username"] for user in answer.json()["users"]] == ["boss", "writer", "reader", "anna"]


@pytest.mark.parametrize("token", [EDITOR_SECRET, VIEWER_SECRET, BACKEND_SECRET])
def test_others_may_not(client: AppClient, token: str) -> None:
    """Only administrators see mail addresses."""
    for answer in (client.get(PATH, token=token), client.post(PATH, ANNA, token=token)):
        assert answer.status == 403
    assert "anna" not in client.get(PATH).body.decode()


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"username": "anna"}, "/body/rootRole"),
        ({**ANNA, "extra": 1}, "/body/extra"),
        ({**ANNA, "rootRole": "Nosuch"}, "/body/rootRole"),
    ],
)
def test_the_shape_is_checked(client: AppClient, body: dict[str, object], path: str) -> None:
    """A role is required, and unknown members are refused."""
    answer = client.post(PATH, body)
    assert (answer.status, answer.json()["details"][0]["path"]) == (400, path)


def test_a_user_that_is_there_is_not_made_again(client: AppClient) -> None:
    """The second call is a 400, and there is still one user of that name."""
    assert [client.post(PATH, ANNA).status for _ in range(2)] == [201, 400]
    assert client.get(PATH).body.decode().count('"anna"') == 1
