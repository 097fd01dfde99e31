"""Strategy types: built-in ones, and custom ones that SDKs implement; as on the real server's `/api/admin/strategies`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from flagsvc.server.store.checks import Json, invalid, name_problem
from flagsvc.server.store.errors import CallerError, not_found
from flagsvc.server.store.resources.segments import strategies_to_json, used_strategies_query
from flagsvc.server.store.schema import strategies, strategy_types
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem
from flagsvc.server.store.timestamps import format_time, read_time

TEXT_FIELDS = ("title", "description")
COLUMNS = {
    "displayName": "display_name",
    "title": "title",
    "description": "description",
    "parameters": "parameters",
    "deprecated": "deprecated",
}
"""Member of a strategy type → its column."""
PARAMETER_FIELDS = ("name", "type", "description", "required")
"""The members of a parameter that are stored."""


def list_types(tx: Tx) -> list[Json]:
    """Return every strategy type, in order."""
    query = select(strategy_types).order_by(strategy_types.c.sort_order, strategy_types.c.name)
    return [to_json(row) for row in tx.db.execute(query)]


def to_json(row: Row[Any]) -> Json:
    """Return a strategy type as the API answers it."""
    return {
        "displayName": row.display_name,
        "name": row.name,
        "editable": not row.built_in,
        "description": row.description,
        "parameters": row.parameters,
        "deprecated": row.deprecated,
        "title": row.title,
    }


def find(tx: Tx, name: str) -> Json:
    """Return a strategy type. Raises CallerError (404)."""
    row = tx.db.execute(select(strategy_types).where(strategy_types.c.name == name)).first()
    if row is None:
        raise not_found("No strategy found")
    return to_json(row)


def strategies_using(tx: Tx, name: str) -> list[Json]:
    """Return the strategies of this type of active features."""
    return strategies_to_json(tx.db.execute(used_strategies_query().where(strategies.c.name == name)))


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create a strategy type and return it. Raises CallerError (400, 409).

    `wanted` has name and parameters, and may have title and description.
    """
    name = wanted["name"]
    _check(name, wanted)
    if tx.db.execute(select(strategy_types.c.name).where(strategy_types.c.name == name)).first():
        raise CallerError("NameExistsError", f"Strategy with name {name} already exist!")
    tx.db.execute(insert(strategy_types).values(name=name, created_at=tx.now, **_columns(wanted)))
    created = find(tx, name)
    tx.record_event("strategy-created", data=created)
    return created


def _check(name: str, wanted: Mapping[str, Any]) -> None:
    """Raise CallerError (400) with all problems of a strategy type."""
    problems = [name_problem(name)]
    problems += [
        text_problem(each["name"], f"parameters[{index}].name") for index, each in enumerate(wanted["parameters"])
    ]
    found = [problem for problem in problems if problem is not None]
    if found:
        raise invalid(*found)


def _columns(wanted: Mapping[str, Any]) -> Json:
    """Return the columns of a strategy type that the request sets."""
    kept = {key: wanted[key] for key in TEXT_FIELDS if key in wanted}
    parameters = [{key: each[key] for key in PARAMETER_FIELDS if key in each} for each in wanted["parameters"]]
    return kept | {"parameters": parameters}


def change(tx: Tx, name: str, wanted: Mapping[str, Any]) -> None:
    """Replace the parameters of a strategy type, and its title and description if present. Raises CallerError (400, 403, 404)."""
    _check(name, wanted)
    before = find(tx, name)
    _check_editable(before)
    _write(tx, name, **_columns(wanted))
    tx.record_event("strategy-updated", before=before, data=find(tx, name))


def _check_editable(found: Json) -> None:
    """Raise CallerError (403; ours: the real server answers 500) for a built-in strategy type."""
    if not found["editable"]:
        raise CallerError("OperationDeniedError", f"Cannot edit strategy {found['name']}")


def _write(tx: Tx, name: str, **columns: Any) -> None:
    tx.db.execute(update(strategy_types).where(strategy_types.c.name == name).values(columns))


def deprecate(tx: Tx, name: str) -> None:
    """Mark a strategy type, custom or built-in, as deprecated. Raises CallerError (404)."""
    if not tx.db.execute(select(strategy_types.c.name).where(strategy_types.c.name == name)).first():
        raise not_found(f"Could not find strategy with name {name}")
    before = find(tx, name)
    _write(tx, name, deprecated=True)
    tx.record_event("strategy-deprecated", before=before, data=find(tx, name))


def reactivate(tx: Tx, name: str) -> None:
    """Mark a strategy type as not deprecated. Raises CallerError (404)."""
    before = find(tx, name)
    _write(tx, name, deprecated=False)
    tx.record_event("strategy-reactivated", before=before, data=find(tx, name))


def remove(tx: Tx, name: str) -> None:
    """Delete a custom strategy type; features that use it keep their strategies. Raises CallerError (403, 404)."""
    before = find_whole(tx, name)
    _check_editable(before)
    tx.db.execute(delete(strategy_types).where(strategy_types.c.name == name))
    tx.record_event("strategy-deleted", before=before)


def find_whole(tx: Tx, name: str) -> Json:
    """Return a strategy type with its place in the list, as events of its end hold it. Raises CallerError (404)."""
    found = find(tx, name)
    row = tx.db.execute(select(strategy_types).where(strategy_types.c.name == name)).one()
    return found | {"sortOrder": row.sort_order, "createdAt": format_time(row.created_at)}


def put_back(tx: Tx, whole: Mapping[str, Any]) -> None:
    """Make a strategy type what an event holds: it is changed, or created."""
    name = whole["name"]
    columns = {column: whole[key] for key, column in COLUMNS.items()}
    if tx.db.execute(select(strategy_types.c.name).where(strategy_types.c.name == name)).first():
        before = find(tx, name)
        _write(tx, name, **columns)
        tx.record_event(_kind_of_change(before, whole), before=before, data=find(tx, name))
    else:
        more = {"name": name, "sort_order": whole["sortOrder"], "created_at": read_time(whole["createdAt"])}
        tx.db.execute(insert(strategy_types).values(columns | more))
        tx.record_event("strategy-created", data=find_whole(tx, name))


def _kind_of_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if before["deprecated"] == after["deprecated"]:
        return "strategy-updated"
    return "strategy-deprecated" if after["deprecated"] else "strategy-reactivated"


def is_used(tx: Tx, name: str) -> bool:
    """Return whether a strategy of a feature, archived or not, is of a type."""
    return tx.db.execute(select(strategies.c.id).where(strategies.c.name == name).limit(1)).first() is not None
