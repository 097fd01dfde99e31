"""Two flag servers in the same state for calls about nouns, from segments to users: ours and the real one.

Tables of admin API calls have a step for each call, which both servers get alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import psycopg
from sqlalchemy import select, update

from flagsvc.server.store.schema import events, strategies
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, USER_SECRET, VIEWER_SECRET, AppClient, app_client
from support.processes import ADMIN_TOKEN, Answer, ask, postgresql, unleash_server

BOSS, WRITER, READER, OWNER, MEMBER, ADMIN = "boss", "writer", "reader", "owner", "member", "admin"
"""An administrator, an editor, a viewer, two viewers that are owner and member of `default`, an admin token."""

STRATEGIES = {
    "used": "00000001-0000-4000-8000-000000000000",
    "archived": "00000002-0000-4000-8000-000000000000",
    "far": "00000003-0000-4000-8000-000000000000",
    "custom": "00000004-0000-4000-8000-000000000000",
}
"""What calls name a strategy by → its id. Their features: web, old (archived), elsewhere (in `other`), app."""


@dataclass(frozen=True)
class IntendedDifference:
    """An intended difference: our status, a part of our message, the real server's status, and the reason."""

    status: int
    message: str
    real: int
    why: str


@dataclass(frozen=True)
class Step:
    """One call. `{name}` in path and body stands for an id: of a strategy, or of the result of an earlier step with `keep`.

    A result without an id, a token, is kept by its secret; of a feature with links, the first link is kept.
    """

    method: str
    path: str
    body: Any = None
    who: str = BOSS
    keep: str = ""
    ours: IntendedDifference | None = None


def get(path: str, who: str = BOSS, **given: Any) -> Step:
    return Step("GET", path, who=who, **given)


def post(path: str, body: Any = None, who: str = BOSS, **given: Any) -> Step:
    return Step("POST", path, body, who, **given)


def put(path: str, body: Any, who: str = BOSS, **given: Any) -> Step:
    return Step("PUT", path, body, who, **given)


def delete(path: str, who: str = BOSS, **given: Any) -> Step:
    return Step("DELETE", path, None, who, **given)


def filled(value: Any, known: Mapping[str, Any]) -> Any:
    """Return a path or a body with the ids. A text that is only a name becomes the id itself."""
    if isinstance(value, dict):
        return {key: filled(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, known) for each in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    if value[1:-1] in known:
        return known[value[1:-1]]
    for name, number in known.items():
        value = value.replace(f"{{{name}}}", str(number))
    return value


FEATURES = (("web", "default", False), ("app", "default", False), ("old", "default", True), ("elsewhere", "other", False))
"""Name, project, whether it is archived."""
USES = (
    ("used", "web", "default", "plan"),
    ("archived", "old", "default", "oldfield"),
    ("far", "elsewhere", "default", "userId"),
    ("custom", "app", "custom", "userId"),
)
"""Strategy, its feature, its type, the context field that it constrains to `gold`."""
PLANS = [{"value": "gold"}, {"value": "silver"}]
OWNER_SECRET, MEMBER_SECRET = "user:secret-of-the-owner", "user:secret-of-the-member"
GIVEN: dict[str, Any] = {
    "users": [
        {"name": "owner", "rootRole": "viewer", "projectRoles": [{"project": "default", "role": "owner"}]},
        {"name": "member", "rootRole": "viewer", "projectRoles": [{"project": "default", "role": "member"}]},
    ],
    "tokens": [
        {"type": "personal", "user": "owner", "secret": OWNER_SECRET},
        {"type": "personal", "user": "member", "secret": MEMBER_SECRET},
    ],
    "projects": [{"id": "other", "name": "Other", "environments": ["development", "production"]}],
    "features": [{"name": name, "project": project, "archived": archived} for name, project, archived in FEATURES],
    "strategies": [
        {
            "feature": feature,
            "environment": "development",
            "name": kind,
            "constraints": [{"contextName": field, "operator": "IN", "values": ["gold"]}],
        }
        for _, feature, kind, field in USES
    ],
    "contextFields": [{"name": "plan", "legalValues": PLANS, "sortOrder": 10}, {"name": "oldfield", "sortOrder": 10}],
    "strategyTypes": [{"name": "custom", "description": "d", "parameters": []}],
    "tagTypes": [{"name": "team", "description": "d", "icon": "i"}],
}
"""The state, as our seed file has it."""

OUR_SECRETS = {
    "boss": USER_SECRET,
    "writer": EDITOR_SECRET,
    "reader": VIEWER_SECRET,
    "owner": OWNER_SECRET,
    "member": MEMBER_SECRET,
    "admin": ADMIN_SECRET,
}
ROLES = {
    "boss": ("Admin",),
    "writer": ("Editor",),
    "reader": ("Viewer",),
    "owner": ("Viewer", "Owner"),
    "member": ("Viewer", "Member"),
}
KEPT_FIELDS = ["environment", "userId", "appName", "currentTime"]
SESSION = "Allows you to constrain on sessionId"
CLEARED = (
    *("feature_tag", "tags", "feature_strategy_segment", "feature_strategies", "feature_environments", "features"),
    *("segments", "tag_types", "events", "addons"),
)


class Recorded(NamedTuple):
    """An event: its type, project and environment."""

    type: str
    project: str | None
    environment: str | None


class OurServer:
    """A server of ours in the state."""

    def __init__(self, client: AppClient) -> None:
        self.client = client
        with client.server.store.writing(None) as tx:
            for name, feature, _, _ in USES:
                tx.db.execute(update(strategies).where(strategies.c.feature == feature).values(id=STRATEGIES[name]))

    def ask(self, step: Step, path: str, body: Any) -> Answer:
        return self.client.ask(step.method, path, body, token=OUR_SECRETS[step.who])

    def recorded(self) -> list[Recorded]:
        with self.client.server.store.reading() as tx:
            query = select(events.c.type, events.c.project, events.c.environment).order_by(events.c.id)
            return [Recorded(*row) for row in tx.db.execute(query)]


@contextmanager
def our_twin(database: str) -> Iterator[OurServer]:
    """Run a server of ours on an empty database, in the state."""
    with app_client(database, given=GIVEN) as client:
        yield OurServer(client)


class RealServer:
    """A running real server, whose state is set by SQL."""

    def __init__(self, url: str, database: psycopg.Connection[Any]) -> None:
        self.url = url.removesuffix("/api")
        self.database = database

    def ask(self, step: Step, path: str, body: Any) -> Answer:
        token = ADMIN_TOKEN if step.who == "admin" else f"user:{step.who}"
        place = self.url + quote(path, safe="/?=&")
        return ask(place, method=step.method, body=body, headers={"Authorization": token})

    def recorded(self) -> list[Recorded]:
        query = "SELECT type, project, environment FROM events ORDER BY id"
        return [Recorded(*row) for row in self.database.execute(query)]

    def _run(self, statement: str, *values: object) -> None:
        self.database.execute(statement.encode(), values)

    def reset(self) -> None:
        """Take on the state."""
        with self.database.transaction():
            self._fill_users()
            for table in CLEARED:
                self._run(f"DELETE FROM {table}")
            self._run("DELETE FROM context_fields WHERE NOT name = ANY(%s)", KEPT_FIELDS)
            self._run("DELETE FROM strategies WHERE built_in = 0")
            self._run("UPDATE strategies SET deprecated = false WHERE name = 'flexibleRollout'")
            for name in ("segments", "addons"):
                self._run(f"ALTER SEQUENCE {name}_id_seq RESTART WITH 1")
            self._run("INSERT INTO projects (id, name) VALUES ('other', 'Other') ON CONFLICT DO NOTHING")
            self._fill()

    def _fill(self) -> None:
        fields: tuple[tuple[Any, ...], ...] = (
            ("sessionId", SESSION, 4, True, []),
            ("plan", None, 10, False, PLANS),
            ("oldfield", None, 10, False, []),
        )
        row = "INSERT INTO context_fields (name, description, sort_order, stickiness, legal_values) VALUES (%s, %s, %s, %s, %s)"
        for *plain, legal in fields:
            self._run(row, *plain, json.dumps(legal))
        row = "INSERT INTO tag_types (name, description, icon, color) VALUES (%s, %s, %s, %s)"
        self._run(row, "simple", "Used to simplify filtering of features", "#", "#FFFFFF")
        self._run(row, "team", "d", "i", None)
        self._run("INSERT INTO strategies (name, description, parameters) VALUES ('custom', 'd', '[]')")
        for name, project, archived in FEATURES:
            moment = "2020-01-01" if archived else None
            self._run("INSERT INTO features (name, project, archived_at) VALUES (%s, %s, %s)", name, project, moment)
        row = (
            "INSERT INTO feature_strategies (id, feature_name, project_name, environment, strategy_name, constraints)"
            " SELECT %s, name, project, 'development', %s, %s FROM features WHERE name = %s"
        )
        for name, feature, kind, field in USES:
            constraint = {"contextName": field, "operator": "IN", "values": ["gold"]}
            self._run(row, STRATEGIES[name], kind, json.dumps([constraint]), feature)

    def _fill_users(self) -> None:
        self._run("DELETE FROM users WHERE id > 0")
        for number, (name, roles) in enumerate(ROLES.items(), 101):
            self._run("INSERT INTO users (id, username, name) VALUES (%s, %s, %s)", number, name, name)
            token = "INSERT INTO personal_access_tokens (secret, description, user_id, expires_at) VALUES (%s, 'd', %s, %s)"
            self._run(token, f"user:{name}", number, "2100-01-01")
            for role in roles:
                granted = "INSERT INTO role_user (role_id, user_id, project) SELECT id, %s, 'default' FROM roles WHERE name = %s"
                self._run(granted, number, role)


@contextmanager
def real_twin() -> Iterator[RealServer]:
    """Run the real server until the block ends."""
    with postgresql() as url, unleash_server(url) as server, psycopg.connect(url, autocommit=True) as database:
        yield RealServer(server.url, database)


def play(twin: OurServer | RealServer, steps: Sequence[Step]) -> list[Answer]:
    """Send the steps to a server one after the other, and return its answers."""
    known: dict[str, Any] = dict(STRATEGIES)
    answers = []
    for step in steps:
        answer = twin.ask(step, filled(step.path, known), filled(step.body, known))
        if step.keep:
            known[step.keep] = identity_of(answer.json())
        answers.append(answer)
    return answers


def identity_of(result: Any) -> Any:
    """Return by what later steps name a result: its id, the secret of an API token, or the id of the first link of a feature."""
    named = result.get("user") or next(iter(result.get("links", ())), result)
    return named["id"] if "id" in named else named["secret"]
