"""Checks the values of a backup's rows against what the server itself writes (decision 0031).

Seed files have the same shapes, which take a value as it stands. A refused value would fail when somebody reads the row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any, NamedTuple

from sqlalchemy import JSON, Boolean, Float, Integer, String, TableClause
from sqlalchemy.types import TypeEngine

from flagsvc.core.errors import BackupError
from flagsvc.http.shapes import Shape
from flagsvc.http.shapes.exact import Choice, Exact, List, place_of, problems
from flagsvc.http.shapes.violation import Fault
from flagsvc.server.store import schema
from flagsvc.server.store.actors import PROJECT_ROLES, ROOT_ROLES
from flagsvc.server.store.backup.lines import Row
from flagsvc.server.store.columns import UtcDateTime
from flagsvc.server.store.event_views import WAYS
from flagsvc.server.store.keyring import PERSONAL
from flagsvc.server.store.resources.api_tokens import READ_PERMISSIONS
from flagsvc.server.store.resources.maintenance import STATE_KEY as MAINTENANCE
from flagsvc.server.store.seed import keys
from flagsvc.server.store.seed.once import SEEDED
from flagsvc.settings.kinds import printable

HASH = re.compile("[0-9a-f]{64}")
PROSES = List(keys.PROSE)
STATE: Mapping[str, Shape] = {
    MAINTENANCE: keys.FLAG,
    SEEDED: Exact("digests", lambda value: isinstance(value, str) or _are_digests(value), {}),
    schema.CHANGE_REQUESTS: List(keys.SECTIONS[schema.CHANGE_REQUESTS]),
}
"""Key of a setting → the shape of its value."""
SHAPES: Mapping[str, Shape] = {
    "state.key": Choice(*STATE),
    "projects.mode": keys.MODE,
    "users.root_role": Choice(*ROOT_ROLES),
    "project_roles.role": Choice(*PROJECT_ROLES),
    "tokens.kind": Choice(*READ_PERMISSIONS, PERSONAL),
    "tokens.hash": Exact("a SHA-256 in hex", lambda value: isinstance(value, str) and HASH.fullmatch(value) is not None, {}),
    "tokens.projects": List(keys.TEXT),
    "strategy_types.name": keys.NAME,
    "strategy_types.parameters": keys.TYPE_PARAMETERS,
    "context_fields.name": keys.NAME,
    "context_fields.legal_values": keys.LEGAL_VALUES,
    "segments.constraints": keys.CONSTRAINTS,
    "features.name": keys.NAME,
    "feature_environments.variants": keys.VARIANTS,
    "strategies.parameters": keys.PARAMETERS,
    "strategies.constraints": keys.CONSTRAINTS,
    "strategies.variants": keys.VARIANTS,
    "dependencies.variants": PROSES,
    "events.data": keys.OBJECT,
    "events.before": keys.OBJECT,
    "events.tags": keys.OBJECTS,
    "events.way": Choice(*WAYS),
    "applications.strategies": PROSES,
    "addons.provider": Choice("webhook"),
    "addons.parameters": keys.PARAMETERS,
    **dict.fromkeys(("addons.events", "addons.projects", "addons.environments", "identities.roles"), PROSES),
}
"""Table and column → the shape of its values, besides the type of the column. Every JSON column has a shape."""


def decode_row(found: TableClause, row: Row) -> dict[str, Any]:
    """Return the values of a row as the database takes them. Raises BackupError for the first that the server does not write."""
    if set(row.values) != set(found.c.keys()):
        raise BackupError(f"line {row.line} of the backup: the columns are not those of the table `{row.table}`")
    return {name: _decode(found.c[name], value, row) for name, value in row.values.items()}


def _decode(key: Any, value: Any, row: Row) -> Any:
    column = schema.METADATA.tables[row.table].c.get(key.name)
    if value is None and (column is None or column.nullable):
        return None
    kind = next((each for each in VALUE_KINDS if isinstance(key.type, each.column)), ANY)
    shape = STATE.get(str(row.values["key"])) if column is schema.state.c.value else SHAPES.get(f"{row.table}.{key.name}")
    fault = next(problems(shape, value), None) if shape else None
    if fault is not None:
        raise refused(row, _expected(fault), _place(key.name, fault))
    try:
        if isinstance(value, kind.given):
            return kind.read(value)
    except (ValueError, OverflowError):
        pass
    raise refused(row, f"expected {kind.expected}", key.name)


def refused(row: Row, expected: str, place: str) -> BackupError:
    """Return the error for a value of a row: what was expected, and at which place, its column first."""
    return BackupError(f"line {row.line} of the backup: {expected} as `{printable(place, 200)}` of the table `{row.table}`")


def _expected(fault: Fault) -> str:
    if fault.kind == "missing":
        return f"expected `{fault.text}`"
    if fault.kind == "extra":
        return f"expected no `{printable(fault.text)}`"
    return fault.text if fault.text.startswith("expected ") else f"expected {fault.text}"


def _place(column: str, fault: Fault) -> str:
    return place_of(Fault(fault.kind, fault.text, keys=[*fault.keys, column]))


def _are_digests(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _read_time(value: str) -> datetime:
    """Return a time in UTC; one without a zone is in UTC."""
    moment = datetime.fromisoformat(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _read_json(value: Any) -> Any:
    """Return a text or a JSON value. Raises ValueError where a database may not store it."""
    if not keys.is_storable(value):
        raise ValueError
    return value


def _read_whole(value: int) -> int:
    """Return a whole number of at most 64 bits. Raises ValueError."""
    if isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _read_float(value: float) -> float:
    """Return a number. Raises ValueError or OverflowError."""
    if isinstance(value, bool) or not isfinite(value):
        raise ValueError
    return float(value)


class ValueKind(NamedTuple):
    """How a backup holds the values of a type of column: the type in JSON, the function that checks and reads, words for errors."""

    column: type[TypeEngine[Any]]
    given: type | tuple[type, ...]
    read: Callable[[Any], Any]
    expected: str


STORABLE = "without a NUL and without half of a surrogate pair"
ANY = ValueKind(JSON, object, _read_json, f"a JSON value {STORABLE}, of at most {keys.DEEPEST} levels")
VALUE_KINDS = (
    ValueKind(UtcDateTime, str, _read_time, "a time"),
    ValueKind(Boolean, bool, bool, "true or false"),
    ValueKind(Integer, int, _read_whole, "a whole number of at most 64 bits"),
    ValueKind(Float, (int, float), _read_float, "a number"),
    ValueKind(String, str, _read_json, f"a text {STORABLE}"),
)
