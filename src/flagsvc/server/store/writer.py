"""One writer for each resource: it reads, puts and removes any number of them, and records an event of each.

Who changes a resource (the admin API, a page, an undo, a seed, an import) checks what it may say, and puts the whole resource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlalchemy import Row, Table, bindparam, delete, insert, update
from sqlalchemy import select as select_from

from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import read_time
from flagsvc.server.store.upsert import chunks

CREATED_AT = "created_at"
Whole: TypeAlias = Mapping[str, Any]
"""A resource with all that can be set of it, as the API answers it and events hold it."""
KindOfChange: TypeAlias = Callable[[Json, Json], str]
"""What is before and after a change → the type of its event."""


def nothing_more(tx: Tx, keys: Iterable[Any]) -> Mapping[Any, Json]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Writer:
    """The writer of a resource. Its rows have one column as their key, and a whole has a member of that name.

    `show` makes wholes of rows, and `columns` the columns that a change sets. `check` raises CallerError for what no change may do;
    it gets the present resources, by key, and the new ones.
    `more` returns what belongs to resources and ends with them, by key; `release` ends it where the database does not, and `bring`
    gives it to new resources. `unknown` is the message for one that does not exist, with a place for its key. `place` says which
    project and environment an event names, and `tell` makes what it holds. A whole has the `optional` members only where they are
    set. `new` has the members of a new resource that nobody names.
    """

    table: Table
    show: Callable[[Tx, Sequence[Row[Any]]], list[Json]]
    columns: Callable[[Tx, Whole], Json]
    created: str
    updated: str | KindOfChange
    deleted: str
    unknown: str
    place: Callable[[Whole], Mapping[str, str | None]] = lambda whole: {}
    check: Callable[[Tx, Mapping[Any, Json], Sequence[Whole]], None] = lambda tx, before, wholes: None
    more: Callable[[Tx, Sequence[Any]], Mapping[Any, Json]] = nothing_more
    bring: Callable[[Tx, Sequence[Whole]], object] = lambda tx, wholes: None
    release: Callable[[Tx, Sequence[Any]], object] = lambda tx, keys: None
    optional: tuple[str, ...] = ()
    new: Whole = field(default_factory=dict)
    tell: Callable[[Json], Any] = dict

    @property
    def key(self) -> str:
        return str(next(iter(self.table.primary_key)).name)

    def read(self, tx: Tx, keys: Iterable[Any]) -> dict[Any, Json]:
        """Return the resources that exist, by key."""
        found: dict[Any, Json] = {}
        column = self.table.c[self.key]
        for chunk in chunks(dict.fromkeys(keys)):
            rows = tx.db.execute(select_from(self.table).where(column.in_(chunk))).all()
            found |= {each[self.key]: each for each in self.show(tx, rows)}
        return found

    def find(self, tx: Tx, key: Any) -> Json | None:
        """Return a resource; None for one that does not exist."""
        return self.read(tx, [key]).get(key)

    def require(self, tx: Tx, key: Any) -> Json:
        """Return a resource. Raises CallerError (404)."""
        found = self.find(tx, key)
        if found is None:
            raise not_found(self.unknown.format(key))
        return found

    def read_whole(self, tx: Tx, keys: Sequence[Any]) -> dict[Any, Json]:
        """Return the resources that exist, with their belongings, by key."""
        found: dict[Any, Json] = {}
        for chunk in chunks(dict.fromkeys(keys)):
            more = self.more(tx, chunk)
            found |= {key: each | more.get(key, {}) for key, each in self.read(tx, chunk).items()}
        return found

    def put(self, tx: Tx, *wanted: Whole, back: bool = False, tell: Callable[[Json], Any] | None = None) -> list[Json]:
        """Create or change resources, and return them. A new resource gets a key.

        Other members stay, and a new resource has the members of `new`. The event of a resource that comes `back` holds the whole,
        and the belongings of a new resource. `tell` makes what other events hold. Raises CallerError.
        """
        before = self.read(tx, [each[self.key] for each in wanted if self.key in each])
        wholes = [{**before.get(each.get(self.key), self.new), **each} for each in wanted]
        self.check(tx, before, wholes)
        self._change(tx, [each for each in wholes if each.get(self.key) in before])
        new_wholes = [each for each in wholes if each.get(self.key) not in before]
        for each, key in zip(new_wholes, self._insert(tx, new_wholes), strict=True):
            each[self.key] = key
        if new_wholes:
            self.bring(tx, new_wholes)
        after = self.read(tx, [each[self.key] for each in wholes])
        there = self.read_whole(tx, [each[self.key] for each in new_wholes]) if back else {}
        tell = dict if back else tell or self.tell
        for key in (each[self.key] for each in wholes):
            place = self.place(after[key])
            if key in before:
                kind = self.updated if isinstance(self.updated, str) else self.updated(before[key], after[key])
                tx.record_event(kind, **place, before=tell(before[key]), data=tell(after[key]))
            else:
                tx.record_event(self.created, **place, data=there[key] if back else tell(after[key]))
        return [after[each[self.key]] for each in wholes]

    def _change(self, tx: Tx, wholes: Sequence[Json]) -> None:
        rows = [self.columns(tx, each) | {"which": each[self.key]} for each in wholes]
        if rows:
            given: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "which"}
            here = self.table.c[self.key] == bindparam("which")
            tx.db.execute(update(self.table).where(here).values(given), rows)

    def _insert(self, tx: Tx, wholes: Sequence[Json]) -> list[Any]:
        rows = [self.columns(tx, each) | self._first_columns(tx, each) for each in wholes]
        if all(self.key in row for row in rows):
            if rows:
                tx.db.execute(insert(self.table), rows)
            return [row[self.key] for row in rows]
        return [tx.db.execute(insert(self.table).values(row).returning(self.table.c[self.key])).scalar_one() for row in rows]

    def _first_columns(self, tx: Tx, whole: Whole) -> Json:
        """Return the columns that no change sets: the key, and the time of the creation."""
        key = {self.key: whole[self.key]} if self.key in whole else {}
        created_at = read_time(whole["createdAt"]) if "createdAt" in whole else tx.now
        return key | ({CREATED_AT: created_at} if CREATED_AT in self.table.c else {})

    def remove(self, tx: Tx, *keys: Any) -> None:
        """Delete the resources that exist, with their belongings."""
        before = self.read_whole(tx, keys)
        self.release(tx, list(before))
        for chunk in chunks(before):
            tx.db.execute(delete(self.table).where(self.table.c[self.key].in_(chunk)))
        for each in before.values():
            tx.record_event(self.deleted, **self.place(each), before=each)
