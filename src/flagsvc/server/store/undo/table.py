"""The undo table: a row for each kind of event, which says how it is undone, or why it cannot be undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.of_flags import ARCHIVING, DESCRIBED, FLAG, ORDER, STALE, STATE, STRATEGY, VARIANTS
from flagsvc.server.store.undo.of_projects import ENVIRONMENT, LINK, PROJECT, ROLE, ROLES
from flagsvc.server.store.undo.of_relations import (
    FIELD,
    LINKS,
    PARENTS,
    SEGMENT,
    STRATEGY_TYPE,
    TAG,
    TAG_TYPE,
    TAGGING,
    tag_scope,
)
from flagsvc.server.store.undo.subjects import Change, Scope, Subject, no_project, owner_of, same_project


class UndoRow(NamedTuple):
    """How a kind of events is undone: what is set back, and the permissions of which the opposite operation needs one.

    `scope` returns the project in which the permission is needed. Without a subject, `reason` says why the kind cannot be undone.
    """

    type: str
    subject: Subject | None = None
    permissions: tuple[str, ...] = ()
    reason: str = ""
    scope: Scope = owner_of


def _read_as_left(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    return [change.after for change in changes]


def _restore_nothing(tx: Tx, changes: Sequence[Change]) -> None:
    """Change nothing."""


WHOLE_ACTION = Subject("import", _read_as_left, _restore_nothing)
"""The subject of an event that only tells that others were done together: its undo undoes all of them."""
OF_CLIENTS = "A token may be in use, and its secret is shown only once: make or delete one on the page Tokens"
EXPIRY = (
    "Events have no id of a token, so an undo cannot find it: change when it expires on its page, from the page Tokens"
)
OF_USER = "A token may be in use, and its secret is shown only once: make or delete one on the page My tokens"
PERSON = "Who may sign in is not changed by an undo: change the user on the page People"
SETTING = "A setting of the server is set back by its own operation of the admin API"
WEBHOOK = "Its address and headers may be secrets, which no event has: change the webhook on the page Webhooks"
SWITCH = ("UPDATE_FEATURE_ENVIRONMENT",)
UPDATE = ("UPDATE_FEATURE",)
DEPENDENCY = ("UPDATE_FEATURE_DEPENDENCY",)
TYPE = ("UPDATE_STRATEGY",)
OWN_PROJECT = ("UPDATE_PROJECT",)
ADMIN = ("ADMIN",)
ROWS = (
    UndoRow("feature-created", FLAG, ("DELETE_FEATURE",)),
    UndoRow("feature-deleted", FLAG, ("CREATE_FEATURE",)),
    UndoRow("feature-metadata-updated", DESCRIBED, UPDATE),
    UndoRow("feature-stale-on", STALE, UPDATE),
    UndoRow("feature-stale-off", STALE, UPDATE),
    UndoRow("feature-archived", ARCHIVING, UPDATE),
    UndoRow("feature-revived", ARCHIVING, ("DELETE_FEATURE",)),
    UndoRow("feature-environment-enabled", STATE, SWITCH),
    UndoRow("feature-environment-disabled", STATE, SWITCH),
    UndoRow("feature-environment-variants-updated", VARIANTS, ("UPDATE_FEATURE_ENVIRONMENT_VARIANTS",)),
    UndoRow("feature-strategy-add", STRATEGY, ("DELETE_FEATURE_STRATEGY",)),
    UndoRow("feature-strategy-update", STRATEGY, ("UPDATE_FEATURE_STRATEGY",)),
    UndoRow("feature-strategy-remove", STRATEGY, ("CREATE_FEATURE_STRATEGY",)),
    UndoRow("strategy-order-changed", ORDER, ("UPDATE_FEATURE_STRATEGY",)),
    UndoRow("feature-dependency-added", PARENTS, DEPENDENCY),
    UndoRow("feature-dependency-removed", PARENTS, DEPENDENCY),
    UndoRow("feature-dependencies-removed", PARENTS, DEPENDENCY),
    UndoRow("feature-tagged", TAGGING, UPDATE),
    UndoRow("feature-untagged", TAGGING, UPDATE),
    UndoRow("feature-link-added", LINKS, UPDATE),
    UndoRow("feature-link-updated", LINKS, UPDATE),
    UndoRow("feature-link-removed", LINKS, UPDATE),
    UndoRow("features-imported", WHOLE_ACTION),
    UndoRow("features-exported", reason="An export changes nothing"),
    UndoRow("tag-created", TAG, UPDATE, scope=tag_scope),
    UndoRow("tag-deleted", TAG, UPDATE, scope=no_project),
    UndoRow("tag-type-created", TAG_TYPE, ("DELETE_TAG_TYPE",)),
    UndoRow("tag-type-updated", TAG_TYPE, ("UPDATE_TAG_TYPE",)),
    UndoRow("tag-type-deleted", TAG_TYPE, ("CREATE_TAG_TYPE",)),
    UndoRow("context-field-created", FIELD, ("DELETE_CONTEXT_FIELD", "UPDATE_PROJECT_CONTEXT"), scope=same_project),
    UndoRow("context-field-updated", FIELD, ("UPDATE_CONTEXT_FIELD", "UPDATE_PROJECT_CONTEXT"), scope=same_project),
    UndoRow("context-field-deleted", FIELD, ("CREATE_CONTEXT_FIELD", "UPDATE_PROJECT_CONTEXT"), scope=same_project),
    UndoRow("segment-created", SEGMENT, ("DELETE_SEGMENT", "UPDATE_PROJECT_SEGMENT"), scope=same_project),
    UndoRow("segment-updated", SEGMENT, ("UPDATE_SEGMENT", "UPDATE_PROJECT_SEGMENT"), scope=same_project),
    UndoRow("segment-deleted", SEGMENT, ("CREATE_SEGMENT", "UPDATE_PROJECT_SEGMENT"), scope=same_project),
    UndoRow("strategy-created", STRATEGY_TYPE, ("DELETE_STRATEGY",)),
    UndoRow("strategy-updated", STRATEGY_TYPE, TYPE),
    UndoRow("strategy-deprecated", STRATEGY_TYPE, TYPE),
    UndoRow("strategy-reactivated", STRATEGY_TYPE, TYPE),
    UndoRow("strategy-deleted", STRATEGY_TYPE, ("CREATE_STRATEGY",)),
    UndoRow("project-created", PROJECT, ("DELETE_PROJECT",)),
    UndoRow("project-updated", PROJECT, OWN_PROJECT),
    UndoRow("project-deleted", PROJECT, ("CREATE_PROJECT",)),
    UndoRow("project-environment-added", LINK, OWN_PROJECT),
    UndoRow("project-environment-removed", LINK, OWN_PROJECT),
    UndoRow("project-user-added", ROLE, OWN_PROJECT),
    UndoRow("project-access-added", ROLES, OWN_PROJECT),
    UndoRow("project-access-user-roles-updated", ROLES, OWN_PROJECT),
    UndoRow("project-access-user-roles-deleted", ROLES, OWN_PROJECT),
    UndoRow("environment-created", ENVIRONMENT, ADMIN),
    UndoRow("environment-updated", ENVIRONMENT, ADMIN),
    UndoRow("environment-deleted", ENVIRONMENT, ADMIN),
    UndoRow("api-token-created", reason=OF_CLIENTS),
    UndoRow("api-token-updated", reason=EXPIRY),
    UndoRow("api-token-deleted", reason=OF_CLIENTS),
    UndoRow("pat-created", reason=OF_USER),
    UndoRow("pat-deleted", reason=OF_USER),
    UndoRow("user-created", reason=PERSON),
    UndoRow("user-updated", reason=PERSON),
    UndoRow("user-deleted", reason=PERSON),
    UndoRow("user-linked", reason=PERSON),
    UndoRow("user-unlinked", reason=PERSON),
    UndoRow("backup-restored", reason="A backup replaces all that is there: restore the backup that was made before"),
    UndoRow("user-link-created", reason="A link to sign in works once, and ends by itself after 15 minutes"),
    UndoRow("user-sessions-ended", reason="A session that ended does not come back: the user signs in again"),
    UndoRow("addon-config-created", reason=WEBHOOK),
    UndoRow("addon-config-updated", reason=WEBHOOK),
    UndoRow("addon-config-deleted", reason=WEBHOOK),
    UndoRow("setting-created", reason=SETTING),
    UndoRow("setting-updated", reason=SETTING),
)
UNDO: Mapping[str, UndoRow] = {row.type: row for row in ROWS}
UNKNOWN = "This server cannot undo this kind of change"


def row_of(kind: str) -> UndoRow:
    """Return the row of a kind of events; one with a reason for a kind that only another version knows."""
    return UNDO.get(kind) or UndoRow(kind, reason=UNKNOWN)
