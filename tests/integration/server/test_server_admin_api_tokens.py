"""`/api/admin/api-tokens` on the wire: statuses and bodies are the real server's, except for the secrets (decision 0025)."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import select

from flagsvc.server.store.schema import METADATA
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, EDITOR_SECRET, FRONTEND_SECRET, USER_SECRET, VIEWER_SECRET, AppClient

pytestmark = pytest.mark.one_database

PATH = "/api/admin/api-tokens"
INVALID = (
    "Request validation failed: your request body or params contain invalid data. Refer to the `details` list for more information."
)
BAD = "Request validation failed: your request body or params contain invalid data: "
GIVEN = {"projects": [{"id": "other"}]}


def made(client: AppClient, **wanted: Any) -> dict[str, Any]:
    """Make a token and return the answer."""
    answer = client.post(PATH, {"tokenName": "t", "type": "backend", **wanted})
    assert answer.status == 201, answer.body
    return dict(answer.json())


def listed(client: AppClient, name: str, token: str = USER_SECRET) -> list[dict[str, Any]]:
    """Return the tokens of a name."""
    return list(client.get(f"{PATH}/{name}", token=token).json()["tokens"])


def named(secret: str) -> str:
    """Return the path of a token."""
    return f"{PATH}/{quote(secret, safe='')}"


MADE: tuple[tuple[dict[str, Any], str, str, list[str], str], ...] = (
    ({}, "backend", "development", ["*"], "*:development."),
    ({"type": "CLIENT", "environment": "production"}, "client", "production", ["*"], "*:production."),
    ({"type": "Frontend", "projects": ["other"]}, "frontend", "development", ["other"], "other:development."),
    ({"projects": ["default", "other"]}, "backend", "development", ["default", "other"], "[]:development."),
    ({"projects": ["default", "*"]}, "backend", "development", ["*"], "*:development."),
    ({"projects": ["other", "other"]}, "backend", "development", ["other"], "other:development."),
    ({"project": "other"}, "backend", "development", ["*"], "*:development."),
    ({"tokenName": 5, "something": "else"}, "backend", "development", ["*"], "*:development."),
)


def test_a_token_is_made(client: AppClient) -> None:
    """The answer is the real server's: a secret of the right form, the token's scope, and no expiry unless one was asked for."""
    for wanted, kind, environment, projects, head in MADE:
        answer = client.post(PATH, {"tokenName": "t", "type": "backend", **wanted})
        token = answer.json()
        assert (answer.status, answer.headers["location"], answer.headers["cache-control"]) == (201, "api-tokens", "no-store")
        secret, created = token.pop("secret"), token.pop("createdAt")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", created)
        assert secret.startswith(head) and re.fullmatch("[0-9a-f]{56}", secret.removeprefix(head))
        expected = {"tokenName": str(wanted.get("tokenName", "t")), "type": kind, "environment": environment}
        assert token == expected | {"projects": projects, "project": ",".join(projects), "alias": None}


def test_an_end_is_shown_in_utc(client: AppClient) -> None:
    """`expiresAt` has JavaScript's date format, also for a time in the past."""
    assert made(client, expiresAt="2030-01-01T00:00:00+02:00")["expiresAt"] == "2029-12-31T22:00:00.000Z"
    assert made(client, expiresAt="2020-01-01T00:00:00Z")["expiresAt"] == "2020-01-01T00:00:00.000Z"


REFUSED = (
    ({"environment": "*"}, "Client token cannot be scoped to all environments"),
    ({"type": "client", "environment": "*"}, "Client token cannot be scoped to all environments"),
    ({"type": "frontend", "environment": "*"}, "Frontend token cannot be scoped to all environments"),
    ({"environment": "nosuch"}, "Environment=nosuch does not exist"),
    ({"projects": ["default", "nosuch"]}, "Project=nosuch does not exist"),
    ({"environment": "nosuch", "projects": ["nosuch"]}, "Environment=nosuch does not exist"),
)


def test_what_cannot_be_is_refused(client: AppClient) -> None:
    """A token for an unknown project or environment, or with more rights than its type allows, is a 400 without an id."""
    for wanted, message in REFUSED:
        answer = client.post(PATH, {"tokenName": "t", "type": "backend", **wanted})
        assert answer.status == 400
        assert answer.json() == {"name": "BadDataError", "message": BAD + message, "details": [{"message": message}]}
        assert listed(client, "t") == []


EMPTY: tuple[tuple[dict[str, Any], list[str]], ...] = (
    ({"tokenName": ""}, ['"tokenName" is not allowed to be empty.']),
    ({"environment": ""}, ['"environment" is not allowed to be empty.']),
    ({"projects": []}, ['"projects" must contain at least 1 items. You provided [].']),
    (
        {"tokenName": "", "environment": ""},
        ['"tokenName" is not allowed to be empty.', '"environment" is not allowed to be empty.'],
    ),
)


def test_what_is_empty_is_refused(client: AppClient) -> None:
    """All empty members are reported together."""
    for wanted, messages in EMPTY:
        answer = client.post(PATH, {"tokenName": "t", "type": "backend", **wanted})
        details = [{"message": message} for message in messages]
        assert (answer.status, answer.json()) == (400, {"name": "BadDataError", "message": INVALID, "details": details})


MISSHAPEN: tuple[tuple[Any, str, str], ...] = (
    ({"tokenName": "t", "type": "admin"}, "/body/type", "must match pattern"),
    ({"tokenName": "t"}, "/body/type", "is required"),
    ({"type": "backend"}, "/body/tokenName", "is required"),
    ({"tokenName": "t", "type": "backend", "expiresAt": "soon"}, "/body/expiresAt", 'must match format "date-time"'),
    ({"tokenName": "t", "type": "backend", "expiresAt": None}, "/body/expiresAt", 'must match format "date-time"'),
    ({"tokenName": "t", "type": "backend", "projects": "default"}, "/body/projects", "must be array"),
    ([], "/body", "must be object"),
)


def test_the_shape_is_checked_first(client: AppClient) -> None:
    """A body of the wrong shape is a 400 that names the place; this route cannot make an admin token."""
    for body, path, part in MISSHAPEN:
        answer = client.post(PATH, body)
        error = answer.json()
        assert (answer.status, error["name"], error["message"]) == (400, "BadDataError", INVALID)
        assert error["details"][0]["path"] == path and part in error["details"][0]["message"]
        assert "id" in error


def test_a_list_shows_no_secret(client: AppClient) -> None:
    """A list shows the beginning of a token, its number, and everything else, but not its secret."""
    token = made(client, tokenName="named", projects=["other"], expiresAt="2030-01-01T00:00:00Z")
    (shown,) = listed(client, "named")
    secret = token["secret"]
    assert re.fullmatch(re.escape(secret[: len("other:development.") + 4]) + r"\*\*\*\d+", shown.pop("secret"))
    assert shown == {
        "tokenName": "named",
        "type": "client",
        "project": "other",
        "projects": ["other"],
        "environment": "development",
        "expiresAt": "2030-01-01T00:00:00.000Z",
        "createdAt": token["createdAt"],
        "alias": None,
        "seenAt": None,
    }
    everything = client.get(PATH).body.decode()
    known = (secret, ADMIN_SECRET, BACKEND_SECRET, FRONTEND_SECRET, USER_SECRET)
    assert not any(each in everything for each in known)


def test_a_secret_is_nowhere_but_in_its_answer(client: AppClient) -> None:
    """No table and no log line holds the secret of a new token."""
    secret = made(client)["secret"]
    with client.server.store.reading() as tx:
        rows = [str(row) for table in METADATA.tables.values() for row in tx.db.execute(select(table))]
    assert not any(secret in row for row in rows)
    assert secret not in str(client.log.lines)


def test_who_sees_which_tokens(client: AppClient) -> None:
    """Admins see all tokens except personal ones, editors see client tokens, viewers see none."""
    kinds = {
        token: sorted(each["type"] for each in client.get(PATH, token=token).json()["tokens"])
        for token in (ADMIN_SECRET, USER_SECRET, EDITOR_SECRET)
    }
    assert kinds[ADMIN_SECRET] == kinds[USER_SECRET] == ["admin", "client", "frontend"]
    assert kinds[EDITOR_SECRET] == ["client", "frontend"]
    assert client.get(PATH, token=VIEWER_SECRET).status == 403


def test_a_new_token_works_at_once_until_it_is_deleted(client: AppClient) -> None:
    """A token opens the client API as soon as it is made, and is refused as soon as it is deleted."""
    secret = made(client, projects=["default"])["secret"]
    find = client.server.keyring.find
    assert find(secret) is not None
    answer = client.delete(named(secret))
    assert (answer.status, answer.body) == (200, b"")
    assert find(secret) is None and listed(client, "t") == []


def test_a_token_is_deleted_by_its_masked_secret(client: AppClient) -> None:
    """The masked secret that a list shows is enough to delete that token and no other."""
    first, second = made(client), made(client)
    shown = listed(client, "t")
    assert client.delete(named(shown[0]["secret"])).status == 200
    assert listed(client, "t") == shown[1:]
    assert client.server.keyring.find(first["secret"]) is None
    assert client.server.keyring.find(second["secret"]) is not None


def test_a_masked_secret_opens_nothing(client: AppClient) -> None:
    """A masked secret is refused as a token."""
    made(client)
    assert client.get(PATH, token=listed(client, "t")[0]["secret"]).status == 401


@pytest.mark.parametrize(
    "change", [lambda text: f"x{text}", lambda text: text[:-1] + "99999", lambda text: text[text.index("***") :]]
)
def test_a_masked_secret_has_to_be_right(client: AppClient, change: Any) -> None:
    """The number alone, or another beginning, deletes no token; as on the real server, that is no error."""
    made(client)
    shown = listed(client, "t")
    assert client.delete(named(change(shown[0]["secret"]))).status == 200
    assert listed(client, "t") == shown


def test_a_personal_token_is_no_api_token(client: AppClient) -> None:
    """This route deletes no personal token, by any name."""
    assert client.delete(named(VIEWER_SECRET)).status == 200
    assert client.server.keyring.find(VIEWER_SECRET) is not None


@pytest.mark.parametrize("by", ["secret", "masked secret"])
def test_an_end_is_changed(client: AppClient, by: str) -> None:
    """`PUT` changes the expiry of a token; an expiry in the past takes effect immediately."""
    secret = made(client)["secret"]
    path = named(secret if by == "secret" else listed(client, "t")[0]["secret"])
    answer = client.put(path, {"expiresAt": "2031-01-01T00:00:00+02:00"})
    assert (answer.status, answer.body) == (200, b"")
    assert listed(client, "t")[0]["expiresAt"] == "2030-12-31T22:00:00.000Z"
    assert client.server.keyring.find(secret) is not None
    client.put(path, {"expiresAt": "2020-01-01T00:00:00Z"})
    assert client.server.keyring.find(secret) is None


def test_changing_what_does_not_exist_is_no_error(client: AppClient) -> None:
    """As on the real server, an unknown token is a 200 without effect, and a body of the wrong shape is a 400."""
    assert client.put(f"{PATH}/nosuch", {"expiresAt": "2031-01-01T00:00:00Z"}).status == 200
    assert client.delete(f"{PATH}/nosuch").status == 200
    for body in ({}, {"expiresAt": ""}, {"expiresAt": "bad"}):
        assert client.put(f"{PATH}/nosuch", body).status == 400


def test_a_name_has_a_length(client: AppClient) -> None:
    """A name of 255 characters is stored; a longer one is refused, and the error shows it."""
    assert made(client, tokenName="x" * 255)["tokenName"] == "x" * 255
    answer = client.post(PATH, {"tokenName": "x" * 256, "type": "backend"})
    told = f'"tokenName" length must be less than or equal to 255 characters long. You provided "{"x" * 256}".'
    assert (answer.status, answer.json()["details"]) == (400, [{"message": told}])
