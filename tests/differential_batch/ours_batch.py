"""Our flag server as the twin of the real one: the application in this process, on a database of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from real_batch import KEPT_FIELDS, USERS, secret
from sqlalchemy import delete, update

from flagsvc.server.store import schema
from flagsvc.server.store.seed.apply import apply_seed, parse_seed
from support.flagservers import AppClient, app_client
from support.processes import Answer

CLEARED = (
    schema.dependencies,
    schema.features,
    schema.tags,
    schema.segments,
    schema.events,
    schema.tokens,
    schema.users,
)


def people() -> dict[str, Any]:
    """Return the part of every state that says who may ask."""
    members = [
        (name, [{"project": "default", "role": role.lower()}] if role else []) for name, (_, role) in USERS.items()
    ]
    return {
        "users": [{"name": name, "rootRole": USERS[name][0].lower(), "projectRoles": roles} for name, roles in members],
        "tokens": [{"secret": secret("admin"), "type": "admin"}]
        + [{"secret": secret(name), "type": "personal", "user": name} for name in USERS],
    }


class OurServer:
    """A flag server of ours whose state tests set."""

    def __init__(self, client: AppClient) -> None:
        self.client = client

    def become(self, state: Mapping[str, Any]) -> None:
        """Take on a state in the format of the seed file, on top of what a fresh server has."""
        fields, kinds, tags = schema.context_fields, schema.strategy_types, schema.tag_types
        with self.client.server.store.writing(None) as tx:
            for table in CLEARED:
                tx.db.execute(delete(table))
            tx.db.execute(delete(fields).where(fields.c.name.not_in(KEPT_FIELDS)))
            tx.db.execute(update(fields).values(legal_values=[]))
            tx.db.execute(delete(kinds).where(~kinds.c.built_in))
            tx.db.execute(delete(tags).where(tags.c.name != "simple"))
            tx.db.execute(delete(schema.projects).where(schema.projects.c.id != "default"))
            apply_seed(tx, parse_seed({**people(), **state}))

    def ask(self, operation: str, who: str, body: object) -> Answer:
        """Send a request of a batch operation."""
        return self.client.post(f"/api/admin/features-batch/{operation}", body, token=secret(who))

    def get(self, path: str) -> Answer:
        """Ask the admin API for what is at a path."""
        return self.client.get(f"/api/admin{path}", token=secret("admin"))


@contextmanager
def our_server(database: str) -> Iterator[OurServer]:
    """Run our server on a database until the block ends."""
    with app_client(database) as client:
        yield OurServer(client)
