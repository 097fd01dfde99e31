"""Context fields: what constraints may look at, and the values these may have; as on the real server's `/api/admin/context`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, Text, cast, select

from flagsvc.server.store.checks import Json, make_detail, name_problem, raise_problems
from flagsvc.server.store.errors import CallerError, Detail, not_found
from flagsvc.server.store.members import columns_of, shown
from flagsvc.server.store.resources.projects import check_project_exists
from flagsvc.server.store.resources.segments import strategies_to_json, used_strategies_query
from flagsvc.server.store.schema import context_fields, strategies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem
from flagsvc.server.store.writer import Whole, Writer

LONGEST_DESCRIPTION = 250
LONGEST_VALUE = 100
NAME_TAKEN = "A context field with that name already exist"
NO_FIELD = "Could not find Context field with name {}"
IN_USE = "This context field is in use by existing flags. To delete it, first remove its usage from all flags."


def list_fields(tx: Tx) -> list[Json]:
    """Return every context field by name, with how many features and projects constrain it; archived features do not count."""
    uses: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in tx.db.execute(_constrained_strategies()):
        for constraint in row.constraints:
            uses[constraint["contextName"]].add((row.project, row.feature))
    rows = tx.db.execute(select(context_fields).order_by(context_fields.c.name)).all()
    return [to_json(row, uses.get(row.name, set())) for row in rows]


def list_choices(tx: Tx) -> list[Json]:
    """Return every context field by name, without its uses: name, whether rollouts may stick to it, and legal values."""
    columns = context_fields.c[("name", "stickiness", "legal_values")]
    return [
        {"name": name, "stickiness": stickiness, "legal": [each["value"] for each in legal or ()]}
        for name, stickiness, legal in tx.db.execute(select(*columns).order_by(context_fields.c.name))
    ]


def _constrained_strategies() -> Any:
    """Return the query for the strategies with constraints of active features."""
    return used_strategies_query().where(cast(strategies.c.constraints, Text) != "[]")


def to_json(row: Row[Any], uses: set[tuple[str, str]] | None = None) -> Json:
    """Return a context field as the API answers it."""
    found = shown(row, "name", "description", "stickiness", "sortOrder", "legalValues", "createdAt")
    if uses is not None:
        found |= {"usedInProjects": len({project for project, _ in uses}), "usedInFeatures": len(uses)}
    return found | ({"project": row.project} if row.project else {})


def find(tx: Tx, name: str) -> Json:
    """Return a context field. Raises CallerError (404)."""
    return WRITER.require(tx, name)


def strategies_using(tx: Tx, name: str) -> list[Json]:
    """Return the strategies of active features that constrain a context field."""
    return strategies_to_json(rows_using(tx, [name]).get(name, ()))


def rows_using(tx: Tx, names: Collection[str]) -> dict[str, list[Row[Any]]]:
    """Return the rows of the strategies of active features that constrain context fields, by field."""
    wanted = set(names)
    found: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in tx.db.execute(_constrained_strategies()) if wanted else ():
        for name in wanted.intersection(each["contextName"] for each in row.constraints):
            found[name].append(row)
    return found


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create a context field and return it.

    `wanted` has a name, and may have description, stickiness, sortOrder, legalValues and project. Raises CallerError (400, 409).
    """
    check_name_free(tx, wanted["name"])
    _check(wanted)
    return WRITER.put(tx, {name: wanted[name] for name in ("name", *MEMBERS) if name in wanted})[0]


def _check(wanted: Mapping[str, Any]) -> None:
    """Raise CallerError (400) for the first problem of a field."""
    empty = make_detail('"project" is not allowed to be empty') if wanted.get("project") == "" else None
    raise_problems(name_problem(wanted["name"]) or _description_problem(wanted) or _values_problem(wanted) or empty)


def _description_problem(wanted: Mapping[str, Any]) -> Detail | None:
    text = wanted.get("description")
    return text_problem(text, "description", longest=LONGEST_DESCRIPTION) if text else None


def _values_problem(wanted: Mapping[str, Any]) -> Detail | None:
    """Return what is wrong with the legal values: an empty, too long or repeated one."""
    seen: set[str] = set()
    for index, each in enumerate(wanted.get("legalValues", ())):
        label = f"legalValues[{index}]"
        problem = text_problem(each["value"], f"{label}.value", longest=LONGEST_VALUE)
        if problem is None and each["value"] in seen:
            problem = make_detail(f'"{label}" contains a duplicate value', each)
        if problem is not None:
            return problem
        seen.add(each["value"])
    return None


def check_name(tx: Tx, name: str) -> None:
    """Raise CallerError for a name that a new context field cannot have: invalid (400) or in use (409)."""
    raise_problems(name_problem(name))
    check_name_free(tx, name)


def check_name_free(tx: Tx, name: str) -> None:
    """Raise CallerError (409) for the name of an existing context field."""
    if WRITER.find(tx, name) is not None:
        raise CallerError("NameExistsError", NAME_TAKEN)


def change(tx: Tx, name: str, wanted: Mapping[str, Any]) -> None:
    """Change a context field. Raises CallerError (400, 404).

    As on the real server, the sort order becomes 0; without stickiness and legal values the field loses its own. Description and
    project stay if they are absent.
    """
    find(tx, name)
    _check({**wanted, "name": name})
    named = {key: wanted[key] for key in ("description", "project") if wanted.get(key) is not None}
    reset = {key: wanted.get(key, NEW[key]) for key in ("stickiness", "legalValues")}
    WRITER.put(tx, {"name": name, "sortOrder": 0} | named | reset)


def set_legal_value(tx: Tx, name: str, value: Json) -> None:
    """Add a legal value to a context field, or change its description. Raises CallerError (400, 404)."""
    before = find(tx, name)
    raise_problems(text_problem(value["value"], "value", longest=LONGEST_VALUE))
    values = [value if each["value"] == value["value"] else each for each in before["legalValues"]]
    WRITER.put(tx, {"name": name, "legalValues": values if value in values else [*values, value]})


def remove_legal_value(tx: Tx, name: str, value: str) -> None:
    """Remove a legal value from a context field; an unknown value changes nothing. Raises CallerError (404)."""
    kept = [each for each in find(tx, name)["legalValues"] if each["value"] != value]
    WRITER.put(tx, {"name": name, "legalValues": kept})


def remove(tx: Tx, *names: str) -> None:
    """Delete context fields. Raises CallerError: 404, and 409 where strategies of active features constrain one of them."""
    there = WRITER.read(tx, names)
    for name in names:
        if name not in there:
            raise not_found(NO_FIELD.format(name))
    if rows_using(tx, names):
        raise CallerError("ConflictError", IN_USE)
    WRITER.remove(tx, *names)


def _check_projects(tx: Tx, before: Mapping[str, Json], wholes: Sequence[Whole]) -> None:
    for project in dict.fromkeys(each.get("project") for each in wholes):
        check_project_exists(tx, project)


MEMBERS = ("description", "stickiness", "sortOrder", "legalValues", "project")
"""The members of a context field that a change sets."""
NEW: Json = {"description": None, "stickiness": False, "sortOrder": 0, "legalValues": []}
"""A new context field, which belongs to all projects."""
WRITER = Writer(
    table=context_fields,
    show=lambda tx, rows: [to_json(row) for row in rows],
    columns=lambda tx, whole: columns_of({"project": None, **whole}, MEMBERS),
    created="context-field-created",
    updated="context-field-updated",
    deleted="context-field-deleted",
    unknown=NO_FIELD,
    check=_check_projects,
    optional=("project",),
    new=NEW,
)
