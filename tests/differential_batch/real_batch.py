"""The real flag server as the twin of ours: one PostgreSQL, one process, its state set by SQL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from batch_states import KEPT_FIELDS, USERS, secret
from batch_twins import looked_at

from flagsvc.cli.batch.checking import Findings
from support.processes import Answer, ask, postgresql, unleash_server

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
        """Return what `flagsvc validate` finds in a request."""
        return looked_at(self.url, secret(who), body)

    def _users(self) -> None:
        """Create the users, with roles and personal tokens."""
        with self.database.transaction():
            for number, (name, (root, role)) in enumerate(USERS.items(), 101):
                self._run("INSERT INTO users (id, username, name) VALUES (%s, %s, %s)", number, name, name)
                self._run(
                    "INSERT INTO personal_access_tokens (secret, description, user_id, expires_at)"
                    " VALUES (%s, 'test', %s, now() + interval '1 day')",
                    secret(name),
                    number,
                )
                self._role(number, root, "default")
                if role:
                    self._role(number, role, "default")

    def _role(self, user: int, role: str, project: str) -> None:
        self._run(
            "INSERT INTO role_user (role_id, user_id, project) SELECT id, %s, %s FROM roles WHERE name = %s",
            user,
            project,
            role,
        )

    def _run(self, statement: str, *values: object) -> None:
        self.database.execute(statement.encode(), values)

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
            for kind in (
                "projects",
                "features",
                "strategies",
                "contextFields",
                "segments",
                "strategyTypes",
                "tagTypes",
            ):
                for row in state[kind]:
                    getattr(self, f"_add_{kind.lower()}")(row)

    def _add_projects(self, row: Mapping[str, Any]) -> None:
        self._run("INSERT INTO projects (id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING", row["id"], row["name"])
        if row.get("archived"):
            self._run("UPDATE projects SET archived_at = now() WHERE id = %s", row["id"])
        for name in row["environments"]:
            self._run(
                "INSERT INTO project_environments (project_id, environment_name) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                row["id"],
                name,
            )
        naming = row.get("featureNaming", {})
        values = (naming.get("pattern"), naming.get("example"), naming.get("description"))
        self._run(
            "INSERT INTO project_settings (project, project_mode, feature_limit, feature_naming_pattern,"
            " feature_naming_example, feature_naming_description) VALUES (%s, 'open', %s, %s, %s, %s)",
            row["id"],
            row.get("featureLimit"),
            *values,
        )

    def _add_features(self, row: Mapping[str, Any]) -> None:
        archived = "now()" if row.get("archived") else "NULL"
        self._run(
            f"INSERT INTO features (name, project, archived_at) VALUES (%s, %s, {archived})",
            row["name"],
            row["project"],
        )
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
        self._run(
            "INSERT INTO context_fields (name, legal_values, project) VALUES (%s, %s, %s)",
            row["name"],
            json.dumps(row.get("legalValues", [])),
            row.get("project"),
        )

    def _add_segments(self, row: Mapping[str, Any]) -> None:
        self._run(
            "INSERT INTO segments (name, constraints, segment_project_id) VALUES (%s, %s, %s)",
            row["name"],
            json.dumps(row["constraints"]),
            row.get("project"),
        )

    def _add_strategytypes(self, row: Mapping[str, Any]) -> None:
        self._run(
            "INSERT INTO strategies (name, description, parameters, deprecated) VALUES (%s, %s, %s, %s)",
            row["name"],
            row["description"],
            json.dumps(row["parameters"]),
            row.get("deprecated", False),
        )

    def _add_tagtypes(self, row: Mapping[str, Any]) -> None:
        self._run(
            "INSERT INTO tag_types (name, description, icon) VALUES (%s, %s, %s)",
            row["name"],
            row["description"],
            row["icon"],
        )


@contextmanager
def real_server(peer: str = "server") -> Iterator[RealServer]:
    """Run the real server of a row of `peers.PACKAGES` until the block ends."""
    with postgresql() as url, unleash_server(url, peer) as server, psycopg.connect(url, autocommit=True) as database:
        yield RealServer(server.url, database)
        assert server.program.process.poll() is None, f"the real server ended:\n{server.program.output()[-20_000:]}"
