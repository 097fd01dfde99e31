"""POST /edge/validate on the wire: which of some texts are tokens, and what they open."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from flagsvc.core.errors import DatabaseError
from flagsvc.testing import FakeClock
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, FRONTEND_SECRET, USER_SECRET, AppClient

pytestmark = pytest.mark.one_database

NOW = datetime(2030, 3, 17, tzinfo=UTC)
TWO_PROJECTS = "[]:production.of-two-projects"
FOR_A_WHILE = "other:production.for-a-while"
GIVEN = {
    "projects": [{"id": "other"}],
    "tokens": [
        {"type": "backend", "secret": TWO_PROJECTS, "projects": ["default", "other"], "environment": "production"},
        {"type": "frontend", "secret": FOR_A_WHILE, "expiresAt": "2031-01-01T00:00:00Z"},
    ],
}
KNOWN = [
    {"token": BACKEND_SECRET, "type": "client", "projects": ["*"], "environment": "development"},
    {"token": FRONTEND_SECRET, "type": "frontend", "projects": ["*"], "environment": "development"},
    {"token": ADMIN_SECRET, "type": "admin", "projects": ["*"], "environment": "*"},
    {"token": TWO_PROJECTS, "type": "client", "projects": ["default", "other"], "environment": "production"},
    {"token": FOR_A_WHILE, "type": "frontend", "projects": ["other"], "environment": "production"},
]
SECRETS = [each["token"] for each in KNOWN]


def ask(client: AppClient, *tokens: Any) -> Any:
    """Return what is known of some tokens."""
    answer = client.post("/edge/validate", {"tokens": tokens}, token=None)
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store"), answer.body
    return answer.json()["tokens"]


def test_known_tokens_are_described(client: AppClient) -> None:
    """Each has its type, projects and environment, in the order asked and once. Unknown tokens and those of users are left out."""
    unknown = ["", "nobody", BACKEND_SECRET + "x", BACKEND_SECRET[:-1], USER_SECRET, "user:nobody", "\ud800"]
    assert ask(client, *unknown, *SECRETS, SECRETS[0]) == KNOWN
    assert ask(client) == []


def test_an_expired_token_is_unknown(client: AppClient, clock: FakeClock) -> None:
    """It is left out as soon as it has expired."""
    assert len(ask(client, FOR_A_WHILE)) == 1
    asyncio.run(clock.advance(3 * 365 * 24 * 3600))
    assert ask(client, FOR_A_WHILE) == []


def test_tokens_that_come_and_go(client: AppClient) -> None:
    """A new token is known at once, and a deleted one is not."""
    made = client.post("/api/admin/api-tokens", {"tokenName": "web", "type": "frontend"}).json()["secret"]
    assert [each["type"] for each in ask(client, made)] == ["frontend"]
    assert client.delete(f"/api/admin/api-tokens/{made}").status == 200
    assert ask(client, made) == []


def test_the_database_is_not_needed(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the database is away, the answer comes from memory."""

    def away(*_: object) -> object:
        raise DatabaseError("away")

    for method in ("reading", "writing", "recording"):
        monkeypatch.setattr(client.server.store, method, away)
    assert ask(client, *SECRETS) == KNOWN
    assert client.get("/api/admin/maintenance").status == 500, "the database is away indeed"


def test_a_question_counts_as_use(client: AppClient) -> None:
    """A proxy asks for callers that this server never sees, so the token is shown as seen."""
    assert client.server.keyring.save_seen_times() == 0
    ask(client, FRONTEND_SECRET, "nobody")
    assert client.server.keyring.save_seen_times() == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "The `/body/tokens` property is required. It was not present on the data you sent."),
        ({"tokens": "x"}, 'The `/body/tokens` property must be array. You sent "x".'),
        ({"tokens": [{}]}, "The `/body/tokens/0` property must be string. You sent {}."),
        ({"tokens": ["a\0"]}, "The `/body/tokens/0` property must not contain a NUL character."),
    ],
)
def test_questions_that_are_none(client: AppClient, body: Any, message: str) -> None:
    """A wrong body is a 400 that says where."""
    answer = client.post("/edge/validate", body, token=None)
    assert (answer.status, answer.json()["details"][0]["message"]) == (400, message)


def test_too_many_tokens(client: AppClient) -> None:
    """A question has at most 100 texts, and a body without a token at most 100 kB."""
    assert ask(client, *(str(number) for number in range(99)), BACKEND_SECRET) == KNOWN[:1]
    many = client.post("/edge/validate", {"tokens": ["x"] * 101}, token=None)
    assert many.status == 400 and "must NOT have more than 100 items" in many.json()["details"][0]["message"]
    assert client.post("/edge/validate", {"tokens": ["x" * 102_400]}, token=None).status == 413
