"""Strategy types: built-in ones, and custom ones that SDKs implement; as on the real server's `/api/admin/strategies`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, select

from flagsvc.server.store.checks import Json, name_problem, raise_problems
from flagsvc.server.store.errors import CallerError, not_found
from flagsvc.server.store.members import columns_of, shown
from flagsvc.server.store.resources.segments import strategies_to_json, used_strategies_query
from flagsvc.server.store.schema import strategies, strategy_types
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem
from flagsvc.server.store.writer import Writer

TEXT_FIELDS = ("title", "description")
MEMBERS = ("displayName", "title", "description", "parameters", "deprecated", "sortOrder")
"""The members of a strategy type that a change sets; only events hold `sortOrder`."""
PARAMETER_FIELDS = ("name", "type", "description", "required")
"""The members of a parameter that are stored."""


def list_types(tx: Tx) -> list[Json]:
    """Return every strategy type, in order."""
    query = select(strategy_types).order_by(strategy_types.c.sort_order, strategy_types.c.name)
    return [to_json(row) for row in tx.db.execute(query)]


def to_json(row: Row[Any]) -> Json:
    """Return a strategy type as the API answers it."""
    editable = {"editable": not row.built_in}
    return shown(row, "displayName", "name") | editable | shown(row, "description", "parameters", "deprecated", "title")


def find(tx: Tx, name: str) -> Json:
    """Return a strategy type. Raises CallerError (404)."""
    return WRITER.require(tx, name)


def strategies_using(tx: Tx, name: str) -> list[Json]:
    """Return the strategies of this type of active features."""
    return strategies_to_json(tx.db.execute(used_strategies_query().where(strategies.c.name == name)))


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create a strategy type and return it. Raises CallerError (400, 409).

    `wanted` has name and parameters, and may have title and description.
    """
    name = wanted["name"]
    _check(name, wanted)
    if WRITER.find(tx, name) is not None:
        raise CallerError("NameExistsError", f"Strategy with name {name} already exist!")
    return WRITER.put(tx, {"name": name} | _members(wanted))[0]


def _check(name: str, wanted: Mapping[str, Any]) -> None:
    """Raise CallerError (400) with all problems of a strategy type."""
    parameters = enumerate(wanted["parameters"])
    problems = (text_problem(each["name"], f"parameters[{index}].name") for index, each in parameters)
    raise_problems(name_problem(name), *problems)


def _members(wanted: Mapping[str, Any]) -> Json:
    kept = {key: wanted[key] for key in TEXT_FIELDS if key in wanted}
    parameters = [{key: each[key] for key in PARAMETER_FIELDS if key in each} for each in wanted["parameters"]]
    return kept | {"parameters": parameters}


def change(tx: Tx, name: str, wanted: Mapping[str, Any]) -> None:
    """Replace the parameters of a strategy type, and its title and description if present. Raises CallerError (400, 403, 404)."""
    _check(name, wanted)
    _check_editable(find(tx, name))
    WRITER.put(tx, {"name": name} | _members(wanted))


def _check_editable(found: Json) -> None:
    """Raise CallerError (403; ours: the real server answers 500) for a built-in strategy type."""
    if not found["editable"]:
        raise CallerError("OperationDeniedError", f"Cannot edit strategy {found['name']}")


def deprecate(tx: Tx, name: str) -> None:
    """Mark a strategy type, custom or built-in, as deprecated. Raises CallerError (404)."""
    if WRITER.find(tx, name) is None:
        raise not_found(f"Could not find strategy with name {name}")
    WRITER.put(tx, {"name": name, "deprecated": True})


def reactivate(tx: Tx, name: str) -> None:
    """Mark a strategy type as not deprecated. Raises CallerError (404)."""
    find(tx, name)
    WRITER.put(tx, {"name": name, "deprecated": False})


def remove(tx: Tx, *names: str) -> None:
    """Delete custom strategy types; features that use them keep their strategies. Raises CallerError (403, 404)."""
    for name in names:
        _check_editable(find(tx, name))
    WRITER.remove(tx, *names)


def _places(tx: Tx, names: Sequence[str]) -> dict[str, Json]:
    rows = tx.db.execute(select(strategy_types).where(strategy_types.c.name.in_(names)))
    return {row.name: shown(row, "sortOrder", "createdAt") for row in rows}


def _kind_of_change(before: Json, after: Json) -> str:
    if before["deprecated"] == after["deprecated"] or before | {"deprecated": after["deprecated"]} != after:
        return "strategy-updated"
    return "strategy-deprecated" if after["deprecated"] else "strategy-reactivated"


def is_used(tx: Tx, name: str) -> bool:
    """Return whether a strategy of a feature, archived or not, is of a type."""
    return tx.db.execute(select(strategies.c.id).where(strategies.c.name == name).limit(1)).first() is not None


WRITER = Writer(
    table=strategy_types,
    show=lambda tx, rows: [to_json(row) for row in rows],
    columns=lambda tx, whole: columns_of(whole, (name for name in MEMBERS if name in whole)),
    created="strategy-created",
    updated=_kind_of_change,
    deleted="strategy-deleted",
    unknown="No strategy found",
    more=_places,
    new={"displayName": None, "title": None, "description": None, "parameters": [], "deprecated": False},
)
