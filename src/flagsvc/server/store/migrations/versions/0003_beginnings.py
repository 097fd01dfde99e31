"""The rows of every new database, as on the real server: names that data sets refer to without defining them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

Json = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
Moment = sa.DateTime(timezone=True)
TYPES: dict[str, sa.types.TypeEngine[Any]] = {"created_at": Moment, "legal_values": Json, "parameters": Json}

ENVIRONMENTS = (("development", "development", 2), ("production", "production", 3))

CONTEXT_FIELDS = (
    ("environment", "application environment", 0, False),
    ("userId", "userId", 1, False),
    ("appName", "application name", 2, False),
    ("currentTime", "date values", 3, False),
    ("sessionId", "sessionId", 4, True),
)
"""Name, description, sort order, whether it can be a stickiness."""

STRATEGY_TYPES: tuple[tuple[str, str, str, int, tuple[tuple[str, str, str, bool], ...]], ...] = (
    (
        "default",
        "Standard",
        "On for everybody, or for nobody. A gradual rollout of 100 % does the same and more.",
        1,
        (),
    ),
    (
        "flexibleRollout",
        "Gradual rollout",
        "On for a share of the callers, and always for the same ones.",
        0,
        (
            ("rollout", "percentage", "", False),
            (
                "stickiness",
                "string",
                "What decides who belongs together: default, userId, sessionId, random, or a field",
                True,
            ),
            ("groupId", "string", "Features of one group have the same share of the callers", True),
        ),
    ),
    (
        "remoteAddress",
        "IPs",
        "On for some addresses.",
        3,
        (("IPs", "list", "The addresses, or blocks of them", True),),
    ),
    (
        "applicationHostname",
        "Hosts",
        "On on some hosts.",
        4,
        (("hostNames", "list", "The names of the hosts", False),),
    ),
)
"""Name, display name, description, sort order, parameters (name, type, description, whether required)."""


def upgrade() -> None:
    """Add the rows to the tables of the earlier migrations."""
    now = datetime.now(UTC)
    for name, rows in _beginnings(now).items():
        columns = (sa.column(key, TYPES[key]) if key in TYPES else sa.column(key) for key in rows[0])
        op.bulk_insert(sa.table(name, *columns), rows)


def _beginnings(now: datetime) -> dict[str, list[dict[str, Any]]]:
    environments = [
        {"name": name, "type": kind, "sort_order": order, "enabled": True, "protected": False} for name, kind, order in ENVIRONMENTS
    ]
    project = {"id": "default", "name": "Default", "description": "Default project", "mode": "open"}
    return {
        "revision": [{"id": 1, "number": 1}],
        "environments": environments,
        "projects": [project | {"default_stickiness": "default", "created_at": now}],
        "project_environments": [{"project": "default", "environment": name} for name, _, _ in ENVIRONMENTS],
        "context_fields": [_context_field(*row, now) for row in CONTEXT_FIELDS],
        "strategy_types": [_strategy_type(*row, now) for row in STRATEGY_TYPES],
        "tag_types": [_simple(now)],
    }


def _simple(now: datetime) -> dict[str, Any]:
    description = "Used to simplify filtering of features"
    return {"name": "simple", "description": description, "icon": "#", "color": "#FFFFFF", "created_at": now}


def _context_field(name: str, what: str, order: int, stickiness: bool, now: datetime) -> dict[str, Any]:
    description = f"Allows you to constrain on {what}"
    row = {"name": name, "description": description, "sort_order": order, "stickiness": stickiness}
    return row | {"legal_values": [], "created_at": now}


def _strategy_type(
    name: str,
    display: str,
    description: str,
    order: int,
    parameters: tuple[tuple[str, str, str, bool], ...],
    now: datetime,
) -> dict[str, Any]:
    shown = [dict(zip(("name", "type", "description", "required"), each, strict=True)) for each in parameters]
    row = {"name": name, "display_name": display, "description": description, "parameters": shown}
    return row | {"built_in": True, "deprecated": False, "sort_order": order, "created_at": now}
