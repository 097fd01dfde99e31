"""Tag types; as on the real server's `/api/admin/tag-types`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, select

from flagsvc.server.store.checks import Json, raise_problems
from flagsvc.server.store.errors import CallerError, bad_data
from flagsvc.server.store.members import shown
from flagsvc.server.store.schema import feature_tags, features, tag_types, tags
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import LONGEST_TAG, SHORTEST_TAG, url_problem
from flagsvc.server.store.timestamps import format_time, read_time
from flagsvc.server.store.upsert import rows_in, upsert
from flagsvc.server.store.writer import Writer

FIELDS = ("name", "description", "icon", "color")
CHANGEABLE = FIELDS[1:]
NO_TYPE = "Could not find tag-type"


def list_types(tx: Tx) -> list[Json]:
    """Return every tag type, in order of creation."""
    return [to_json(row) for row in tx.db.execute(select(tag_types).order_by(tag_types.c.created_at, tag_types.c.name))]


def to_json(row: Row[Any]) -> Json:
    """Return a tag type as the API answers it."""
    return shown(row, *FIELDS)


def find(tx: Tx, name: str) -> Json:
    """Return a tag type. Raises CallerError (404)."""
    return WRITER.require(tx, name)


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create a tag type and return the members of the request. Raises CallerError (400, 409).

    `wanted` has name, and may have description, icon and color.
    """
    check_new_name(tx, wanted["name"])
    given = {key: wanted[key] for key in FIELDS if key in wanted}
    WRITER.put(tx, given, tell=lambda whole: given)
    return given


def check_new_name(tx: Tx, name: str) -> None:
    """Raise CallerError for a name that a new tag type cannot have: invalid (400) or in use (409)."""
    check_name(name)
    if WRITER.find(tx, name) is not None:
        raise CallerError("NameExistsError", f"There already exists a tag-type with the name {name}")


def check_name(name: str) -> None:
    """Raise CallerError (400) for an invalid name of a tag type."""
    raise_problems(url_problem(name, "name", shortest=SHORTEST_TAG, longest=LONGEST_TAG))


def check_types_exist(tx: Tx, names: Iterable[str]) -> None:
    """Raise CallerError (400) for the first of these tag types that does not exist."""
    wanted = list(dict.fromkeys(names))
    known = {name for (name,) in rows_in(tx, select(tag_types.c.name), tag_types.c.name, wanted)}
    missing = next((name for name in wanted if name not in known), None)
    if missing is not None:
        raise bad_data(f"Tag type '{missing}' does not exist")


def change(tx: Tx, name: str, wanted: Mapping[str, Any]) -> None:
    """Change description, icon and color of a tag type, those that are present. Raises CallerError (400).

    As on the real server, a tag type that does not exist is not an error.
    """
    check_name(name)
    if WRITER.find(tx, name) is not None:
        WRITER.put(tx, {"name": name} | {key: wanted[key] for key in CHANGEABLE if key in wanted})


def remove(tx: Tx, *names: str) -> None:
    """Delete tag types, and their tags from every feature. Raises CallerError (404)."""
    for name in names:
        find(tx, name)
    WRITER.remove(tx, *names)


def _belongings(tx: Tx, names: Sequence[str]) -> dict[str, Json]:
    rows = tx.db.execute(select(tag_types).where(tag_types.c.name.in_(names)))
    return {row.name: {"createdAt": format_time(row.created_at), "tags": tags_of(tx, row.name)} for row in rows}


def put_back_tags(tx: Tx, wanted: Sequence[Mapping[str, Any]]) -> None:
    """Create tags as events hold them, for the features that had them and exist."""
    rows = [{"type": each["type"], "value": each["value"], "created_at": read_time(each["createdAt"])} for each in wanted]
    upsert(tx, tags, rows, ())
    by = {"created_by_id": None if tx.actor is None else tx.actor.id, "created_at": tx.now}
    for each in wanted:
        same = {"type": each["type"], "value": each["value"]} | by
        names = rows_in(tx, select(features.c.name), features.c.name, each["features"])
        upsert(tx, feature_tags, [same | {"feature": name} for (name,) in names], ())


def tags_of(tx: Tx, name: str) -> list[Json]:
    """Return the tags of a type by value, with the features that have them."""
    return whole_tags(tx, tx.db.execute(select(tags).where(tags.c.type == name).order_by(tags.c.value)).all())


def whole_tags(tx: Tx, rows: Iterable[Row[Any]]) -> list[Json]:
    """Return tags as events hold them, with the features that have them."""
    tag = feature_tags.c
    return [
        {
            "type": row.type,
            "value": row.value,
            "createdAt": format_time(row.created_at),
            "features": list(
                tx.db.execute(
                    select(tag.feature).where(tag.type == row.type, tag.value == row.value).order_by(tag.feature)
                ).scalars()
            ),
        }
        for row in rows
    ]


WRITER = Writer(
    table=tag_types,
    show=lambda tx, rows: [to_json(row) for row in rows],
    columns=lambda tx, whole: {name: whole.get(name) for name in CHANGEABLE},
    created="tag-type-created",
    updated="tag-type-updated",
    deleted="tag-type-deleted",
    unknown=NO_TYPE,
    more=_belongings,
    bring=lambda tx, wholes: put_back_tags(tx, [tag for whole in wholes for tag in whole.get("tags", ())]),
)
