"""A database with flags, without HTTP: written in bulk, or a state with some of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from sqlalchemy import Table, insert, select, update

from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.schema import events, strategies
from flagsvc.server.store.store import Store, Tx, open_store
from flagsvc.testing import FakeClock, RecordingLog
from support.planting import plant
from support.server_pair import GIVEN, STRATEGIES, USES

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


ACTOR = Actor(7, "somebody", root_role="admin")


class SeededStore:
    """A store in the state of `server_pair`: features web, app, old (archived), elsewhere, each with one strategy."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def read(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Return the result of a function that reads."""
        with self.store.reading() as tx:
            return function(tx, *given, **named)

    def write(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Return the result of a function that writes, in its own transaction."""
        with self.store.writing(ACTOR) as tx:
            return function(tx, *given, **named)

    def refusal(self, function: Callable[..., Any], *given: Any, **named: Any) -> tuple[int, str, list[str]]:
        """Return how a function refuses: status, name and the messages of its details."""
        try:
            self.write(function, *given, **named)
        except CallerError as refusal:
            return refusal.status, refusal.name, [each["message"] for each in refusal.details]
        raise AssertionError(f"{function.__name__} refuses nothing")

    def told(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return type, and other columns, of what happened by the hand of the actor."""
        names = [events.c[name] for name in ("type", *columns)]
        with self.store.reading() as tx:
            query = select(*names).where(events.c.created_by == ACTOR.name).order_by(events.c.id)
            return [tuple(row) for row in tx.db.execute(query)]


@contextmanager
def open_seeded_store(database: str) -> Iterator[SeededStore]:
    store = open_store(database, FakeClock(1_750_000_000.0), RecordingLog())
    try:
        with store.writing(None) as tx:
            plant(tx, GIVEN)
            for name, feature, _, _ in USES:
                tx.db.execute(update(strategies).where(strategies.c.feature == feature).values(id=STRATEGIES[name]))
        yield SeededStore(store)
    finally:
        store.close()
