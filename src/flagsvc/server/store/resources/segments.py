"""Segments, named lists of constraints that strategies share; as on the real server's `/api/admin/segments`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, Select, delete, distinct, func, insert, select

from flagsvc.server.store.checks import Json, check_segment_count, raise_problems
from flagsvc.server.store.constraints import MAX_VALUE_LENGTH, check_constraints, limit_exceeded
from flagsvc.server.store.errors import CallerError, Detail, bad_data, not_found
from flagsvc.server.store.members import shown
from flagsvc.server.store.resources.projects import check_project_exists
from flagsvc.server.store.resources.strategies import StrategyPlace, read_legal_values, read_whole, record_change
from flagsvc.server.store.schema import features, segments, strategies, strategy_segments
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem
from flagsvc.server.store.upsert import chunks, count_rows, rows_in, upsert
from flagsvc.server.store.writer import Whole, Writer

MAX_NAME_LENGTH = 255
"""Ours: the real server accepts any length, but its database fails above some thousands."""
NO_SEGMENT = 'No segment exists with ID "{}"'
MAX_SEGMENTS = 300
"""The most segments of a server."""
MAX_VALUES = 1000
"""The most values of all constraints of a segment together."""


def list_segments(tx: Tx) -> list[Json]:
    """Return every segment by name, with the numbers of features and projects that use it, without archived features."""
    query = (
        select(
            strategy_segments.c.segment_id,
            func.count(distinct(features.c.project)).label("projects"),
            func.count(distinct(features.c.name)).label("features"),
        )
        .join(strategies, strategies.c.id == strategy_segments.c.strategy_id)
        .join(features, features.c.name == strategies.c.feature)
        .where(features.c.archived_at.is_(None))
        .group_by(strategy_segments.c.segment_id)
    )
    uses = {row.segment_id: {"usedInProjects": row.projects, "usedInFeatures": row.features} for row in tx.db.execute(query)}
    rows = tx.db.execute(select(segments).order_by(segments.c.name)).all()
    return [to_json(row) | uses.get(row.id, {"usedInProjects": 0, "usedInFeatures": 0}) for row in rows]


def to_json(row: Row[Any]) -> Json:
    """Return a segment as the API answers it."""
    owner = {"project": row.project} if row.project else {}
    return shown(row, "id", "name", "description") | owner | shown(row, "constraints", "createdBy", "createdAt")


def find(tx: Tx, number: int) -> Json:
    """Return a segment. Raises CallerError (404)."""
    return WRITER.require(tx, number)


def unknown_segment(number: object) -> CallerError:
    return not_found(NO_SEGMENT.format(number))


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create a segment and return it. Raises CallerError (400, 409).

    `wanted` has name and constraints, and may have description and project.
    """
    if count_rows(tx, segments) >= MAX_SEGMENTS:
        raise limit_exceeded("segment", MAX_SEGMENTS)
    members = _checked_members(tx, wanted) | {"createdBy": None if tx.actor is None else tx.actor.name}
    return WRITER.put(tx, {"description": wanted.get("description")} | members)[0]


def _checked_members(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Return a segment's name, constraints and project. Raises CallerError (400)."""
    name, constraints = wanted["name"], wanted["constraints"]
    raise_problems(_name_problem(name))
    for index, each in enumerate(constraints):
        _check_texts(each, f"constraints[{index}]")
    checked = check_constraints(constraints, read_legal_values(tx, (each["contextName"] for each in constraints)))
    if sum(len(each["values"]) for each in checked) > MAX_VALUES:
        raise bad_data(f"Segments may not have more than {MAX_VALUES} values")
    return {"name": name, "constraints": checked, "project": wanted.get("project") or None}


def _name_problem(name: str) -> Detail | None:
    return text_problem(name, "name", longest=MAX_NAME_LENGTH)


def _check_texts(constraint: Json, label: str) -> None:
    """Raise CallerError for an empty context field name, and for an empty or too long value."""
    problems = [text_problem(constraint["contextName"], f"{label}.contextName")]
    for index, value in enumerate(constraint.get("values", ())):
        problems.append(text_problem(value, f"{label}.values[{index}]", longest=MAX_VALUE_LENGTH))
    raise_problems(next(filter(None, problems), None))


def check_name(tx: Tx, name: str) -> None:
    """Raise CallerError for a name that a new segment cannot have: empty or too long (400), or in use (409)."""
    if not name:
        raise bad_data("Segment name cannot be empty")
    raise_problems(_name_problem(name))
    check_name_free(tx, name)


def check_name_free(tx: Tx, name: str) -> None:
    """Raise CallerError (409) for the name of an existing segment."""
    if tx.db.execute(select(segments.c.id).where(segments.c.name == name)).first():
        raise CallerError("NameExistsError", "Segment name already exists")


def change(tx: Tx, number: int, wanted: Mapping[str, Any]) -> None:
    """Change a segment. Without a project it belongs to all projects; without a description it keeps its own.

    Raises CallerError (400, 404, 409).
    """
    members = _checked_members(tx, wanted)
    members |= {"description": wanted["description"]} if "description" in wanted else {}
    find(tx, number)
    check_users(tx, number, members["project"])
    WRITER.put(tx, {"id": number} | members)


def _check(tx: Tx, before: Mapping[int, Json], wholes: Sequence[Whole]) -> None:
    """Raise CallerError: 409 for a name in use, 400 for a new project that does not exist, or if others use it."""
    for whole in wholes:
        held = before.get(whole.get("id", 0), {})
        project = whole.get("project")
        if whole["name"] != held.get("name"):
            check_name_free(tx, whole["name"])
        if project != held.get("project"):
            check_project_exists(tx, project)
            check_users(tx, held.get("id"), project)


def check_users(tx: Tx, number: int | None, project: str | None) -> None:
    """Raise CallerError (400) if strategies of other projects use a segment that is to belong to one project; None is a new one."""
    if project is None or number is None:
        return
    users = list(dict.fromkeys(each["projectId"] for each in strategies_using(tx, number)))
    if any(each != project for each in users):
        raise bad_data(f"Invalid project. Segment is being used by strategies in other projects: {', '.join(sorted(users))}")


def strategies_using(tx: Tx, number: int) -> list[Json]:
    """Return the strategies of active features that use a segment."""
    query = used_strategies_query().join(strategy_segments, strategy_segments.c.strategy_id == strategies.c.id)
    return strategies_to_json(tx.db.execute(query.where(strategy_segments.c.segment_id == number)))


def used_strategies_query() -> Select[Any]:
    """Return the query for the strategies of features that are not archived."""
    found = select(strategies, features.c.project).join(features, features.c.name == strategies.c.feature)
    return found.where(features.c.archived_at.is_(None)).order_by(strategies.c.position)


def strategies_to_json(rows: Iterable[Row[Any]]) -> list[Json]:
    """Return strategies as the answers about usage contain them."""
    return [
        {
            "id": row.id,
            "projectId": row.project,
            "featureName": row.feature,
            "strategyName": row.name,
            "environment": row.environment,
        }
        for row in rows
    ]


def remove(tx: Tx, *numbers: int) -> bool:
    """Delete segments and return True; return False where strategies of active features use one. Raises CallerError (404)."""
    if any(strategies_using(tx, number) for number in numbers):
        return False
    for number in numbers:
        find(tx, number)
    WRITER.remove(tx, *numbers)
    return True


def uses_of(tx: Tx, number: int) -> list[Json]:
    """Return the strategies that use a segment, also those of archived features: id, and the segment's place there."""
    uses = strategy_segments.c
    query = select(uses.strategy_id, uses.position).where(uses.segment_id == number).order_by(uses.strategy_id)
    return [{"id": each, "position": place} for each, place in tx.db.execute(query)]


def _bring_uses(tx: Tx, wholes: Sequence[Whole]) -> None:
    """Give segments back to the strategies that used them and exist. Raises CallerError (409) for one of an active feature."""
    for whole in wholes:
        places = {each["id"]: each["position"] for each in whole.get("strategies", ())}
        for chunk in chunks(places):
            query = select(strategies.c.id, features.c.name, features.c.archived_at).join(
                features, features.c.name == strategies.c.feature
            )
            rows = tx.db.execute(query.where(strategies.c.id.in_(chunk))).all()
            active = next((row.name for row in rows if row.archived_at is None), None)
            if active is not None:
                raise CallerError("ConflictError", f"The flag {active}, which used the segment, is active again")
            found = [{"strategy_id": row.id, "segment_id": whole["id"], "position": places[row.id]} for row in rows]
            upsert(tx, strategy_segments, found, ())


def segments_of(tx: Tx, strategy: str) -> list[Json]:
    """Return the segments of a strategy, by its id; an empty list for an unknown one."""
    query = select(segments).join(strategy_segments, strategy_segments.c.segment_id == segments.c.id)
    query = query.where(strategy_segments.c.strategy_id == strategy).order_by(strategy_segments.c.position)
    return [to_json(row) for row in tx.db.execute(query)]


def set_segments(tx: Tx, strategy: str, numbers: Sequence[int], *, project: str, environment: str) -> None:
    """Set the segments of a strategy in a project and an environment.

    Raises CallerError: 400 for too many, 404 for a strategy or a segment that does not exist. Ours: the real server answers 500 for
    what does not exist and for a repeated segment, and does not check the project and environment of the strategy.
    """
    check_segment_count(numbers)
    feature = check_strategy(tx, strategy, project, environment)
    wanted = list(dict.fromkeys(numbers))
    check_segments_exist(tx, wanted)
    before = read_whole(tx, strategy)
    tx.db.execute(delete(strategy_segments).where(strategy_segments.c.strategy_id == strategy))
    rows = [{"strategy_id": strategy, "segment_id": each, "position": place} for place, each in enumerate(wanted)]
    if rows:
        tx.db.execute(insert(strategy_segments), rows)
    record_change(tx, StrategyPlace(project, feature, environment), strategy, before)


def check_strategy(tx: Tx, strategy: str, project: str, environment: str) -> str:
    """Return the feature of a strategy. Raises CallerError (404) unless the project has the strategy in the environment."""
    query = select(strategies.c.feature).join(features, features.c.name == strategies.c.feature)
    place = (features.c.project == project, strategies.c.environment == environment)
    feature = tx.db.execute(query.where(strategies.c.id == strategy, *place)).scalar_one_or_none()
    if feature is None:
        raise not_found(f"Could not find strategy with id {strategy}")
    return str(feature)


def check_segments_exist(tx: Tx, numbers: Sequence[int]) -> None:
    """Raise CallerError (404) for the first of these segments that does not exist."""
    known = {number for (number,) in rows_in(tx, select(segments.c.id), segments.c.id, numbers)}
    missing = next((each for each in numbers if each not in known), None)
    if missing is not None:
        raise unknown_segment(missing)


WRITER = Writer(
    table=segments,
    show=lambda tx, rows: [to_json(row) for row in rows],
    columns=lambda tx, whole: {
        "name": whole["name"],
        "description": whole["description"],
        "constraints": whole["constraints"],
        "project": whole.get("project"),
        "created_by": whole["createdBy"],
    },
    created="segment-created",
    updated="segment-updated",
    deleted="segment-deleted",
    unknown=NO_SEGMENT,
    place=lambda whole: {"project": whole.get("project")},
    check=_check,
    more=lambda tx, numbers: {number: {"strategies": uses_of(tx, number)} for number in numbers},
    release=lambda tx, numbers: tx.db.execute(delete(strategy_segments).where(strategy_segments.c.segment_id.in_(numbers))),
    bring=_bring_uses,
    optional=("project",),
    new={"description": None, "constraints": []},
)
