"""The initial tokens: created while the database has no API token, and then never again (decision 0065)."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, select

from flagsvc.core.errors import ConfigurationError
from flagsvc.server.start import initialize
from flagsvc.server.store.first_start import create_first_token
from flagsvc.server.store.initial_tokens import create_initial_tokens, find_wanted_tokens
from flagsvc.server.store.keyring import hash_secret
from flagsvc.server.store.schema import events, tokens
from flagsvc.server.store.seed.apply import parse_seed
from flagsvc.server.store.store import Store
from flagsvc.settings.server import ServerOptions
from flagsvc.testing import RecordingLog

ADMIN, BACKEND, FRONTEND = "*:*.hidden1", "default:development.hidden.2", "*:production.hidden3"
OPTIONS = ServerOptions(
    init_admin_tokens=ADMIN, init_backend_tokens=f"{BACKEND}, {FRONTEND}", init_frontend_tokens=(FRONTEND,)
)


def api_tokens(store: Store) -> dict[str, tuple[object, ...]]:
    """Return the API tokens by the hash of their secret."""
    with store.reading() as tx:
        rows = tx.db.execute(select(tokens).where(tokens.c.user_id.is_(None))).all()
    return {row.hash: (row.kind, row.environment, row.projects) for row in rows}


def create(store: Store, options: ServerOptions = OPTIONS) -> int:
    """Create what is missing."""
    return create_initial_tokens(store, find_wanted_tokens(store, options))


def test_tokens_are_created_once(store: Store) -> None:
    """Each has the kind of its option, and the project and the environment that it names. The next start creates none."""
    assert create(store) == 3
    assert api_tokens(store) == {
        hash_secret(ADMIN): ("admin", None, ["*"]),
        hash_secret(BACKEND): ("backend", "development", ["default"]),
        hash_secret(FRONTEND): ("frontend", "production", ["*"]),
    }
    assert create(store, ServerOptions(init_admin_tokens="*:*.other")) == 0 and len(api_tokens(store)) == 3
    with store.reading() as tx:
        found = tx.db.execute(select(events.c.type, events.c.data).where(events.c.type == "api-token-created")).all()
    assert len(found) == 3 and "hidden" not in str(found)


def test_a_user_and_personal_tokens_do_not_count(store: Store) -> None:
    """As on a real server, a database without API tokens gets them, also if it was started before."""
    assert create_first_token(store) is not None
    assert create(store) == 3
    with store.writing(None) as tx:
        tx.db.execute(delete(tokens).where(tokens.c.user_id.is_(None)))
    assert create(store) == 3


def test_another_server_comes_first(store: Store) -> None:
    """Of several servers that start at the same time, one creates the tokens."""
    wanted = find_wanted_tokens(store, OPTIONS)
    assert create(store) == 3
    assert create_initial_tokens(store, wanted) == 0


def test_an_unknown_name_stops_the_start(store: Store) -> None:
    """A token of an unknown environment or project is a problem that names it and no secret. No token is created."""
    options = ServerOptions(init_backend_tokens="none:nowhere.hidden, *:development.hidden, none:nowhere.more")
    with pytest.raises(ConfigurationError) as caught:
        initialize(store, options, "", None, RecordingLog())
    hint = "create it with a seed (FLAGSVC_SEED), or correct the token"
    assert caught.value.problems == (
        f"initial tokens: no environment `nowhere`; {hint}",
        f"initial tokens: no project `none`; {hint}",
    )
    assert not api_tokens(store) and create_first_token(store) is not None


def test_a_first_start_has_both(store: Store) -> None:
    """Beside the initial tokens a first start creates the administrator's, because no user has one of the others."""
    ready, first, initial = initialize(store, OPTIONS, "", None, RecordingLog())
    assert ready.event.startswith("flagsvc ready") and "FLAGSVC_ADMIN_TOKEN=user:" in str(first.on_terminal)
    assert (initial.event, initial.fields) == ("flagsvc initial tokens: created 3", {"tokens": 3})
    assert len(initialize(store, OPTIONS, "", None, RecordingLog())) == 1


def test_a_seed_comes_first(store: Store) -> None:
    """A token may be of an environment of the seed. The API tokens of a seed are in place of the initial ones."""
    seed = parse_seed({"environments": [{"name": "nowhere"}], "tokens": [{"type": "admin", "secret": "*:*.seeded"}]})
    initialize(store, ServerOptions(init_backend_tokens="*:nowhere.x"), "", seed, RecordingLog())
    assert list(api_tokens(store)) == [hash_secret("*:*.seeded")]
    with store.writing(None) as tx:
        tx.db.execute(delete(tokens).where(tokens.c.user_id.is_(None)))
    assert create(store, ServerOptions(init_backend_tokens="*:nowhere.x")) == 1
