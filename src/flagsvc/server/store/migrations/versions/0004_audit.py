"""Events say what was before, and by which token, in which way and together with which others a change was made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

Json = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
EVENTS = sa.table(
    "events",
    sa.column("id"),
    sa.column("type"),
    sa.column("data", Json),
    sa.column("before", Json),
    sa.column("tags", Json),
)
DELETED = (
    *("feature-deleted", "feature-untagged", "feature-dependency-removed", "segment-deleted", "context-field-deleted"),
    *("strategy-deleted", "tag-deleted", "tag-type-deleted", "api-token-deleted", "pat-deleted"),
)
"""The types whose older events have what was before as their data."""


def upgrade() -> None:
    """Add the columns, and move what older events say of the state before to its new place."""
    for name, kind in (("before", Json), ("tags", Json)):
        op.add_column("events", sa.Column(name, kind))
    for name in ("token", "way", "action"):
        op.add_column("events", sa.Column(name, sa.String()))
    op.create_index("ix_events_action", "events", ["action"])
    db = op.get_bind()
    db.execute(EVENTS.update().where(EVENTS.c.type.in_(DELETED)).values(before=EVENTS.c.data))
    db.execute(EVENTS.update().where(EVENTS.c.type.in_(DELETED)).values(data=None))
    db.execute(EVENTS.update().values(tags=[]))
    for number, data in db.execute(sa.select(EVENTS.c.id, EVENTS.c.data).where(EVENTS.c.type == "segment-updated")).all():
        row = EVENTS.update().where(EVENTS.c.id == number)
        db.execute(row.values(before=data["before"], data=data["after"]))
