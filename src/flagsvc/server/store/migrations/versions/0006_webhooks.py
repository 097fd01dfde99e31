"""Webhooks with the queue of their deliveries (decision 0033), and an index for the history of one author."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Moment = sa.DateTime(timezone=True)
Json = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Create the tables and the index."""
    op.create_table(
        "addons",
        sa.Column("id", Serial, autoincrement=True, nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("parameters", Json, nullable=False),
        sa.Column("events", Json, nullable=False),
        sa.Column("projects", Json, nullable=False),
        sa.Column("environments", Json, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("updated_at", Moment, nullable=False),
        sa.Column("dropped", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_addons"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "deliveries",
        sa.Column("id", Serial, nullable=False),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("addon_id", Serial, nullable=False),
        sa.Column("event_id", Serial),
        sa.Column("sample", Json),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("due_at", Moment, nullable=False),
        sa.Column("ended_at", Moment),
        sa.Column("status", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.ForeignKeyConstraint(["addon_id"], ["addons.id"], name="fk_deliveries_addon_id", ondelete="CASCADE"),
    )
    op.create_index("ix_deliveries_addon_id_state_due_at", "deliveries", ["addon_id", "state", "due_at"])
    op.create_index("ix_deliveries_event_id", "deliveries", ["event_id"])
    op.create_index("ix_events_created_by_id", "events", ["created_by_id"])
