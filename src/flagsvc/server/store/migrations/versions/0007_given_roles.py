"""The roles that the groups of an account gave to its user (decision 0034)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

Json = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Add the column. Of accounts that are there it is not known."""
    op.add_column("identities", sa.Column("roles", Json))
