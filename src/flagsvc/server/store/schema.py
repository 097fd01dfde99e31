"""The tables of the flag server, for SQLite and PostgreSQL alike (specification: Batch import data set).

Rows that belong to a feature are deleted with it (ON DELETE CASCADE). `position` columns count up in the order of creation, the
order in which the real server returns its rows.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
)

# every table is read from here, and so is METADATA
from flagsvc.server.store.columns import METADATA as METADATA
from flagsvc.server.store.columns import Json, Serial, UtcDateTime, reference

state = Table(
    "state",
    METADATA,
    Column("key", String, primary_key=True),
    Column("value", Json),
)
"""One row for each setting of the server: `maintenance`, `seed` (digests of applied seeds), `changeRequests`."""
CHANGE_REQUESTS = "changeRequests"
"""The key in `state` of the list of places that need change requests, each with `project` and `environment`."""

revision = Table("revision", METADATA, Column("id", Integer, primary_key=True), Column("number", BigInteger, nullable=False))
"""One row, id 1: how many transactions changed flags."""

environments = Table(
    "environments",
    METADATA,
    Column("name", String, primary_key=True),
    Column("type", String, nullable=False),
    Column("sort_order", Integer, nullable=False, default=9999),
    Column("enabled", Boolean, nullable=False, default=True),
    Column("protected", Boolean, nullable=False, default=False),
)

projects = Table(
    "projects",
    METADATA,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("description", Text),
    Column("mode", String, nullable=False, default="open"),
    Column("default_stickiness", String, nullable=False, default="default"),
    Column("feature_limit", Integer),
    Column("naming_pattern", Text),
    Column("naming_example", Text),
    Column("naming_description", Text),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime),
    Column("archived_at", UtcDateTime),
)

project_environments = Table(
    "project_environments",
    METADATA,
    reference("projects.id", primary_key=True),
    reference("environments.name", primary_key=True),
)

users = Table(
    "users",
    METADATA,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("username", String, unique=True),
    Column("name", String),
    Column("email", String),
    Column("root_role", String, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime),
    sqlite_autoincrement=True,
)
"""`root_role` is admin, editor or viewer. A user has a `username`, an `email`, or both."""

project_roles = Table(
    "project_roles",
    METADATA,
    Column("user_id", Serial, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    reference("projects.id", primary_key=True),
    Column("role", String, primary_key=True),
)
"""`role` is owner or member."""

tokens = Table(
    "tokens",
    METADATA,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("hint", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("name", String, nullable=False),
    Column("alias", String),
    Column("environment", String, ForeignKey("environments.name", ondelete="CASCADE")),
    Column("projects", Json, nullable=False),
    Column("user_id", Serial, ForeignKey("users.id", ondelete="CASCADE")),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("seen_at", UtcDateTime),
    sqlite_autoincrement=True,
)
"""`hash` is the SHA-256 of the secret in hex, `hint` the part of it that may be shown. `kind` is admin, backend, frontend or
personal. `environment` is NULL for all; `projects` is a list of ids, or `*` alone; `user_id` is the owner of a personal token."""

identities = Table(
    "identities",
    METADATA,
    Column("issuer", String, primary_key=True),
    Column("subject", String, primary_key=True),
    Column("user_id", Serial, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("roles", Json),
)
"""The accounts of users elsewhere: `issuer` is that of an OpenID provider, or `header` for a proxy in front that names persons.
`roles` are the roles of the user that its groups gave, as `groupRoles` writes them. NULL is older, and counts as all roles."""

used_answers = Table(
    "used_answers",
    METADATA,
    Column("hash", String(64), primary_key=True),
    Column("expires_at", UtcDateTime, nullable=False),
)
"""The hashes of the secrets of answers of an OpenID provider that were used. Each is kept until the answer is too old anyway."""

strategy_types = Table(
    "strategy_types",
    METADATA,
    Column("name", String, primary_key=True),
    Column("display_name", String),
    Column("title", String),
    Column("description", Text),
    Column("parameters", Json, nullable=False),
    Column("built_in", Boolean, nullable=False, default=False),
    Column("deprecated", Boolean, nullable=False, default=False),
    Column("sort_order", Integer, nullable=False, default=9999),
    Column("created_at", UtcDateTime, nullable=False),
)

tag_types = Table(
    "tag_types",
    METADATA,
    Column("name", String, primary_key=True),
    Column("description", Text),
    Column("icon", String),
    Column("color", String),
    Column("created_at", UtcDateTime, nullable=False),
)

tags = Table(
    "tags",
    METADATA,
    Column("type", String, ForeignKey("tag_types.name", ondelete="CASCADE", onupdate="CASCADE"), primary_key=True),
    Column("value", String, primary_key=True),
    Column("created_at", UtcDateTime, nullable=False),
)

context_fields = Table(
    "context_fields",
    METADATA,
    Column("name", String, primary_key=True),
    Column("description", Text),
    Column("stickiness", Boolean, nullable=False, default=False),
    Column("sort_order", Integer, nullable=False, default=9999),
    Column("legal_values", Json, nullable=False),
    reference("projects.id", nullable=True),
    Column("created_at", UtcDateTime, nullable=False),
)
"""`legal_values` is a list of objects with `value` and an optional `description`."""

segments = Table(
    "segments",
    METADATA,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("name", String, nullable=False, unique=True),
    Column("description", Text),
    Column("constraints", Json, nullable=False),
    reference("projects.id", nullable=True),
    Column("created_by", String),
    Column("created_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

features = Table(
    "features",
    METADATA,
    Column("name", String, primary_key=True),
    reference("projects.id"),
    Column("type", String, nullable=False, default="release"),
    Column("description", Text),
    Column("stale", Boolean, nullable=False, default=False),
    Column("impression_data", Boolean, nullable=False, default=False),
    Column("created_by", String),
    Column("created_by_id", Serial),
    Column("created_at", UtcDateTime, nullable=False),
    Column("archived_at", UtcDateTime),
    Column("position", BigInteger, nullable=False, index=True),
)
Index("ix_features_project", features.c.project)

feature_environments = Table(
    "feature_environments",
    METADATA,
    reference("features.name", primary_key=True),
    reference("environments.name", primary_key=True),
    Column("enabled", Boolean, nullable=False, default=False),
    Column("variants", Json, nullable=False),
    Column("last_seen_at", UtcDateTime),
)
"""The state of a feature in an environment, and its variants there."""

strategies = Table(
    "strategies",
    METADATA,
    Column("id", String, primary_key=True),
    reference("features.name"),
    reference("environments.name"),
    Column("name", String, nullable=False),
    Column("title", Text),
    Column("parameters", Json, nullable=False),
    Column("constraints", Json, nullable=False),
    Column("variants", Json, nullable=False),
    Column("disabled", Boolean, nullable=False, default=False),
    Column("sort_order", Float, nullable=False, default=9999),
    Column("created_at", UtcDateTime, nullable=False),
    Column("position", BigInteger, nullable=False),
    Index("ix_strategies_feature_environment", "feature", "environment"),
)
"""An activation strategy of a feature in an environment; ordered by (sort_order, position). `id` is a UUID."""

strategy_segments = Table(
    "strategy_segments",
    METADATA,
    Column("strategy_id", String, ForeignKey("strategies.id", ondelete="CASCADE"), primary_key=True),
    Column("segment_id", Serial, ForeignKey("segments.id"), primary_key=True, index=True),
    Column("position", Integer, nullable=False, default=0),
)

feature_tags = Table(
    "feature_tags",
    METADATA,
    reference("features.name", primary_key=True),
    Column("type", String, primary_key=True),
    Column("value", String, primary_key=True, index=True),
    Column("created_by_id", Serial),
    Column("created_at", UtcDateTime, nullable=False),
    ForeignKeyConstraint(["type", "value"], ["tags.type", "tags.value"], ondelete="CASCADE", onupdate="CASCADE"),
)

dependencies = Table(
    "dependencies",
    METADATA,
    Column("child", String, ForeignKey("features.name", ondelete="CASCADE", onupdate="CASCADE"), primary_key=True),
    Column("parent", String, ForeignKey("features.name", onupdate="CASCADE"), primary_key=True, index=True),
    Column("enabled", Boolean, nullable=False, default=True),
    Column("variants", Json, nullable=False),
)

links = Table(
    "links",
    METADATA,
    Column("id", String, primary_key=True),
    reference("features.name"),
    Column("url", Text, nullable=False),
    Column("title", Text),
    Column("position", BigInteger, nullable=False),
    Index("ix_links_feature", "feature"),
)
"""`id` is a ULID or UUID."""

favorites = Table(
    "favorites",
    METADATA,
    Column("user_id", Serial, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    reference("features.name", primary_key=True),
    Column("created_at", UtcDateTime, nullable=False),
    Index("ix_favorites_feature", "feature"),
)
"""The features that a user has starred."""

events = Table(
    "events",
    METADATA,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("type", String, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String, nullable=False),
    Column("created_by_id", Serial, index=True),
    Column("project", String),
    Column("environment", String),
    Column("feature", String, index=True),
    Column("data", Json),
    Column("before", Json),
    Column("tags", Json),
    Column("token", String),
    Column("way", String),
    Column("action", String, index=True),
    Index("ix_events_project_created_at", "project", "created_at"),
)
"""What happened: `data` is the state after it, and `before` the state before it. `event_kinds.py` has the types.

`token` is the name of the token, `action` is the same for all events of one transaction. It has no foreign keys, because an event
outlives its feature. Deleted after some time (`Cleanup`)."""

applications = Table(
    "applications",
    METADATA,
    Column("app_name", String, primary_key=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String),
    Column("seen_at", UtcDateTime),
    Column("strategies", Json, nullable=False),
    Column("description", Text),
    Column("url", Text),
    Column("color", String),
    Column("icon", String),
    Column("announced", Boolean, nullable=False, default=False),
)

application_instances = Table(
    "application_instances",
    METADATA,
    Column("app_name", String, primary_key=True),
    Column("environment", String, primary_key=True),
    Column("instance_id", String, primary_key=True),
    Column("sdk_version", String),
    Column("sdk_type", String),
    Column("started", UtcDateTime),
    Column("client_ip", String),
    Column("seen_at", UtcDateTime, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

application_usage = Table(
    "application_usage",
    METADATA,
    Column("app_name", String, ForeignKey("applications.app_name", ondelete="CASCADE"), primary_key=True),
    Column("project", String, primary_key=True),
    Column("environment", String, primary_key=True),
)
"""The projects and environments that an application reads with its token; `*` stands for all."""

usage = Table(
    "usage",
    METADATA,
    Column("feature", String, primary_key=True),
    Column("app_name", String, primary_key=True),
    Column("environment", String, primary_key=True),
    Column("hour", UtcDateTime, primary_key=True, index=True),
    Column("yes", BigInteger, nullable=False, default=0),
    Column("no", BigInteger, nullable=False, default=0),
)
"""Usage metrics of one hour. It has no foreign key to a feature, because an SDK may report a deleted one."""

usage_variants = Table(
    "usage_variants",
    METADATA,
    Column("feature", String, primary_key=True),
    Column("app_name", String, primary_key=True),
    Column("environment", String, primary_key=True),
    Column("hour", UtcDateTime, primary_key=True),
    Column("variant", String, primary_key=True),
    Column("count", BigInteger, nullable=False, default=0),
    ForeignKeyConstraint(
        ["feature", "app_name", "environment", "hour"],
        ["usage.feature", "usage.app_name", "usage.environment", "usage.hour"],
        ondelete="CASCADE",
    ),
)


addons = Table(
    "addons",
    METADATA,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("provider", String, nullable=False),
    Column("description", Text),
    Column("enabled", Boolean, nullable=False),
    Column("parameters", Json, nullable=False),
    Column("events", Json, nullable=False),
    Column("projects", Json, nullable=False),
    Column("environments", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("dropped", BigInteger, nullable=False, default=0),
    Column("changed_by_id", Serial),
    sqlite_autoincrement=True,
)
"""Webhooks: where events go, and which. `parameters` has secrets in plain: they are sent. `dropped` counts events for which the
queue had no room. `changed_by_id` is the user who made or changed it last, as events have it. It has no foreign key: an admin token
is no user. Ids of users are never given out again."""

deliveries = Table(
    "deliveries",
    METADATA,
    Column("id", Serial, primary_key=True),
    Column("uid", String, nullable=False),
    Column("addon_id", Serial, ForeignKey("addons.id", ondelete="CASCADE"), nullable=False),
    Column("event_id", Serial, index=True),
    Column("sample", Json),
    Column("state", String, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("created_at", UtcDateTime, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("status", Integer),
    Column("error", Text),
    Index("ix_deliveries_addon_id_state_due_at", "addon_id", "state", "due_at"),
)
"""What webhooks have sent and still have to send (outbox.py): an event, or the event `sample` of a test. `uid` is the same in every
attempt. A server that makes an attempt sets `due_at` to when another one may, should it not come back."""
