"""The favorites of users."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "favorites",
        sa.Column("user_id", Serial, nullable=False),
        sa.Column("feature", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "feature", name="pk_favorites"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_favorites_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["feature"], ["features.name"], name="fk_favorites_feature", ondelete="CASCADE", onupdate="CASCADE"
        ),
    )
    op.create_index("ix_favorites_feature", "favorites", ["feature"])
