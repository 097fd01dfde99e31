"""Backups for tests: a database with something in every table, what is in a backup, and backups with other lines."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from random import Random
from typing import Any

from sqlalchemy import insert, select

from flagsvc.core.clock import SystemClock
from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.backup.restoring import Restored, check_backup, restore_backup
from flagsvc.server.store.backup.tables import write_backup
from flagsvc.server.store.documents import DocumentQuery, Documents
from flagsvc.server.store.resources import sessions
from flagsvc.server.store.seed.once import create_first_token
from flagsvc.server.store.store import Store, Tx
from flagsvc.server.webhooks.addons import parameters_problem
from flagsvc.testing import RecordingLog
from support.planting import plant

WHO = Actor(-1, "tester (command line)", root_role="admin")
SECRET = "user:the-s3cret-of-ada"
RICH: dict[str, Any] = {
    "environments": [{"name": "staging", "protected": True}],
    "projects": [{"id": "shop", "description": "ünïcödé 💡", "featureNaming": {"pattern": "[a-z-]+"}}],
    "contextFields": [{"name": "plan", "legalValues": [{"value": "free"}, {"value": "team"}], "project": "shop"}],
    "segments": [{"name": "beta", "constraints": [{"contextName": "plan", "operator": "IN", "values": ["team"]}]}],
    "strategyTypes": [{"name": "opening-hours", "parameters": [{"name": "hours", "type": "string"}]}],
    "tagTypes": [{"name": "squad", "icon": "#"}],
    "users": [{"name": "ada", "rootRole": "editor", "projectRoles": [{"project": "shop", "role": "owner"}]}],
    "tokens": [
        {"type": "personal", "user": "ada", "secret": SECRET},
        {"type": "backend", "secret": "*:production.of-a-proxy", "expiresAt": "2099-01-01T00:00:00Z"},
    ],
    "features": [
        {"name": "cart", "project": "shop", "enabled": ["production", "staging"]},
        {"name": "Cart-2", "description": "\u2028 and <b>"},
        {"name": "old", "archived": True},
    ],
    "strategies": [
        {"feature": "cart", "environment": "production", "name": "flexibleRollout", "parameters": {"rollout": "25"}},
        {"feature": "cart", "environment": "production", "name": "default", "segments": ["beta"], "sortOrder": 1.5},
    ],
    "changeRequests": [{"project": "shop", "environment": "staging"}],
    "maintenance": True,
}
"""A seed that writes into most tables."""
THEN = datetime(2025, 6, 15, 15, 6, 40, 123456, UTC)
HOUR = {"feature": "cart", "app_name": "web", "environment": "production", "hour": THEN.replace(minute=0)}
OTHERS: dict[str, list[dict[str, Any]]] = {
    "tags": [{"type": "squad", "value": "web", "created_at": THEN}],
    "feature_tags": [{"feature": "cart", "type": "squad", "value": "web", "created_by_id": 1, "created_at": THEN}],
    "dependencies": [{"child": "Cart-2", "parent": "cart", "enabled": True, "variants": ["a"]}],
    "links": [{"id": "1", "feature": "cart", "url": "https://example.com", "title": None, "position": 1}],
    "favorites": [{"user_id": 1, "feature": "cart", "created_at": THEN}],
    "applications": [{"app_name": "web", "created_at": THEN, "strategies": ["default"], "announced": True}],
    "application_instances": [
        {"app_name": "web", "environment": "production", "instance_id": "1", "seen_at": THEN, "created_at": THEN}
    ],
    "application_usage": [{"app_name": "web", "project": "*", "environment": "production"}],
    "identities": [{"issuer": "https://id.example", "subject": "a-1", "user_id": 1, "created_at": THEN, "roles": ["admin"]}],
    "used_answers": [{"hash": "0" * 64, "expires_at": THEN}],
    "addons": [
        {"provider": "webhook", "description": "d", "enabled": True, "parameters": {"url": "http://127.0.0.1:1/"}}
        | {"events": ["feature-created"], "projects": [], "environments": [], "created_at": THEN, "updated_at": THEN}
        | {"changed_by_id": 1}
    ],
    "deliveries": [{"uid": "u", "addon_id": 1, "event_id": 1, "state": "failed", "created_at": THEN, "due_at": THEN, "error": "e"}],
    "usage": [HOUR | {"yes": 2**40, "no": 1}],
    "usage_variants": [HOUR | {"variant": "a", "count": 7}],
}
"""Rows of the tables that a seed does not write."""
TEXTS = "aZ_0 -é💡\u2028\"\\'\n\t%"
ENVIRONMENTS = ("development", "production", "staging")


def fill(store: Store, random: Random | None = None) -> None:
    """Put something into every table, also what a backup leaves out; with `random`, events that hold any JSON, too."""
    create_first_token(store)
    with store.writing(WHO) as tx:
        plant(tx, RICH)
        for name, rows in OTHERS.items():
            tx.db.execute(insert(schema.METADATA.tables[name]), rows)
        tx.record_event("feature-created", project="shop", feature="cart", data={"name": "cart"})
        sign_in(tx)
        for _ in range(20 if random else 0):
            assert random
            tx.db.execute(insert(schema.events), [any_event(random)])


def sign_in(tx: Tx) -> None:
    """Open a session of a user, and make a link that signs in."""
    user = tx.db.execute(select(schema.users.c.id).where(schema.users.c.username == "ada")).scalar_one()
    sessions.sign_in(tx, SECRET)
    sessions.create_link(tx, user)


def any_event(random: Random) -> dict[str, Any]:
    """Return an event with any texts, times and JSON."""
    sides = {name: {"value": any_json(random, 3)} for name in ("data", "before")}
    moment = THEN + timedelta(microseconds=random.randrange(10**15))
    return {"type": any_text(random), "created_at": moment, "created_by": any_text(random), "tags": None} | sides


def any_text(random: Random) -> str:
    """Return a text that both kinds of databases store."""
    return "".join(random.choices(TEXTS, k=random.randrange(12)))


def any_json(random: Random, depth: int) -> Any:
    kinds = (any_text(random), random.randrange(-(2**60), 2**60), random.random() * 1e6, True, None)
    if not depth or random.random() < 0.3:
        return random.choice(kinds)
    several = [any_json(random, depth - 1) for _ in range(random.randrange(4))]
    return several if random.random() < 0.5 else {f"{any_text(random)}{place}": each for place, each in enumerate(several)}


def backup_of(store: Store) -> io.BytesIO:
    made = io.BytesIO()
    write_backup(store, made)
    return made


def restored(store: Store, source: io.BytesIO, *, replace: bool = False) -> Restored:
    """Restore a backup as the command does, and return what was written."""
    check_backup(source)
    return restore_backup(store, source, WHO, parameters_problem, replace=replace)


def lines_of(source: io.BytesIO) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(source.getvalue()).splitlines()]


def rows_of(source: io.BytesIO) -> list[Any]:
    """Return the rows of a backup, without the event of a restore."""
    return [each for each in lines_of(source) if "table" in each and each["row"].get("type") != "backup-restored"]


def remade(lines: Sequence[Any]) -> io.BytesIO:
    """Return a backup with these lines and a last line that fits them."""
    texts = [json.dumps(each).encode() + b"\n" for each in lines if "sha256" not in each]
    last = {"lines": len(texts), "sha256": sha256(b"".join(texts)).hexdigest()}
    return io.BytesIO(gzip.compress(b"".join(texts) + json.dumps(last).encode() + b"\n"))


def client_documents(store: Store) -> list[Any]:
    """Return what clients get of each environment, without the revision."""
    documents = Documents(store, SystemClock(), RecordingLog())
    found = [json.loads(documents.get(DocumentQuery(each)).body) for each in ENVIRONMENTS]
    return [{name: value for name, value in each.items() if name != "meta"} for each in found]


def without(table: str, lines: list[Any]) -> list[Any]:
    return [each for each in lines if each.get("table") != table]


def with_header(**other: Any) -> Callable[[list[Any]], list[Any]]:
    """Return a change of the header."""
    return lambda lines: [lines[0] | other, *lines[1:]]


def with_last_event(number: int) -> Callable[[list[Any]], list[Any]]:
    """Return a change that adds an event with a number."""

    def changed(lines: list[Any]) -> list[Any]:
        event = next(each for each in lines if each.get("table") == "events")
        return [*lines, event | {"row": event["row"] | {"id": number}}]

    return changed


def with_value(table: str, **other: Any) -> Callable[[list[Any]], list[Any]]:
    """Return a change of the values of every row of a table."""

    def changed(lines: list[Any]) -> list[Any]:
        return [each | {"row": each["row"] | other} if each.get("table") == table else each for each in lines]

    return changed
