"""Permissions of actors, and the identities that secrets stand for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.actors import ADMIN_TOKEN_ID, PROJECT_ROLES, ROOT_ROLES, Actor, ClientToken
from flagsvc.server.store.keyring import Keyring, hash_secret
from flagsvc.server.store.schema import tokens, users
from flagsvc.server.store.store import Store
from flagsvc.testing import FakeClock, RecordingLog
from support.planting import plant

NOW = datetime(2030, 3, 17, tzinfo=UTC)
GIVEN: dict[str, Any] = {
    "projects": [{"id": "other"}],
    "users": [
        {"name": "reader", "projectRoles": [{"project": "other", "role": "member"}]},
        {"name": "writer", "rootRole": "editor", "email": "writer@example.org"},
        {"name": "boss", "rootRole": "admin"},
    ],
    "tokens": [
        {"secret": "user:reader-secret", "type": "personal", "user": "reader"},
        {"secret": "user:writer-secret", "type": "personal", "user": "writer", "expiresAt": "2031-01-01T00:00:00Z"},
        {"secret": "*:*.admin-secret", "type": "admin", "name": "root"},
        {"secret": "other:production.backend-secret", "type": "backend"},
        {"secret": "[]:development.frontend-secret", "type": "frontend", "projects": ["other", "default"]},
    ],
}


@pytest.fixture
def store(store: Store) -> Store:
    """Give a database with users and tokens."""
    with store.writing(None) as tx:
        plant(tx, GIVEN)
    return store


@pytest.fixture
def keyring(store: Store, clock: FakeClock) -> Keyring:
    """Give a keyring that has read the database."""
    keyring = Keyring(store, clock, RecordingLog())
    keyring.load()
    return keyring


def actor(role: str, **projects: str) -> Actor:
    """Return a user with a root role, and a role in each project named."""
    return Actor(1, "somebody", root_role=role, project_roles={name: (each,) for name, each in projects.items()})


MAY = [
    # who, permission, project, environment, whether
    ("admin", {}, "CREATE_FEATURE", "nosuch", None, True),
    ("admin", {}, "ADMIN", None, None, True),
    ("admin", {}, "DELETE_FEATURE_STRATEGY", "nosuch", "nosuch", True),
    ("editor", {}, "ADMIN", None, None, False),
    ("editor", {}, "CREATE_CONTEXT_FIELD", None, None, True),
    ("editor", {}, "CREATE_CONTEXT_FIELD", "nosuch", None, True),
    ("editor", {}, "CREATE_TAG_TYPE", "nosuch", "nosuch", True),
    ("editor", {}, "CREATE_FEATURE", "default", None, True),
    ("editor", {}, "UPDATE_FEATURE", "default", "production", True),
    ("editor", {}, "CREATE_FEATURE", "other", None, False),
    ("editor", {}, "CREATE_FEATURE", None, None, False),
    ("editor", {}, "CREATE_FEATURE_STRATEGY", "default", "production", True),
    ("editor", {}, "CREATE_FEATURE_STRATEGY", "default", "nosuch", False),
    ("editor", {}, "CREATE_FEATURE_STRATEGY", "default", None, False),
    ("editor", {}, "CREATE_FEATURE_STRATEGY", "other", "production", False),
    ("editor", {"other": "owner"}, "CREATE_FEATURE_STRATEGY", "other", "production", True),
    ("editor", {}, "CREATE_CLIENT_API_TOKEN", None, None, False),
    ("viewer", {}, "UPDATE_FEATURE", "default", None, False),
    ("viewer", {}, "READ_CLIENT_API_TOKEN", None, None, False),
    ("viewer", {"default": "member"}, "UPDATE_FEATURE", "default", None, True),
    ("viewer", {"default": "member"}, "UPDATE_FEATURE_ENVIRONMENT_VARIANTS", "default", "development", True),
    ("viewer", {"default": "member"}, "CREATE_CONTEXT_FIELD", "default", None, False),
    ("viewer", {"default": "member"}, "CREATE_TAG_TYPE", "default", None, False),
    ("viewer", {"default": "member"}, "UPDATE_PROJECT", "default", None, False),
    ("viewer", {"default": "member"}, "MOVE_FEATURE_TOGGLE", "default", None, False),
    ("viewer", {"default": "owner"}, "UPDATE_PROJECT", "default", None, True),
    ("viewer", {"default": "owner"}, "UPDATE_PROJECT_SEGMENT", "default", None, True),
    ("viewer", {"default": "owner"}, "CREATE_FEATURE", "other", None, False),
    ("viewer", {"default": "owner"}, "CREATE_SEGMENT", "default", None, False),
]


@pytest.mark.parametrize(("role", "projects", "permission", "project", "environment", "expected"), MAY)
def test_what_a_role_permits(
    role: str, projects: dict[str, str], permission: str, project: str | None, environment: str | None, expected: bool
) -> None:
    """A permission holds in the whole server, in its project, or in its project's environments, as on the real server."""
    assert actor(role, **projects).may(permission, project, environment) is expected


def test_an_unknown_permission_is_nobodys_but_an_admins() -> None:
    """A permission that no role has is refused to everybody except admins."""
    assert not any(actor(role, default="owner").may("NO_SUCH", "default") for role in ("editor", "viewer"))


def test_what_is_permitted_in_an_environment_is_named_once() -> None:
    """A permission is named for the server, for a project or for an environment, never for two of them."""
    roles = [*ROOT_ROLES.values(), *PROJECT_ROLES.values()]
    root, project, environment = (frozenset().union(*(role[part] for role in roles)) for part in range(3))
    assert not root & project and not project & environment and not root & environment


def test_secrets_stand_for_whom_they_were_made(keyring: Keyring, store: Store) -> None:
    """A personal token stands for its user, an admin token for an actor that is no user, other tokens for clients.

    Only a complete, known secret authenticates; a hash from the database does not.
    """
    reader = keyring.find("user:reader-secret")
    assert isinstance(reader, Actor) and reader.is_user
    assert (reader.name, reader.root_role, dict(reader.project_roles)) == ("reader", "viewer", {"other": ("member",)})
    writer = keyring.find("user:writer-secret")
    assert isinstance(writer, Actor) and writer.name == "writer@example.org" and writer.username == "writer"
    admin = keyring.find("*:*.admin-secret")
    assert isinstance(admin, Actor) and not admin.is_user and (admin.id, admin.name) == (ADMIN_TOKEN_ID, "root")
    backend = keyring.find("other:production.backend-secret")
    assert isinstance(backend, ClientToken)
    assert (backend.kind, backend.environment, backend.projects) == ("backend", "production", ("other",))
    assert backend.covers("other") and not backend.covers("default")
    frontend = keyring.find("[]:development.frontend-secret")
    assert isinstance(frontend, ClientToken) and frontend.kind == "frontend"
    assert frontend.covers("other") and frontend.covers("default") and not frontend.covers("third")
    for secret in ("", "nosuch", "*:*.admin-secre", "*:*.ADMIN-SECRET", " *:*.admin-secret", "\ud800", "ü" * 9):
        assert keyring.find(secret) is None
    with store.reading() as tx:
        rows = tx.db.execute(select(tokens)).all()
    assert len(rows) == 5
    assert hash_secret("*:*.admin-secret") in {row.hash for row in rows}
    assert all(keyring.find(str(value)) is None for row in rows for value in row)


def test_an_expired_token_opens_nothing(keyring: Keyring, clock: FakeClock, store: Store) -> None:
    """A token is invalid from its expiry on."""
    ends = datetime(2031, 1, 1, tzinfo=UTC).timestamp()
    for moment, known in ((ends - 1, True), (ends, False), (ends + 1, False)):
        later = Keyring(store, FakeClock(moment), RecordingLog())
        later.load()
        assert (later.find("user:writer-secret") is not None) is known


def test_the_old_keys_serve_while_the_database_is_away(keyring: Keyring, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keyring that cannot be reloaded keeps its entries and raises."""

    def reading() -> object:
        raise DatabaseError("away")

    monkeypatch.setattr(store, "reading", reading)
    with pytest.raises(DatabaseError):
        keyring.load()
    assert keyring.find("*:*.admin-secret") is not None


def test_an_older_revision_is_not_read_again(keyring: Keyring, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A revision that is already known causes no read."""
    revision = store.revision()
    monkeypatch.setattr(store, "reading", lambda: pytest.fail("read again"))
    keyring.load(revision)


def test_when_tokens_were_seen_is_stored_now_and_then(keyring: Keyring, store: Store) -> None:
    """Use of a token writes nothing. A later call stores the time once, for the token and its user, without a new revision."""
    before = store.revision()
    assert keyring.save_seen_times() == 0
    keyring.find("user:reader-secret")
    keyring.find("user:reader-secret")
    keyring.find("other:production.backend-secret")
    keyring.find("nosuch")
    assert keyring.save_seen_times() == 2
    assert keyring.save_seen_times() == 0
    with store.reading() as tx:
        seen = tx.db.execute(select(tokens.c.hint, tokens.c.seen_at).where(tokens.c.seen_at.is_not(None))).all()
        people = tx.db.execute(select(users.c.username, users.c.seen_at).where(users.c.seen_at.is_not(None))).all()
    assert sorted(seen) == [("other:production.", NOW), ("user:", NOW)]
    assert people == [("reader", NOW)]
    assert store.revision() == before


def test_what_could_not_be_stored_is_stored_later(keyring: Keyring, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage of the database only delays storing the last use of tokens."""

    def recording() -> object:
        raise DatabaseError("away")

    keyring.find("user:reader-secret")
    with monkeypatch.context() as patch:
        patch.setattr(store, "recording", recording)
        assert keyring.save_seen_times() == 0
    assert keyring.save_seen_times() == 1


def test_secrets_are_in_no_text_of_keys(keyring: Keyring) -> None:
    """The text of a keyring's objects holds no secret, so it can be logged."""
    found = [keyring.find(str(each["secret"])) for each in GIVEN["tokens"]]
    assert None not in found
    assert "secret" not in repr(found) + repr(vars(keyring))
