"""Who changed a webhook last: events without a project go only where an administrator did (decision 0033)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Json = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
ADDONS = sa.table("addons", sa.column("id"), sa.column("changed_by_id"))
EVENTS = sa.table("events", sa.column("id"), sa.column("type"), sa.column("created_by_id"), sa.column("data", Json))
CHANGES = ("addon-config-created", "addon-config-updated")


def upgrade() -> None:
    """Add the column, and fill it from the events of changes. Where these are deleted it is not known."""
    op.add_column("addons", sa.Column("changed_by_id", Serial))
    db = op.get_bind()
    query = sa.select(EVENTS.c.data, EVENTS.c.created_by_id).where(EVENTS.c.type.in_(CHANGES))
    changes = db.execute(query.order_by(EVENTS.c.id.desc())).all()
    for number in db.execute(sa.select(ADDONS.c.id)).scalars().all():
        # an event of a backup may hold any JSON
        authors = (author for data, author in changes if isinstance(data, dict) and data.get("id") == number)
        db.execute(ADDONS.update().where(ADDONS.c.id == number).values(changed_by_id=next(authors, None)))
