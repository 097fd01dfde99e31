"""A database of flags to import into and to export from, without HTTP around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import delete, event, insert, select

from flagsvc.core.clock import SystemClock
from flagsvc.http.json_text import whole
from flagsvc.http.shapes import check
from flagsvc.server.shapes.batch import EXPORT_QUERY, EXPORT_RESULT, IMPORT, VALIDATION
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.exporting import export
from flagsvc.server.store.batch.importing import check_importer, import_data, validate
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.schema import METADATA, events
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import RecordingLog
from support.planting import plant

Json = dict[str, Any]

ADMIN = Actor(7, "boss", root_role="admin")
EDITOR = Actor(8, "writer", root_role="editor")
VIEWER = Actor(9, "reader")
HERE = {"environment": "development", "project": "default"}
NEW_EACH_TIME = ("id",)


def feature(name: str, **more: Any) -> Json:
    return {"name": name, **more}


def strategy(owner: str, name: str = "default", **more: Any) -> Json:
    return {"name": name, "featureName": owner, **more}


def place(name: str, *, enabled: bool = False, **more: Any) -> Json:
    return {"name": name, "featureName": name, "enabled": enabled, **more}


def variant(name: str, **more: Any) -> Json:
    return {"name": name, "weight": 1000, "weightType": "variable", "stickiness": "default", **more}


def tag(owner: str, value: str, kind: str = "simple") -> Json:
    return {"featureName": owner, "tagType": kind, "tagValue": value}


def depends(child: str, *parents: Json | str) -> Json:
    return {"feature": child, "dependencies": [{"feature": each} if isinstance(each, str) else each for each in parents]}


def linked(owner: str, *links: Json) -> Json:
    return {"feature": owner, "links": list(links)}


def body(environment: str = "development", project: str = "default", **data: Any) -> Json:
    """Return an import request. Missing parts of the data set are empty."""
    lists = {"features": [], "featureStrategies": [], "tagTypes": [], **data}
    return {"project": project, "environment": environment, "data": lists}


@dataclass
class Scene:
    """A store with operations for tests. `statements` counts the statements for the database."""

    store: Store
    statements: list[str] = field(default_factory=list)
    beginning: dict[str, list[Json]] = field(default_factory=dict)

    def seed(self, **given: Any) -> None:
        """Put a state, in the format of the seed file, into the empty database."""
        with self.store.writing(None) as tx:
            plant(tx, given)

    def renew(self) -> None:
        """Make the database as it was when the scene began: making a new one takes longer."""
        tables = METADATA.sorted_tables
        with self.store.recording() as tx:
            for table in reversed(tables):
                tx.db.execute(delete(table))
            for table in tables:
                if self.beginning[table.name]:
                    tx.db.execute(insert(table), self.beginning[table.name])

    def validate(self, request: Json, actor: Actor = ADMIN) -> Json:
        """Return what an import would meet; it has the published shape."""
        checked: Any = check(IMPORT, request)
        with self.store.reading() as tx:
            found = validate(tx, actor, told(checked), checked)
        assert check(VALIDATION, found) == found
        return found

    def load(self, request: Json, actor: Actor = ADMIN) -> None:
        checked: Any = check(IMPORT, request)
        check_importer(actor)
        with self.store.writing(actor) as tx:
            import_data(tx, actor, told(checked), checked)

    def attempt(self, request: Json, actor: Actor = ADMIN) -> None:
        """Try an import; nothing of it stays."""
        checked: Any = check(IMPORT, request)
        with self.store.dry_run(actor) as tx:
            import_data(tx, actor, whole(checked), checked)  # type: ignore[arg-type]

    def refusal(self, request: Json, actor: Actor = ADMIN) -> CallerError:
        """Return why an import is refused; the database must be as it was."""
        before = self.dump()
        with pytest.raises(CallerError) as found:
            self.load(request, actor)
        assert self.dump() == before
        return found.value

    def export(self, **query: Any) -> Json:
        """Return an export, of the default project in development unless it says otherwise; it has the published shape."""
        wanted: Any = check(EXPORT_QUERY, {**HERE, **query})
        with self.store.reading() as tx:
            found = export(tx, wanted)
        assert check(EXPORT_RESULT, found) == found
        return found

    def dump(self) -> dict[str, list[Json]]:
        with self.store.reading() as tx:
            return {
                table.name: sorted((dict(row._mapping) for row in tx.db.execute(select(table))), key=repr)
                for table in METADATA.sorted_tables
            }

    def events(self) -> list[tuple[str, str | None]]:
        """Return type and feature of each event, in their order."""
        with self.store.reading() as tx:
            rows = tx.db.execute(select(events.c.type, events.c.feature).order_by(events.c.id))
            return [(row.type, row.feature) for row in rows]

    def counted(self, act: Callable[[], object]) -> int:
        """Return how many statements something sends to the database."""
        before = len(self.statements)
        act()
        return len(self.statements) - before


def told(checked: object) -> Json:
    """Return a request as the handlers give it on, with halves of surrogate pairs replaced."""
    request = whole(checked)
    assert isinstance(request, dict)
    return request


@contextmanager
def scene_of(database: str) -> Iterator[Scene]:
    store = open_store(database, SystemClock(), RecordingLog())
    found = Scene(store)

    def sent(*given: Any) -> None:
        found.statements.append(given[2])

    event.listen(store.engine, "before_cursor_execute", sent)
    try:
        found.beginning = found.dump()
        yield found
    finally:
        store.close()


def without_ids(value: Any) -> Any:
    """Return an export without the parts that each import creates new."""
    if isinstance(value, Mapping):
        return {name: without_ids(each) for name, each in value.items() if name not in NEW_EACH_TIME}
    return [without_ids(each) for each in value] if isinstance(value, list) else value
