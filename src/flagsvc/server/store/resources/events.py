"""Lists and searches events (the real server's /api/admin/events and /api/admin/search/events; decision 0027)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Text, cast, func, or_, select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.event_kinds import kind_of, words_of
from flagsvc.server.store.event_views import Side
from flagsvc.server.store.resources.feature_search import contains
from flagsvc.server.store.resources.users import names_of
from flagsvc.server.store.schema import events
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import check_searched
from flagsvc.server.store.timestamps import format_time
from flagsvc.server.store.upsert import count_rows

LAST, LAST_OF_ONE = 100, 50
"""The most events of a list: of the whole server, and of one project or feature."""
CHUNK = 500
"""How many events are read at once."""
TRANSACTION = "transaction"
COLUMNS: dict[str, Any] = {
    "id": events.c.id,
    "groupId": events.c.action,
    "feature": events.c.feature,
    "project": events.c.project,
    "type": events.c.type,
    "createdBy": events.c.created_by_id,
    "environment": events.c.environment,
    "way": func.coalesce(events.c.way, "api"),
}
"""Filter of a search → its column."""
SEARCHED = (events.c.data, events.c.before, events.c.tags)
"""The columns in which a search looks for its text."""


@dataclass(frozen=True)
class EventSearch:
    """A search. `filters` maps a key of COLUMNS to values of which one must be there; `since` and `until` are days.

    `all_projects` also finds events that belong to no project. `before` is the number of an event: only older ones are found.
    """

    text: str = ""
    filters: Mapping[str, Sequence[str | int]] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    all_projects: bool = False
    before: int | None = None
    offset: int = 0
    limit: int = LAST_OF_ONE


def list_last(tx: Tx, *, project: str | None = None, feature: str | None = None) -> tuple[list[Json], int]:
    """Return the last events of the server, a project or a feature, the newest first, and how many there are."""
    here = [column == name for column, name in ((events.c.project, project), (events.c.feature, feature)) if name]
    rows = tx.db.execute(select(events).where(*here).order_by(events.c.id.desc()).limit(LAST_OF_ONE if here else LAST))
    return [to_json(row) for row in rows], count_rows(tx, events, *here)


def search(tx: Tx, wanted: EventSearch) -> tuple[list[Json], int]:
    """Return a page of events, the newest first, and the number of events on all pages."""
    return _read(tx, wanted), count_rows(tx, events, *_conditions(tx, wanted))


def walk(tx: Tx, wanted: EventSearch) -> Iterator[Json]:
    """Yield every event that a search finds, the newest first. It holds CHUNK of them at a time."""
    rest: EventSearch | None = replace(wanted, offset=0, limit=CHUNK)
    while rest is not None:
        found = _read(tx, rest)
        yield from found
        rest = replace(rest, before=found[-1]["id"]) if len(found) == CHUNK else None


def _read(tx: Tx, wanted: EventSearch) -> list[Json]:
    query = select(events).where(*_conditions(tx, wanted)).order_by(events.c.id.desc())
    return [to_json(row) | _in_words(row) for row in tx.db.execute(query.offset(wanted.offset).limit(wanted.limit))]


def find_last(tx: Tx, types: Sequence[str], counts: Callable[[Side, Side], bool], **place: str) -> Json | None:
    """Return the last event of some types at a place (`feature`, `environment`, `project`), with its words; None without one.

    `counts` tells from both sides of an event whether it counts. It looks at the last CHUNK events of these types only.
    """
    here = [events.c[name] == value for name, value in place.items()]
    query = select(events).where(events.c.type.in_(types), *here).order_by(events.c.id.desc()).limit(CHUNK)
    for row in tx.db.execute(query):
        if counts(row.before, row.data):
            return to_json(row) | _in_words(row)
    return None


def find_events(tx: Tx, numbers: Collection[int]) -> dict[int, Json]:
    """Return events with their words, by number; those that are there."""
    rows = tx.db.execute(select(events).where(events.c.id.in_(numbers))).all() if numbers else ()
    return {row.id: to_json(row) | _in_words(row) for row in rows}


def count_kinds(tx: Tx, actions: Collection[str]) -> dict[str, dict[str, int]]:
    """Return how many events of each type were done together, by action."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    query = select(events.c.action, events.c.type, func.count().label("number")).where(events.c.action.in_(actions))
    for row in tx.db.execute(query.group_by(events.c.action, events.c.type)) if actions else ():
        found[row.action][row.type] = row.number
    return found


def _conditions(tx: Tx, wanted: EventSearch) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [COLUMNS[name].in_(values) for name, values in wanted.filters.items() if values]
    if wanted.since is not None:
        found.append(events.c.created_at >= wanted.since)
    if wanted.until is not None:
        found.append(events.c.created_at < wanted.until + timedelta(days=1))
    if wanted.before is not None:
        found.append(events.c.id < wanted.before)
    if not wanted.all_projects:
        found.append(events.c.project.is_not(None))
    if wanted.text:
        check_searched(wanted.text, "query")
        text = _stored(wanted.text) if tx.db.dialect.name == "sqlite" else wanted.text
        found.append(or_(*(contains(tx, cast(column, Text), text) for column in SEARCHED)))
    return found


def _stored(text: str) -> str:
    """Return a text as SQLite's JSON has it: other characters than those of ASCII are escaped."""
    return "".join(each if each.isascii() else json.dumps(each)[1:-1] for each in text)


def to_json(row: Row[Any]) -> Json:
    """Return an event as the API answers it: the real server's members, then ours."""
    data, previous = kind_of(row.type).shown(row.before, row.data)
    group = {} if row.action is None else {"groupType": TRANSACTION, "groupId": row.action}
    return {
        "id": row.id,
        "type": row.type,
        "createdBy": row.created_by,
        "createdAt": format_time(row.created_at),
        "createdByUserId": row.created_by_id,
        "data": data,
        "preData": previous,
        "tags": row.tags or [],
        "featureName": row.feature,
        "project": row.project,
        "environment": row.environment,
        **group,
        "tokenName": row.token,
        "way": row.way,
        "before": row.before,
        "after": row.data,
    }


def _in_words(row: Row[Any]) -> Json:
    kind = kind_of(row.type)
    place = {"by": row.created_by, "feature": row.feature, "environment": row.environment, "project": row.project}
    return {"label": kind.label, "summary": words_of(kind, place, row.before, row.data)}


def list_creators(tx: Tx, last: int | None = None) -> list[Json]:
    """Return who is the author of events, or of the `last` ones: id and name."""
    authors = select(events.c.created_by_id, events.c.created_by).order_by(events.c.id.desc()).limit(last).subquery()
    query = select(authors.c.created_by_id, func.max(authors.c.created_by)).group_by(authors.c.created_by_id)
    found = {number: name for number, name in tx.db.execute(query) if number is not None}
    known = names_of(tx, found)
    return [{"id": number, "name": known.get(number, found[number])} for number in sorted(found)]


def read_day(text: str) -> datetime:
    """Return the beginning of a day (UTC), written as `2024-01-31`. Raises ValueError for a day that does not exist."""
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
