"""Tag types: the kinds of tags there are; as on the real server's `/api/admin/tag-types`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from flagsvc.server.store.checks import Json, invalid
from flagsvc.server.store.refusals import Refusal, bad_data, not_found
from flagsvc.server.store.schema import tag_types
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import url_problem
from flagsvc.server.store.upsert import chunks

SHORTEST, LONGEST = 2, 50
FIELDS = ("name", "description", "icon", "color")
CHANGEABLE = FIELDS[1:]


def list_types(tx: Tx) -> list[Json]:
    """Return every tag type in the order of creation."""
    return [_shown(row) for row in tx.db.execute(select(tag_types).order_by(tag_types.c.created_at, tag_types.c.name))]


def _shown(row: Row[Any]) -> Json:
    """Return a tag type as the wire shows one."""
    return {"name": row.name, "description": row.description, "icon": row.icon, "color": row.color}


def find(tx: Tx, name: str) -> Json:
    """Return a tag type. Raises Refusal (404)."""
    row = tx.db.execute(select(tag_types).where(tag_types.c.name == name)).first()
    if row is None:
        raise not_found("Could not find tag-type")
    return _shown(row)


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Make a tag type of a name, perhaps with description, icon and color, and return what was given. Raises Refusal (400, 409)."""
    check_new(tx, wanted["name"])
    given = {key: wanted[key] for key in FIELDS if key in wanted}
    tx.db.execute(insert(tag_types).values(created_at=tx.now, **given))
    tx.event("tag-type-created", data=given)
    return given


def check_new(tx: Tx, name: str) -> None:
    """Raise Refusal for a name that no new tag type may have: no good one (400), one that is taken (409)."""
    check_name(name)
    if tx.db.execute(select(tag_types.c.name).where(tag_types.c.name == name)).first():
        raise Refusal("NameExistsError", f"There already exists a tag-type with the name {name}")


def check_name(name: str) -> None:
    """Raise Refusal (400) for a name that no tag type may have."""
    problem = url_problem(name, "name", shortest=SHORTEST, longest=LONGEST)
    if problem is not None:
        raise invalid(problem)


def check_known(tx: Tx, names: Iterable[str]) -> None:
    """Raise Refusal (400) for the first of these tag types that does not exist."""
    wanted = list(dict.fromkeys(names))
    known: set[str] = set()
    for some in chunks(wanted):
        known |= set(tx.db.execute(select(tag_types.c.name).where(tag_types.c.name.in_(some))).scalars())
    missing = next((name for name in wanted if name not in known), None)
    if missing is not None:
        raise bad_data(f"Tag type '{missing}' does not exist")


def change(tx: Tx, name: str, wanted: Mapping[str, Any]) -> None:
    """Change what is given of description, icon and color. As on the real server one that does not exist is no error.

    Raises Refusal (400).
    """
    check_name(name)
    given = {key: wanted[key] for key in CHANGEABLE if key in wanted}
    if not given:
        return
    changed = tx.db.execute(update(tag_types).where(tag_types.c.name == name).values(given))
    if changed.rowcount:
        tx.event("tag-type-updated", data={"name": name} | given)


def remove(tx: Tx, name: str) -> None:
    """Delete a tag type, with its tags on every feature. Raises Refusal (404)."""
    before = find(tx, name)
    tx.db.execute(delete(tag_types).where(tag_types.c.name == name))
    tx.event("tag-type-deleted", data=before)
