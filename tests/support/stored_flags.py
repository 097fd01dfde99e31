"""Flags put into a flag server's tables directly, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from sqlalchemy import Table, insert, select

from flagsvc.server.store import schema
from flagsvc.server.store.store import Tx

Row = dict[str, Any]


@dataclass
class Flags:
    """Rows to insert; `put` inserts them."""

    rows: dict[Table, list[Row]] = field(default_factory=dict)
    segment_ids: dict[str, int] = field(default_factory=dict)
    placed: int = 0

    def add(self, table: Table, **values: Any) -> None:
        self.rows.setdefault(table, []).append(values)

    def feature(
        self,
        name: str,
        *,
        project: str = "default",
        on: Sequence[str] = (),
        strategies: Sequence[Mapping[str, Any]] = (),
        variants: Sequence[Row] = (),
        tags: Sequence[tuple[str, str]] = (),
        **values: Any,
    ) -> None:
        """Add a feature that is in development and production; its strategies and variants are in development."""
        self.placed += 1
        defaults = {"description": None, "archived_at": None, "impression_data": False, "stale": False, "type": "release"}
        self.add(schema.features, name=name, project=project, position=self.placed, **defaults | values)
        for environment in ("development", "production"):
            held = list(variants) if environment == "development" else []
            state = {"enabled": environment in on, "variants": held}
            self.add(schema.feature_environments, feature=name, environment=environment, **state)
        for number, given in enumerate(strategies):
            self._strategy(name, number, given)
        for kind, value in tags:
            self.add(schema.feature_tags, feature=name, type=kind, value=value)

    def _strategy(self, feature: str, number: int, given: Mapping[str, Any]) -> None:
        """Add a strategy in development; `segments` are names."""
        used = given.get("segments", ())
        defaults: Row = {"name": "default", "title": None, "parameters": {}, "constraints": [], "variants": [], "disabled": False}
        values = defaults | {"sort_order": number, "environment": "development"} | dict(given)
        values.pop("segments", None)
        values |= {"id": str(uuid4()), "feature": feature, "position": len(self.rows.get(schema.strategies, ()))}
        self.add(schema.strategies, **values)
        for position, name in enumerate(used):
            key = {"strategy_id": values["id"], "segment_id": self.segment_ids[name]}
            self.add(schema.strategy_segments, **key, position=position)

    def segment(self, name: str, *constraints: Row) -> None:
        self.segment_ids[name] = len(self.segment_ids) + 1
        values = {"id": self.segment_ids[name], "name": name, "constraints": list(constraints)}
        self.add(schema.segments, **values)

    def put(self, tx: Tx) -> None:
        """Insert the rows, and the environments, projects and tags that they need and the database lacks."""
        names = {row["project"] for row in self.rows.get(schema.features, ())}
        self._need(tx, schema.projects, "id", names, {"name": "a project", "mode": "open"})
        self._need(tx, schema.environments, "name", {"development", "production"}, {"type": "development"})
        kinds = {row["type"] for row in self.rows.get(schema.feature_tags, ())}
        self._need(tx, schema.tag_types, "name", kinds, {})
        tags = {(row["type"], row["value"]) for row in self.rows.get(schema.feature_tags, ())}
        for kind, value in sorted(tags):
            tx.db.execute(insert(schema.tags).values(type=kind, value=value, created_at=tx.now))
        for table in schema.METADATA.sorted_tables:
            dated = {"created_at": tx.now} if "created_at" in table.c else {}
            rows = [dated | row for row in self.rows.get(table, ())]
            if rows:
                tx.db.execute(insert(table), rows)
        tx.record_event("flags-put")

    def _need(self, tx: Tx, table: Table, key: str, values: set[str], others: Row) -> None:
        there = set(tx.db.execute(select(table.c[key])).scalars())
        dated = {"created_at": tx.now} if "created_at" in table.c else {}
        for value in sorted(values - there):
            tx.db.execute(insert(table).values({key: value} | others | dated))
