"""The kinds of events: a row each, with its words, what the real server shows of it, and how it is undone (decision 0027).

An event holds all that its change needs to be undone. A new kind is a row here, and the call of its writer; if an undo sets back
something that no row has yet, also a `Subject` in `undo/of_resources.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flagsvc.core.direction import isolate_marked
from flagsvc.server.store.event_views import (
    Side,
    View,
    after_only,
    nothing,
    only,
    only_after,
    only_before,
    removed,
    whole,
    without,
)
from flagsvc.server.store.resources.features import METADATA
from flagsvc.server.store.undo.of_resources import (
    ARCHIVING,
    DESCRIBED,
    ENVIRONMENT,
    FIELD,
    FLAG,
    LINKS,
    ORDER,
    PARENTS,
    PROJECT,
    PROJECT_ENVIRONMENT,
    ROLE,
    ROLES,
    SEGMENT,
    STALE,
    STATE,
    STRATEGY,
    STRATEGY_TYPE,
    TAG,
    TAG_TYPE,
    TAGGING,
    VARIANTS,
    tag_scope,
)
from flagsvc.server.store.undo.subjects import Change, Scope, Subject, no_project, owner_of, same_project


class Undo(NamedTuple):
    """How a kind of events is undone: what is set back, and the permissions of which the opposite operation needs one.

    `scope` returns the project in which the permission is needed.
    """

    subject: Subject
    permissions: tuple[str, ...] = ()
    scope: Scope = owner_of


class EventKind(NamedTuple):
    """A kind of events. `words` are a sentence with places for by, feature, environment, project and name.

    `shown` makes `data` and `preData` as the real server answers them. `undo` tells how the kind is undone, or why it is not.
    `changes` are the things on pages that the event changes: a page with a conflict names the last event that changed its thing.
    """

    type: str
    label: str
    words: str
    shown: View
    undo: Undo | str
    changes: tuple[str, ...] = ()

    @property
    def subject(self) -> Subject | None:
        """What an undo sets back; None if there is no undo."""
        return self.undo.subject if isinstance(self.undo, Undo) else None


SHOWN_FLAG = only(*METADATA)
SHOWN_STRATEGY = without("position")
SHOWN_PROJECT = without("roles", "createdAt", "archivedAt")
SHOWN_ENVIRONMENT = without("strategies")
SHOWN_STRATEGY_TYPE = without("sortOrder", "createdAt")
SHOWN_TAG_TYPE = without("tags", "createdAt")
LINK_MEMBERS = ("url", "title")


WHOLE_ACTION = Subject("import", lambda tx, changes: [change.after for change in changes], lambda tx, changes: None)
"""The subject of an event that only tells that others were done together: its undo undoes all of them."""
OF_CLIENTS = "A token may be in use, and its secret is shown only once: create or delete one on the page Tokens"
EXPIRY = "Events have no id of a token, so an undo cannot find it: change when it expires on its page, from the page Tokens"
OF_USER = "A token may be in use, and its secret is shown only once: create or delete one on the page My tokens"
PERSON = "Who may sign in is not changed by an undo: change the user on the page People"
SETTING = "A setting of the server is set back by its own operation of the admin API"
WEBHOOK = "Its address and headers may be secrets, which no event has: change the webhook on the page Webhooks"
SWITCH = ("UPDATE_FEATURE_ENVIRONMENT",)
UPDATE = ("UPDATE_FEATURE",)
DEPENDENCY = ("UPDATE_FEATURE_DEPENDENCY",)
TYPE = ("UPDATE_STRATEGY",)
OWN_PROJECT = ("UPDATE_PROJECT",)
ADMIN = ("ADMIN",)
# fmt: off
ROWS = (
    EventKind("feature-created", "Flag created", "{by} created the flag {feature} in {project}",
              SHOWN_FLAG, Undo(FLAG, ("DELETE_FEATURE",))),
    EventKind("feature-metadata-updated", "Description changed", "{by} changed the description of {feature}",
              SHOWN_FLAG, Undo(DESCRIBED, UPDATE), ("flag",)),
    EventKind("feature-stale-on", "Flag marked as stale", "{by} marked {feature} as stale",
              nothing, Undo(STALE, UPDATE), ("flag",)),
    EventKind("feature-stale-off", "Flag no longer stale", "{by} marked {feature} as not stale",
              nothing, Undo(STALE, UPDATE), ("flag",)),
    EventKind("feature-archived", "Flag archived", "{by} archived {feature}", nothing, Undo(ARCHIVING, UPDATE)),
    EventKind("feature-revived", "Flag revived", "{by} revived {feature}", nothing, Undo(ARCHIVING, ("DELETE_FEATURE",))),
    EventKind("feature-deleted", "Flag deleted", "{by} deleted {feature}", SHOWN_FLAG, Undo(FLAG, ("CREATE_FEATURE",))),
    EventKind("feature-environment-enabled", "Flag on", "{by} switched {feature} on in {environment}",
              nothing, Undo(STATE, SWITCH)),
    EventKind("feature-environment-disabled", "Flag off", "{by} switched {feature} off in {environment}",
              nothing, Undo(STATE, SWITCH)),
    EventKind("feature-environment-variants-updated", "Variants changed", "{by} changed the variants of {feature} in {environment}",
              whole, Undo(VARIANTS, ("UPDATE_FEATURE_ENVIRONMENT_VARIANTS",)), ("variants",)),
    EventKind("feature-strategy-add", "Strategy added", "{by} added {name} to {feature} in {environment}",
              SHOWN_STRATEGY, Undo(STRATEGY, ("DELETE_FEATURE_STRATEGY",)), ("strategy",)),
    EventKind("feature-strategy-update", "Strategy changed", "{by} changed {name} of {feature} in {environment}",
              SHOWN_STRATEGY, Undo(STRATEGY, ("UPDATE_FEATURE_STRATEGY",)), ("strategy",)),
    EventKind("feature-strategy-remove", "Strategy removed", "{by} removed {name} of {feature} in {environment}",
              SHOWN_STRATEGY, Undo(STRATEGY, ("CREATE_FEATURE_STRATEGY",)), ("strategy",)),
    EventKind("strategy-order-changed", "Strategies sorted", "{by} sorted the strategies of {feature} in {environment}",
              only("strategyIds"), Undo(ORDER, ("UPDATE_FEATURE_STRATEGY",))),
    EventKind("feature-dependency-added", "Parent added", "{by} made {feature} depend on {name}",
              only_after("feature", "enabled", "variants"), Undo(PARENTS, DEPENDENCY), ("parents",)),
    EventKind("feature-dependency-removed", "Parent removed", "{by} removed the parent {name} of {feature}",
              removed("feature"), Undo(PARENTS, DEPENDENCY), ("parents",)),
    EventKind("feature-dependencies-removed", "Parents removed", "{by} removed all parents of {feature}",
              nothing, Undo(PARENTS, DEPENDENCY), ("parents",)),
    EventKind("feature-tagged", "Flag tagged", "{by} tagged {feature} with {name}",
              whole, Undo(TAGGING, UPDATE), ("tag type with its tags",)),
    EventKind("feature-untagged", "Tag taken off", "{by} took the tag {name} off {feature}",
              whole, Undo(TAGGING, UPDATE), ("tag type with its tags",)),
    EventKind("feature-link-added", "Link added", "{by} added the link {name} to {feature}",
              only_after(*LINK_MEMBERS), Undo(LINKS, UPDATE), ("link",)),
    EventKind("feature-link-updated", "Link changed", "{by} changed the link {name} of {feature}",
              only(*LINK_MEMBERS), Undo(LINKS, UPDATE), ("link",)),
    EventKind("feature-link-removed", "Link removed", "{by} removed the link {name} of {feature}",
              only_before(*LINK_MEMBERS), Undo(LINKS, UPDATE), ("link",)),
    EventKind("features-imported", "Import", "{by} imported flags into {project}, {environment}", nothing, Undo(WHOLE_ACTION)),
    EventKind("features-exported", "Export", "{by} exported flags", whole, "An export changes nothing"),
    EventKind("tag-created", "Tag created", "{by} created the tag {name}",
              only("type", "value"), Undo(TAG, UPDATE, tag_scope), ("tag type with its tags",)),
    EventKind("tag-deleted", "Tag deleted", "{by} deleted the tag {name}",
              only_after("type", "value"), Undo(TAG, UPDATE, no_project), ("tag type with its tags",)),
    EventKind("tag-type-created", "Tag type created", "{by} created the tag type {name}",
              SHOWN_TAG_TYPE, Undo(TAG_TYPE, ("DELETE_TAG_TYPE",)), ("tag type", "tag type with its tags")),
    EventKind("tag-type-updated", "Tag type changed", "{by} changed the tag type {name}",
              after_only, Undo(TAG_TYPE, ("UPDATE_TAG_TYPE",)), ("tag type", "tag type with its tags")),
    EventKind("tag-type-deleted", "Tag type deleted", "{by} deleted the tag type {name}",
              SHOWN_TAG_TYPE, Undo(TAG_TYPE, ("CREATE_TAG_TYPE",))),
    EventKind("context-field-created", "Context field created", "{by} created the context field {name}",
              whole, Undo(FIELD, ("DELETE_CONTEXT_FIELD", "UPDATE_PROJECT_CONTEXT"), same_project), ("context field",)),
    EventKind("context-field-updated", "Context field changed", "{by} changed the context field {name}",
              whole, Undo(FIELD, ("UPDATE_CONTEXT_FIELD", "UPDATE_PROJECT_CONTEXT"), same_project), ("context field",)),
    EventKind("context-field-deleted", "Context field deleted", "{by} deleted the context field {name}",
              whole, Undo(FIELD, ("CREATE_CONTEXT_FIELD", "UPDATE_PROJECT_CONTEXT"), same_project)),
    EventKind("segment-created", "Segment created", "{by} created the segment {name}",
              without("strategies"), Undo(SEGMENT, ("DELETE_SEGMENT", "UPDATE_PROJECT_SEGMENT"), same_project), ("segment",)),
    EventKind("segment-updated", "Segment changed", "{by} changed the segment {name}",
              whole, Undo(SEGMENT, ("UPDATE_SEGMENT", "UPDATE_PROJECT_SEGMENT"), same_project), ("segment",)),
    EventKind("segment-deleted", "Segment deleted", "{by} deleted the segment {name}",
              without("strategies"), Undo(SEGMENT, ("CREATE_SEGMENT", "UPDATE_PROJECT_SEGMENT"), same_project)),
    EventKind("strategy-created", "Strategy type created", "{by} created the strategy type {name}",
              SHOWN_STRATEGY_TYPE, Undo(STRATEGY_TYPE, ("DELETE_STRATEGY",)), ("strategy type",)),
    EventKind("strategy-updated", "Strategy type changed", "{by} changed the strategy type {name}",
              after_only, Undo(STRATEGY_TYPE, TYPE), ("strategy type",)),
    EventKind("strategy-deprecated", "Strategy type deprecated", "{by} deprecated {name}",
              only_after("name"), Undo(STRATEGY_TYPE, TYPE), ("strategy type",)),
    EventKind("strategy-reactivated", "Strategy type reactivated", "{by} reactivated {name}",
              only_after("name"), Undo(STRATEGY_TYPE, TYPE), ("strategy type",)),
    EventKind("strategy-deleted", "Strategy type deleted", "{by} deleted the strategy type {name}",
              only_after("name"), Undo(STRATEGY_TYPE, ("CREATE_STRATEGY",))),
    EventKind("project-created", "Project created", "{by} created the project {project}",
              without("roles"), Undo(PROJECT, ("DELETE_PROJECT",))),
    EventKind("project-updated", "Project changed", "{by} changed the project {project}",
              whole, Undo(PROJECT, OWN_PROJECT), ("project", "whole project")),
    EventKind("project-environment-added", "Environment added", "{by} added {environment} to the project {project}",
              nothing, Undo(PROJECT_ENVIRONMENT, OWN_PROJECT), ("whole project",)),
    EventKind("project-environment-removed", "Environment removed", "{by} removed {environment} from the project {project}",
              nothing, Undo(PROJECT_ENVIRONMENT, OWN_PROJECT), ("whole project",)),
    EventKind("project-deleted", "Project deleted", "{by} deleted the project {project}",
              SHOWN_PROJECT, Undo(PROJECT, ("CREATE_PROJECT",))),
    EventKind("project-user-added", "Role given", "{by} gave {name} a role in {project}",
              whole, Undo(ROLE, OWN_PROJECT), ("roles",)),
    EventKind("project-access-added", "Roles given", "{by} gave roles in {project}",
              only_after("roles"), Undo(ROLES, OWN_PROJECT), ("roles",)),
    EventKind("project-access-user-roles-updated", "Roles changed", "{by} changed the roles of a user in {project}",
              whole, Undo(ROLES, OWN_PROJECT), ("roles",)),
    EventKind("project-access-user-roles-deleted", "Roles taken", "{by} took the roles of a user in {project}",
              whole, Undo(ROLES, OWN_PROJECT), ("roles",)),
    EventKind("environment-created", "Environment created", "{by} created the environment {environment}",
              SHOWN_ENVIRONMENT, Undo(ENVIRONMENT, ADMIN), ("order",)),
    EventKind("environment-updated", "Environment changed", "{by} changed the environment {environment}",
              whole, Undo(ENVIRONMENT, ADMIN), ("environment", "order")),
    EventKind("environment-deleted", "Environment deleted", "{by} deleted the environment {environment}",
              SHOWN_ENVIRONMENT, Undo(ENVIRONMENT, ADMIN), ("order",)),
    EventKind("api-token-created", "API token created", "{by} created the API token {name}", whole, OF_CLIENTS),
    EventKind("api-token-updated", "API token changed", "{by} changed the API token {name}", whole, EXPIRY),
    EventKind("api-token-deleted", "API token deleted", "{by} deleted the API token {name}", whole, OF_CLIENTS),
    EventKind("pat-created", "Personal token created", "{by} created the personal token {name}", after_only, OF_USER),
    EventKind("pat-deleted", "Personal token deleted", "{by} deleted the personal token {name}", after_only, OF_USER),
    EventKind("user-created", "User created", "{by} created the user {name}", whole, PERSON),
    EventKind("user-updated", "User changed", "{by} changed the user {name}", whole, PERSON, ("user",)),
    EventKind("user-deleted", "User deleted", "{by} deleted the user {name}", whole, PERSON),
    EventKind("user-linked", "User linked", "{by} linked the user {name} to an account elsewhere", whole, PERSON),
    EventKind("user-unlinked", "User unlinked", "{by} unlinked the user {name} from an account elsewhere", whole, PERSON),
    EventKind("user-link-created", "Sign-in link created", "{by} created a sign-in link for the user {name}",
              whole, "A link to sign in works once, and ends by itself after 15 minutes"),
    EventKind("user-sessions-ended", "Sessions ended", "{by} ended sessions of the user {name}",
              whole, "A session that ended does not come back: the user signs in again"),
    EventKind("addon-config-created", "Webhook created", "{by} created the webhook {name}",
              without("createdAt"), WEBHOOK, ("webhook",)),
    EventKind("addon-config-updated", "Webhook changed", "{by} changed the webhook {name}",
              without("updatedAt"), WEBHOOK, ("webhook",)),
    EventKind("addon-config-deleted", "Webhook deleted", "{by} deleted the webhook {name}", whole, WEBHOOK),
    EventKind("setting-created", "Setting created", "{by} created the setting {name}", whole, SETTING),
    EventKind("setting-updated", "Setting changed", "{by} changed the setting {name}", whole, SETTING),
    EventKind("backup-restored", "Backup restored", "{by} restored a backup of the whole database",
              whole, "A backup replaces all that is there: restore the backup that was made before"),
)
# fmt: on
UNKNOWN = "This server cannot undo this kind of change"
KINDS: Mapping[str, EventKind] = {row.type: row for row in ROWS}
NAMES = ("name", "feature", "tokenName", "username", "email", "value", "url", "description", "id")
"""The members that name what an event is about; the first one that is there counts."""


def kind_of(type_: str) -> EventKind:
    """Return the row of a type; for a type that only another version knows, a row without words and undo."""
    return KINDS.get(type_) or EventKind(type_, type_, "{by}: " + type_, whole, UNKNOWN)


def words_of(kind: EventKind, found: Mapping[str, Any], before: Side, after: Side) -> str:
    """Return an event as a sentence, with its names in bold; `found` has by, feature, environment and project."""
    side = {**(before or {}), **(after or {})}
    name = next((side[each] for each in NAMES if side.get(each) and isinstance(side[each], str | int)), None)
    given = {key: f"**{value}**" for key, value in (dict(found) | {"name": name}).items()}
    return kind.words.format_map(given)


def sentence_of(change: Change, by: str) -> str:
    """Return an event as a sentence whose names are isolated. `by` is who did it."""
    found = {"by": by, "feature": change.feature, "environment": change.environment, "project": change.project}
    return isolate_marked(words_of(kind_of(change.type), found, change.before, change.after))
