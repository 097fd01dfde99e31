"""A seed is written into an empty database as a whole or not at all.

The first start creates one administrator and one token, which it shows once.
The initial tokens: created while the database has no API token, and then never again (decision 0003).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema_rs
import pytest
from sqlalchemy import delete, func, select, text

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import ConfigurationError
from flagsvc.http.shapes import json_schema
from flagsvc.server.start import create_initial_tokens, find_wanted_tokens, initialize
from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.keyring import LINK, Keyring, hash_secret
from flagsvc.server.store.resources.maintenance import is_in_maintenance
from flagsvc.server.store.schema import events, tokens, users
from flagsvc.server.store.seed.apply import apply_seed
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.seed.keys import SECTIONS
from flagsvc.server.store.seed.once import FirstSecrets, create_first_token
from flagsvc.server.store.store import Store
from flagsvc.settings.server import ServerOptions
from flagsvc.testing import RecordingLog

WHOLE: dict[str, Any] = {
    "environments": [{"name": "staging", "type": "preproduction"}, {"name": "production", "type": "production", "protected": True}],
    "projects": [
        {
            "id": "shop",
            "name": "Shop",
            "environments": ["staging"],
            "featureLimit": 5,
            "featureNaming": {"pattern": "[a-z]+", "example": "abc", "description": "lower case"},
        },
        {"id": "old", "archived": True},
    ],
    "contextFields": [
        {"name": "country", "legalValues": [{"value": "no"}], "project": "shop", "stickiness": True, "sortOrder": 7},
        {"name": "userId", "description": "Ours"},
    ],
    "segments": [{"name": "vip", "constraints": [{"contextName": "userId", "operator": "IN", "values": ["1"]}], "project": "shop"}],
    "strategyTypes": [{"name": "mine", "deprecated": True, "parameters": [{"name": "p", "type": "string"}]}],
    "tagTypes": [{"name": "team", "icon": "T"}],
    "features": [
        {"name": "b", "project": "shop", "enabled": ["staging"], "description": "Second letter", "stale": True},
        {"name": "a", "type": "kill-switch", "impressionData": True},
        {"name": "gone", "archived": True},
    ],
    "strategies": [
        {"feature": "b", "environment": "staging", "name": "flexibleRollout", "parameters": {"rollout": "50"}, "segments": ["vip"]},
        {"feature": "b", "environment": "staging", "name": "mine", "title": "T", "disabled": True},
        {"feature": "a", "environment": "production", "name": "default", "sortOrder": 3.5},
    ],
    "users": [
        {"name": "u", "rootRole": "editor", "email": "u@example.org", "projectRoles": [{"project": "shop", "role": "owner"}]}
    ],
    "tokens": [
        {"secret": "user:u-secret", "type": "personal", "user": "u", "expiresAt": "2031-01-01T00:00:00+01:00"},
        {"secret": "shop:staging.some-secret", "type": "backend", "name": "checkout"},
    ],
    "maintenance": True,
    "changeRequests": [{"project": "shop", "environment": "staging"}],
}


def apply_seed_once(store: Store, data: dict[str, Any]) -> None:
    """Write a seed."""
    with store.writing(None) as tx:
        apply_seed(tx, parse_seed(data))


def rows(store: Store, name: str, *columns: str, order: str = "") -> list[tuple[Any, ...]]:
    """Return some columns of a table, in the order of one of them."""
    table = schema.METADATA.tables[name]
    with store.reading() as tx:
        query = select(*(table.c[column] for column in columns)).order_by(table.c[order or columns[0]])
        return [tuple(row) for row in tx.db.execute(query)]


def test_the_example_uses_every_section() -> None:
    """The seed of these tests uses every section."""
    assert set(WHOLE) == {*SECTIONS, "maintenance"}


def test_the_schema_of_every_section_takes_the_example() -> None:
    """Each section's shape is also a JSON Schema, and the example is valid under it."""
    for name, shape in SECTIONS.items():
        validator = jsonschema_rs.validator_for(json_schema(shape))
        assert all(validator.is_valid(entry) for entry in WHOLE[name])
        assert not validator.is_valid({"nosuch": 1})


def test_environments_and_projects(store: Store) -> None:
    """The file adds to the built-in objects or replaces them; a project without environments is in all."""
    apply_seed_once(store, WHOLE)
    assert rows(store, "environments", "name", "type", "protected") == [
        ("development", "development", False),
        ("production", "production", True),
        ("staging", "preproduction", False),
    ]
    limits = ("id", "name", "feature_limit", "naming_pattern", "naming_example", "naming_description")
    assert rows(store, "projects", *limits) == [
        ("default", "Default", None, None, None, None),
        ("old", "old", None, None, None, None),
        ("shop", "Shop", 5, "[a-z]+", "abc", "lower case"),
    ]
    assert [moment is not None for _, moment in rows(store, "projects", "id", "archived_at")] == [False, True, False]
    everywhere = ["development", "production", "staging"]
    assert sorted(rows(store, "project_environments", "project", "environment")) == [
        *(("default", name) for name in everywhere[:2]),
        *(("old", name) for name in everywhere),
        ("shop", "staging"),
    ]


def test_what_features_are_described_with(store: Store) -> None:
    """Context fields, segments, strategy types and tag types are written; those of the file replace built-in ones."""
    apply_seed_once(store, WHOLE)
    fields = {
        name: rest for name, *rest in rows(store, "context_fields", "name", "description", "legal_values", "project", "sort_order")
    }
    assert fields["country"] == [None, [{"value": "no"}], "shop", 7]
    assert fields["userId"][0] == "Ours" and set(fields) >= {"appName", "sessionId"}
    types = {name: rest for name, *rest in rows(store, "strategy_types", "name", "built_in", "deprecated", "parameters")}
    assert types["mine"] == [False, True, [{"name": "p", "type": "string"}]] and types["default"][0] is True
    assert rows(store, "tag_types", "name", "icon") == [("simple", "#"), ("team", "T")]
    assert rows(store, "segments", "name", "project") == [("vip", "shop")]


def test_features_are_in_every_environment_of_their_project(store: Store) -> None:
    """A feature is off and without variants unless the file says otherwise; the order of the file is kept."""
    apply_seed_once(store, WHOLE)
    assert [name for name, _ in rows(store, "features", "name", "position", order="position")] == ["b", "a", "gone"]
    details = rows(store, "features", "name", "project", "type", "description", "stale", "impression_data")
    assert details == [
        ("a", "default", "kill-switch", None, False, True),
        ("b", "shop", "release", "Second letter", True, False),
        ("gone", "default", "release", None, False, False),
    ]
    assert [bool(moment) for _, moment in rows(store, "features", "name", "archived_at")] == [False, False, True]
    assert sorted(rows(store, "feature_environments", "feature", "environment", "enabled", "variants")) == [
        ("a", "development", False, []),
        ("a", "production", False, []),
        ("b", "staging", True, []),
        ("gone", "development", False, []),
        ("gone", "production", False, []),
    ]


def test_strategies_keep_their_order_and_segments(store: Store) -> None:
    """Strategies come in the order of the file unless it numbers them, and use segments by name."""
    apply_seed_once(store, WHOLE)
    assert sorted(rows(store, "strategies", "feature", "environment", "name", "sort_order", "disabled")) == [
        ("a", "production", "default", 3.5, False),
        ("b", "staging", "flexibleRollout", 0, False),
        ("b", "staging", "mine", 1, True),
    ]
    first = next(key for key, name in rows(store, "strategies", "id", "name") if name == "flexibleRollout")
    assert [strategy for strategy, _ in rows(store, "strategy_segments", "strategy_id", "segment_id")] == [first]


def test_people_and_settings(store: Store) -> None:
    """Users have their roles, tokens their scope and expiry; maintenance mode is on if the file says so."""
    apply_seed_once(store, WHOLE)
    assert rows(store, "users", "username", "email", "root_role") == [("u", "u@example.org", "editor")]
    assert rows(store, "project_roles", "project", "role") == [("shop", "owner")]
    assert sorted(rows(store, "tokens", "kind", "name", "environment", "projects", "hint")) == [
        ("backend", "checkout", "staging", ["shop"], "shop:staging."),
        ("personal", "u", None, ["*"], "user:"),
    ]
    ends = [moment for (moment,) in rows(store, "tokens", "expires_at") if moment]
    assert [moment.isoformat() for moment in ends] == ["2030-12-31T23:00:00+00:00"]
    with store.reading() as tx:
        assert is_in_maintenance(tx)
        value = select(schema.state.c.value).where(schema.state.c.key == "changeRequests")
        assert tx.db.execute(value).scalar_one() == WHOLE["changeRequests"]


def test_no_secret_is_stored(store: Store, database_url: str) -> None:
    """A secret of the file is in no table."""
    apply_seed_once(store, WHOLE)
    with store.reading() as tx:
        everything = [str(row) for table in schema.METADATA.tables.values() for row in tx.db.execute(select(table))]
    assert len(everything) > 30
    assert not any("u-secret" in row or "some-secret" in row for row in everything)


def test_a_large_seed_is_written(store: Store) -> None:
    """Thousands of features with strategies stay within both databases' limits."""
    names = [f"f{number}" for number in range(3000)]
    strategies = [{"feature": name, "environment": "production", "name": "default"} for name in names]
    apply_seed_once(store, {"features": [{"name": name} for name in names], "strategies": strategies})
    with store.reading() as tx:
        tables = (schema.features, schema.strategies, schema.feature_environments)
        counts = [tx.db.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]
    assert counts == [3000, 3000, 6000]
    with store.writing(None) as tx:
        assert list(tx.positions(schema.features)) == [3001]


def holder(store: Store, secret: str | None) -> Actor:
    """Return the holder of a secret."""
    keyring = Keyring(store, SystemClock(), RecordingLog())
    keyring.load()
    found = keyring.find(secret or "")
    assert isinstance(found, Actor)
    return found


def names(store: Store) -> list[str | None]:
    """Return the names of all users."""
    with store.reading() as tx:
        return list(tx.db.execute(select(users.c.username).order_by(users.c.id)).scalars())


def token_of(made: FirstSecrets | None) -> str | None:
    """Return the token of a first start."""
    return None if made is None else made.token


def test_the_first_start_makes_an_administrator(store: Store) -> None:
    """The token belongs to a user with all permissions; the second start makes nothing."""
    made = create_first_token(store)
    found = holder(store, token_of(made))
    assert (found.name, found.is_user, found.root_role) == ("admin", True, "admin")
    assert create_first_token(store) is None
    with store.reading() as tx:
        row, link = tx.db.execute(select(tokens).order_by(tokens.c.id)).all()
    assert made is not None and row.expires_at is None and link.kind == LINK
    assert not [value for value in (*row, *link) if made.token in str(value) or made.link in str(value)]


def test_an_administrator_of_the_seed_gets_the_token(store: Store) -> None:
    """If the seed has an administrator, no second one is made."""
    apply_seed_once(store, {"users": [{"name": "somebody"}, {"name": "boss", "rootRole": "admin"}]})
    assert holder(store, token_of(create_first_token(store))).name == "boss"
    assert names(store) == ["somebody", "boss"]


def test_a_taken_name_is_no_trouble(store: Store) -> None:
    """A viewer who is called admin stays a viewer."""
    apply_seed_once(store, {"users": [{"name": "admin"}]})
    assert holder(store, token_of(create_first_token(store))).name == "admin-2"
    assert names(store) == ["admin", "admin-2"]


def test_where_there_is_a_token_nothing_is_made(store: Store) -> None:
    """If the seed has a token of any kind, no first token is made."""
    apply_seed_once(store, {"tokens": [{"secret": "*:*.x", "type": "admin"}]})
    revision = store.revision()
    assert create_first_token(store) is None
    assert names(store) == [] and store.revision() == revision


def test_servers_that_start_at_once_make_one_token(store: Store, database_url: str) -> None:
    """Of several servers on one new database, only one creates a token."""
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: create_first_token(store), range(4)))
    assert sum(secret is not None for secret in made) == 1
    assert names(store) == ["admin"]


def test_a_start_without_tokens_makes_one(store: Store) -> None:
    """When every token is deleted, as the how-to describes, a start makes one for the existing administrator."""
    lost = create_first_token(store)
    with store.recording() as tx:
        tx.db.execute(text("DELETE FROM tokens"))
    secret = token_of(create_first_token(store))
    assert secret not in (None, token_of(lost))
    assert holder(store, secret).root_role == "admin"
    assert names(store) == ["admin"]


ADMIN, BACKEND, FRONTEND = "*:*.hidden1", "default:development.hidden.2", "*:production.hidden3"
OPTIONS = ServerOptions(init_admin_tokens=ADMIN, init_backend_tokens=f"{BACKEND}, {FRONTEND}", init_frontend_tokens=(FRONTEND,))


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
