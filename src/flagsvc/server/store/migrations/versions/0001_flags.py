"""The tables of flags, users and tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Json = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables in an empty database."""
    _server()
    _places()
    _people()
    _kinds()
    _targets()
    _features()
    _hanging()
    _strategies()


def _server() -> None:
    """Create the tables of the whole server."""
    op.create_table(
        "state",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", Json),
        sa.PrimaryKeyConstraint("key", name="pk_state"),
    )
    op.create_table(
        "revision",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_revision"),
    )
    op.create_table(
        "events",
        sa.Column("id", Serial, nullable=False, autoincrement=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_by_id", Serial),
        sa.Column("project", sa.String()),
        sa.Column("environment", sa.String()),
        sa.Column("feature", sa.String()),
        sa.Column("data", Json),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
    )
    op.create_index("ix_events_feature", "events", ["feature"])
    op.create_index("ix_events_project_created_at", "events", ["project", "created_at"])


def _places() -> None:
    """Create the tables of environments, of projects, and of the environments of projects."""
    op.create_table(
        "environments",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("sort_order", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("protected", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_environments"),
    )
    op.create_table(
        "projects",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("default_stickiness", sa.String(), nullable=False),
        sa.Column("feature_limit", sa.Integer()),
        sa.Column("naming_pattern", sa.Text()),
        sa.Column("naming_example", sa.Text()),
        sa.Column("naming_description", sa.Text()),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("updated_at", Moment),
        sa.Column("archived_at", Moment),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
    )
    op.create_table(
        "project_environments",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("project", "environment", name="pk_project_environments"),
        sa.ForeignKeyConstraint(
            ["environment"],
            ["environments.name"],
            name="fk_project_environments_environment",
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project"], ["projects.id"], name="fk_project_environments_project", ondelete="CASCADE", onupdate="CASCADE"
        ),
    )


def _people() -> None:
    """Create the tables of users, roles and tokens."""
    op.create_table(
        "users",
        sa.Column("id", Serial, nullable=False, autoincrement=True),
        sa.Column("username", sa.String()),
        sa.Column("name", sa.String()),
        sa.Column("email", sa.String()),
        sa.Column("root_role", sa.String(), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("seen_at", Moment),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("username", name="uq_users_username"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "project_roles",
        sa.Column("user_id", Serial, nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "project", "role", name="pk_project_roles"),
        sa.ForeignKeyConstraint(
            ["project"], ["projects.id"], name="fk_project_roles_project", ondelete="CASCADE", onupdate="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_project_roles_user_id", ondelete="CASCADE"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", Serial, nullable=False, autoincrement=True),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("hint", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("alias", sa.String()),
        sa.Column("environment", sa.String()),
        sa.Column("projects", Json, nullable=False),
        sa.Column("user_id", Serial),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("expires_at", Moment),
        sa.Column("seen_at", Moment),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.ForeignKeyConstraint(["environment"], ["environments.name"], name="fk_tokens_environment", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_tokens_user_id", ondelete="CASCADE"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
        sqlite_autoincrement=True,
    )


def _kinds() -> None:
    """Create the tables of strategy types and tag types."""
    op.create_table(
        "strategy_types",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("display_name", sa.String()),
        sa.Column("title", sa.String()),
        sa.Column("description", sa.Text()),
        sa.Column("parameters", Json, nullable=False),
        sa.Column("built_in", sa.Boolean(), nullable=False),
        sa.Column("deprecated", sa.Boolean(), nullable=False),
        sa.Column("sort_order", sa.Integer(), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_strategy_types"),
    )
    op.create_table(
        "tag_types",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("icon", sa.String()),
        sa.Column("color", sa.String()),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_tag_types"),
    )
    op.create_table(
        "tags",
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("type", "value", name="pk_tags"),
        sa.ForeignKeyConstraint(["type"], ["tag_types.name"], name="fk_tags_type", ondelete="CASCADE", onupdate="CASCADE"),
    )


def _targets() -> None:
    """Create the tables of context fields and segments."""
    op.create_table(
        "context_fields",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("stickiness", sa.Boolean(), nullable=False),
        sa.Column("sort_order", sa.Integer(), nullable=False),
        sa.Column("legal_values", Json, nullable=False),
        sa.Column("project", sa.String()),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_context_fields"),
        sa.ForeignKeyConstraint(
            ["project"], ["projects.id"], name="fk_context_fields_project", ondelete="CASCADE", onupdate="CASCADE"
        ),
    )
    op.create_table(
        "segments",
        sa.Column("id", Serial, nullable=False, autoincrement=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("constraints", Json, nullable=False),
        sa.Column("project", sa.String()),
        sa.Column("created_by", sa.String()),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_segments"),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_segments_project", ondelete="CASCADE", onupdate="CASCADE"),
        sa.UniqueConstraint("name", name="uq_segments_name"),
        sqlite_autoincrement=True,
    )


def _features() -> None:
    """Create the tables of features and of their environments."""
    op.create_table(
        "features",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("stale", sa.Boolean(), nullable=False),
        sa.Column("impression_data", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.String()),
        sa.Column("created_by_id", Serial),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("archived_at", Moment),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_features"),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_features_project", ondelete="CASCADE", onupdate="CASCADE"),
    )
    op.create_index("ix_features_position", "features", ["position"])
    op.create_index("ix_features_project", "features", ["project"])
    op.create_table(
        "feature_environments",
        sa.Column("feature", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("variants", Json, nullable=False),
        sa.Column("last_seen_at", Moment),
        sa.PrimaryKeyConstraint("feature", "environment", name="pk_feature_environments"),
        sa.ForeignKeyConstraint(
            ["environment"],
            ["environments.name"],
            name="fk_feature_environments_environment",
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["feature"],
            ["features.name"],
            name="fk_feature_environments_feature",
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
    )


def _hanging() -> None:
    """Create the tables of objects that belong to features."""
    op.create_table(
        "feature_tags",
        sa.Column("feature", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("created_by_id", Serial),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("feature", "type", "value", name="pk_feature_tags"),
        sa.ForeignKeyConstraint(
            ["feature"], ["features.name"], name="fk_feature_tags_feature", ondelete="CASCADE", onupdate="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["type", "value"],
            ["tags.type", "tags.value"],
            name="fk_feature_tags_type_value",
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
    )
    op.create_index("ix_feature_tags_value", "feature_tags", ["value"])
    op.create_table(
        "dependencies",
        sa.Column("child", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("variants", Json, nullable=False),
        sa.PrimaryKeyConstraint("child", "parent", name="pk_dependencies"),
        sa.ForeignKeyConstraint(["child"], ["features.name"], name="fk_dependencies_child", ondelete="CASCADE", onupdate="CASCADE"),
        sa.ForeignKeyConstraint(["parent"], ["features.name"], name="fk_dependencies_parent", onupdate="CASCADE"),
    )
    op.create_index("ix_dependencies_parent", "dependencies", ["parent"])
    op.create_table(
        "links",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("feature", sa.String(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("title", sa.Text()),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_links"),
        sa.ForeignKeyConstraint(["feature"], ["features.name"], name="fk_links_feature", ondelete="CASCADE", onupdate="CASCADE"),
    )
    op.create_index("ix_links_feature", "links", ["feature"])


def _strategies() -> None:
    """Create the tables of activation strategies."""
    op.create_table(
        "strategies",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("feature", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("title", sa.Text()),
        sa.Column("parameters", Json, nullable=False),
        sa.Column("constraints", Json, nullable=False),
        sa.Column("variants", Json, nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("sort_order", sa.Float(), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_strategies"),
        sa.ForeignKeyConstraint(
            ["environment"],
            ["environments.name"],
            name="fk_strategies_environment",
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["feature"], ["features.name"], name="fk_strategies_feature", ondelete="CASCADE", onupdate="CASCADE"
        ),
    )
    op.create_index("ix_strategies_feature_environment", "strategies", ["feature", "environment"])
    op.create_table(
        "strategy_segments",
        sa.Column("strategy_id", sa.String(), nullable=False),
        sa.Column("segment_id", Serial, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("strategy_id", "segment_id", name="pk_strategy_segments"),
        sa.ForeignKeyConstraint(["segment_id"], ["segments.id"], name="fk_strategy_segments_segment_id"),
        sa.ForeignKeyConstraint(["strategy_id"], ["strategies.id"], name="fk_strategy_segments_strategy_id", ondelete="CASCADE"),
    )
    op.create_index("ix_strategy_segments_segment_id", "strategy_segments", ["segment_id"])
