"""The tables of the clients' reports: applications and usage metrics."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Json = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables, in addition to those of the flags."""
    _applications()
    _usage()


def _applications() -> None:
    """Create the tables of applications and instances."""
    op.create_table(
        "applications",
        sa.Column("app_name", sa.String(), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("created_by", sa.String()),
        sa.Column("seen_at", Moment),
        sa.Column("strategies", Json, nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("url", sa.Text()),
        sa.Column("color", sa.String()),
        sa.Column("icon", sa.String()),
        sa.Column("announced", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("app_name", name="pk_applications"),
    )
    op.create_table(
        "application_instances",
        sa.Column("app_name", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("instance_id", sa.String(), nullable=False),
        sa.Column("sdk_version", sa.String()),
        sa.Column("sdk_type", sa.String()),
        sa.Column("started", Moment),
        sa.Column("client_ip", sa.String()),
        sa.Column("seen_at", Moment, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("app_name", "environment", "instance_id", name="pk_application_instances"),
    )
    op.create_table(
        "application_usage",
        sa.Column("app_name", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("app_name", "project", "environment", name="pk_application_usage"),
        sa.ForeignKeyConstraint(["app_name"], ["applications.app_name"], name="fk_application_usage_app_name", ondelete="CASCADE"),
    )


def _usage() -> None:
    """Create the tables of usage metrics."""
    op.create_table(
        "usage",
        sa.Column("feature", sa.String(), nullable=False),
        sa.Column("app_name", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("hour", Moment, nullable=False),
        sa.Column("yes", sa.BigInteger(), nullable=False),
        sa.Column("no", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("feature", "app_name", "environment", "hour", name="pk_usage"),
    )
    op.create_index("ix_usage_hour", "usage", ["hour"])
    op.create_table(
        "usage_variants",
        sa.Column("feature", sa.String(), nullable=False),
        sa.Column("app_name", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("hour", Moment, nullable=False),
        sa.Column("variant", sa.String(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("feature", "app_name", "environment", "hour", "variant", name="pk_usage_variants"),
        sa.ForeignKeyConstraint(
            ["feature", "app_name", "environment", "hour"],
            ["usage.feature", "usage.app_name", "usage.environment", "usage.hour"],
            name="fk_usage_variants_feature_app_name_environment_hour",
            ondelete="CASCADE",
        ),
    )
