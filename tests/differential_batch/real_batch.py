"""The real flag server as the twin of ours: one PostgreSQL, one process, its state set by SQL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg
from batch_states import KEPT_FIELDS, KINDS, USERS, secret

from flagsvc.cli.batch import session
from flagsvc.cli.batch.checking import Findings, check_import
from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.files import FlagFile
from flagsvc.cli.batch.session import SchemaError
from flagsvc.cli.batch.target import Target
from support.processes import Answer, ask, postgresql, unleash_server

BEFORE, LATER = "2020-01-01", "2099-01-01"
CLEARED = (
    "dependent_features",
    "feature_link",
    "feature_tag",
    "tags",
    "feature_strategy_segment",
    "feature_strategies",
    "feature_environments",
    "features",
    "segments",
    "events",
)


class RealServer:
    """A running real server whose state tests set."""

    def __init__(self, url: str, database: psycopg.Connection[Any]) -> None:
        self.url = url
        self.database = database
        # written some time after an import, by when the state may be another: the real server would end over it
        self._run("ALTER TABLE feature_lifecycles DROP CONSTRAINT feature_lifecycles_feature_fkey")
        self._run(
            "ALTER TABLE IF EXISTS onboarding_events_project DROP CONSTRAINT IF EXISTS onboarding_events_project_project_fkey"
        )
        self._users()

    def ask(self, operation: str, who: str, body: object) -> Answer:
        """Send a request of a batch operation."""
        url = f"{self.url}/admin/features-batch/{operation}"
        return ask(url, method="POST", headers={"Authorization": secret(who)}, body=body)

    def get(self, path: str) -> Answer:
        """Ask the admin API for what is at a path."""
        return ask(f"{self.url}/admin{path}", headers={"Authorization": secret("admin")})

    def findings(self, who: str, body: Any) -> Findings | None:
        """Return what `flagsvc validate` finds in a request; None where the server refuses its form.

        The server remembers its list of projects for a while, so nothing asks it for new projects.
        """
        target = Target(self.url.removesuffix("/api"), secret(who))
        with AdminClient(target) as client, patch.object(session, "check_target_exists"):
            try:
                return check_import(client, FlagFile(body, bare=False), body)
            except SchemaError:
                return None

    def _users(self) -> None:
        """Create the users, with roles and personal tokens."""
        with self.database.transaction():
            for number, (name, (root, role)) in enumerate(USERS.items(), 101):
                self._insert("users", id=number, username=name, name=name)
                self._insert("personal_access_tokens", secret=secret(name), description="test", user_id=number, expires_at=LATER)
                self._role(number, root)
                if role:
                    self._role(number, role)

    def _role(self, user: int, role: str) -> None:
        statement = "INSERT INTO role_user (role_id, user_id, project) SELECT id, %s, 'default' FROM roles WHERE name = %s"
        self._run(statement, user, role)

    def _run(self, statement: str, *values: object) -> None:
        self.database.execute(statement.encode(), values)

    def _insert(self, table: str, **values: object) -> None:
        """Add a row, unless it is there."""
        places = ", ".join(["%s"] * len(values))
        self._run(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places}) ON CONFLICT DO NOTHING", *values.values())

    def become(self, state: Mapping[str, Any]) -> None:
        """Take on a state in the format of the seed file, on top of what a fresh server has."""
        with self.database.transaction():
            for table in CLEARED:
                self._run(f"DELETE FROM {table}")
            self._run("DELETE FROM context_fields WHERE NOT name = ANY(%s)", list(KEPT_FIELDS))
            self._run("UPDATE context_fields SET legal_values = NULL")
            self._run("DELETE FROM strategies WHERE built_in = 0")
            self._run("DELETE FROM tag_types WHERE name <> 'simple'")
            self._run("DELETE FROM project_settings")
            self._run("DELETE FROM projects WHERE id <> 'default'")
            self._run("ALTER SEQUENCE segments_id_seq RESTART WITH 1")
            for kind in KINDS:
                for row in state[kind]:
                    getattr(self, f"_add_{kind.lower()}")(row)

    def _add_projects(self, row: Mapping[str, Any]) -> None:
        archived = BEFORE if row.get("archived") else None
        self._insert("projects", id=row["id"], name=row["name"])
        self._run("UPDATE projects SET archived_at = %s WHERE id = %s", archived, row["id"])
        for name in row["environments"]:
            self._insert("project_environments", project_id=row["id"], environment_name=name)
        rules = {f"feature_naming_{name}": text for name, text in row.get("featureNaming", {}).items()}
        limit = row.get("featureLimit")
        self._insert("project_settings", project=row["id"], project_mode="open", feature_limit=limit, **rules)

    def _add_features(self, row: Mapping[str, Any]) -> None:
        archived = BEFORE if row.get("archived") else None
        self._insert("features", name=row["name"], project=row["project"], archived_at=archived)
        self._run(
            "INSERT INTO feature_environments (feature_name, environment, enabled)"
            " SELECT %s, environment_name, false FROM project_environments WHERE project_id = %s",
            row["name"],
            row["project"],
        )

    def _add_strategies(self, row: Mapping[str, Any]) -> None:
        self._run(
            "INSERT INTO feature_strategies (id, feature_name, project_name, environment, strategy_name)"
            " SELECT gen_random_uuid()::text, name, project, %s, %s FROM features WHERE name = %s",
            row["environment"],
            row["name"],
            row["feature"],
        )

    def _add_contextfields(self, row: Mapping[str, Any]) -> None:
        values = json.dumps(row.get("legalValues", []))
        self._insert("context_fields", name=row["name"], legal_values=values, project=row.get("project"))

    def _add_segments(self, row: Mapping[str, Any]) -> None:
        constraints = json.dumps(row["constraints"])
        self._insert("segments", name=row["name"], constraints=constraints, segment_project_id=row.get("project"))

    def _add_strategytypes(self, row: Mapping[str, Any]) -> None:
        self._insert("strategies", **{"deprecated": False, **row, "parameters": json.dumps(row["parameters"])})

    def _add_tagtypes(self, row: Mapping[str, Any]) -> None:
        self._insert("tag_types", **row)


@contextmanager
def real_server(peer: str = "server") -> Iterator[RealServer]:
    """Run the real server of a row of `peers.PACKAGES` until the block ends."""
    with postgresql() as url, unleash_server(url, peer) as server, psycopg.connect(url, autocommit=True) as database:
        yield RealServer(server.url, database)
        assert server.program.process.poll() is None, f"the real server ended:\n{server.program.output()[-20_000:]}"
