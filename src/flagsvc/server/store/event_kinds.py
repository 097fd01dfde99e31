"""The types of events: a row each, with its words and what the real server shows of it (decision 0054).

An event holds all that its change needs to be undone. `shown` makes `data` and `preData` of it as the real server answers them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

Way: TypeAlias = Literal["api", "page", "import", "seed", "start", "command", "sign-in"]
"""How a change comes about: by the admin API, a page, an import, a seed, the first start, a command on the database, or a sign-in
of somebody whose groups have changed."""
WAYS: tuple[str, ...] = get_args(Way)

Side: TypeAlias = Mapping[str, Any] | None
View: TypeAlias = Callable[[Side, Side], tuple[Side, Side]]
"""What was before and what is after → `data` and `preData` of the API."""


def whole(before: Side, after: Side) -> tuple[Side, Side]:
    """Show both sides."""
    return after, before


def nothing(before: Side, after: Side) -> tuple[Side, Side]:
    """Show no side: the type says it all."""
    return None, None


def after_only(before: Side, after: Side) -> tuple[Side, Side]:
    """Show only what is after; of something deleted what was before."""
    return before if after is None else after, None


def only(*names: str) -> View:
    """Show these members of both sides."""

    def show(before: Side, after: Side) -> tuple[Side, Side]:
        return _pick(after, names), _pick(before, names)

    return show


def only_after(*names: str) -> View:
    """Show these members of what is after, or was before, as `data`."""

    def show(before: Side, after: Side) -> tuple[Side, Side]:
        return _pick(before if after is None else after, names), None

    return show


def only_before(*names: str) -> View:
    """Show these members of what was before, as `preData`."""

    def show(before: Side, after: Side) -> tuple[Side, Side]:
        return None, _pick(before, names)

    return show


def removed(*names: str) -> View:
    """Show these members of what was before, as `data`."""

    def show(before: Side, after: Side) -> tuple[Side, Side]:
        return _pick(before, names), None

    return show


def without(*names: str) -> View:
    """Show both sides without these members."""

    def show(before: Side, after: Side) -> tuple[Side, Side]:
        return _leave_out(after, names), _leave_out(before, names)

    return show


def _pick(side: Side, names: tuple[str, ...]) -> Side:
    return None if side is None else {name: side[name] for name in names if name in side}


def _leave_out(side: Side, names: tuple[str, ...]) -> Side:
    return None if side is None else {name: value for name, value in side.items() if name not in names}


class EventKind(NamedTuple):
    """A type of events. `words` are a sentence with places for by, feature, environment, project and name."""

    type: str
    label: str
    words: str
    shown: View = whole


METADATA = only(
    *("name", "description", "type", "project", "stale", "createdAt", "lastSeenAt"),
    *("impressionData", "archivedAt", "archived"),
)
STRATEGY = without("position")
PROJECT = without("roles", "createdAt", "archivedAt")
ENVIRONMENT = without("strategies")
STRATEGY_TYPE = without("sortOrder", "createdAt")
TAG_TYPE = without("tags", "createdAt")
LINK = ("url", "title")
ROWS = (
    EventKind("feature-created", "Flag created", "{by} created the flag {feature} in {project}", METADATA),
    EventKind("feature-metadata-updated", "Description changed", "{by} changed the description of {feature}", METADATA),
    EventKind("feature-stale-on", "Flag marked as stale", "{by} marked {feature} as stale", nothing),
    EventKind("feature-stale-off", "Flag no longer stale", "{by} marked {feature} as not stale", nothing),
    EventKind("feature-archived", "Flag archived", "{by} archived {feature}", nothing),
    EventKind("feature-revived", "Flag revived", "{by} revived {feature}", nothing),
    EventKind("feature-deleted", "Flag deleted", "{by} deleted {feature}", METADATA),
    EventKind("feature-environment-enabled", "Flag on", "{by} switched {feature} on in {environment}", nothing),
    EventKind("feature-environment-disabled", "Flag off", "{by} switched {feature} off in {environment}", nothing),
    EventKind(
        "feature-environment-variants-updated",
        "Variants changed",
        "{by} changed the variants of {feature} in {environment}",
    ),
    EventKind("feature-strategy-add", "Strategy added", "{by} added {name} to {feature} in {environment}", STRATEGY),
    EventKind(
        "feature-strategy-update", "Strategy changed", "{by} changed {name} of {feature} in {environment}", STRATEGY
    ),
    EventKind(
        "feature-strategy-remove", "Strategy removed", "{by} removed {name} of {feature} in {environment}", STRATEGY
    ),
    EventKind(
        "strategy-order-changed",
        "Strategies sorted",
        "{by} sorted the strategies of {feature} in {environment}",
        only("strategyIds"),
    ),
    EventKind(
        "feature-dependency-added",
        "Parent added",
        "{by} made {feature} depend on {name}",
        only_after("feature", "enabled", "variants"),
    ),
    EventKind(
        "feature-dependency-removed",
        "Parent removed",
        "{by} removed the parent {name} of {feature}",
        removed("feature"),
    ),
    EventKind("feature-dependencies-removed", "Parents removed", "{by} removed all parents of {feature}", nothing),
    EventKind("feature-tagged", "Flag tagged", "{by} tagged {feature} with {name}"),
    EventKind("feature-untagged", "Tag taken off", "{by} took the tag {name} off {feature}"),
    EventKind("feature-link-added", "Link added", "{by} added the link {name} to {feature}", only_after(*LINK)),
    EventKind("feature-link-updated", "Link changed", "{by} changed the link {name} of {feature}", only(*LINK)),
    EventKind("feature-link-removed", "Link removed", "{by} removed the link {name} of {feature}", only_before(*LINK)),
    EventKind("features-imported", "Import", "{by} imported flags into {project}, {environment}", nothing),
    EventKind("features-exported", "Export", "{by} exported flags"),
    EventKind("tag-created", "Tag created", "{by} created the tag {name}", only("type", "value")),
    EventKind("tag-deleted", "Tag deleted", "{by} deleted the tag {name}", only_after("type", "value")),
    EventKind("tag-type-created", "Tag type created", "{by} created the tag type {name}", TAG_TYPE),
    EventKind("tag-type-updated", "Tag type changed", "{by} changed the tag type {name}", after_only),
    EventKind("tag-type-deleted", "Tag type deleted", "{by} deleted the tag type {name}", TAG_TYPE),
    EventKind("context-field-created", "Context field created", "{by} created the context field {name}"),
    EventKind("context-field-updated", "Context field changed", "{by} changed the context field {name}"),
    EventKind("context-field-deleted", "Context field deleted", "{by} deleted the context field {name}"),
    EventKind("segment-created", "Segment created", "{by} created the segment {name}", without("strategies")),
    EventKind("segment-updated", "Segment changed", "{by} changed the segment {name}"),
    EventKind("segment-deleted", "Segment deleted", "{by} deleted the segment {name}", without("strategies")),
    EventKind("strategy-created", "Strategy type created", "{by} created the strategy type {name}", STRATEGY_TYPE),
    EventKind("strategy-updated", "Strategy type changed", "{by} changed the strategy type {name}", after_only),
    EventKind("strategy-deprecated", "Strategy type deprecated", "{by} deprecated {name}", only_after("name")),
    EventKind("strategy-reactivated", "Strategy type reactivated", "{by} reactivated {name}", only_after("name")),
    EventKind("strategy-deleted", "Strategy type deleted", "{by} deleted the strategy type {name}", only_after("name")),
    EventKind("project-created", "Project created", "{by} created the project {project}", without("roles")),
    EventKind("project-updated", "Project changed", "{by} changed the project {project}"),
    EventKind(
        "project-environment-added", "Environment added", "{by} added {environment} to the project {project}", nothing
    ),
    EventKind(
        "project-environment-removed",
        "Environment removed",
        "{by} removed {environment} from the project {project}",
        nothing,
    ),
    EventKind("project-deleted", "Project deleted", "{by} deleted the project {project}", PROJECT),
    EventKind("project-user-added", "Role given", "{by} gave {name} a role in {project}"),
    EventKind("project-access-added", "Roles given", "{by} gave roles in {project}", only_after("roles")),
    EventKind("project-access-user-roles-updated", "Roles changed", "{by} changed the roles of a user in {project}"),
    EventKind("project-access-user-roles-deleted", "Roles taken", "{by} took the roles of a user in {project}"),
    EventKind("environment-created", "Environment created", "{by} created the environment {environment}", ENVIRONMENT),
    EventKind("environment-updated", "Environment changed", "{by} changed the environment {environment}"),
    EventKind("environment-deleted", "Environment deleted", "{by} deleted the environment {environment}", ENVIRONMENT),
    EventKind("api-token-created", "API token created", "{by} created the API token {name}"),
    EventKind("api-token-updated", "API token changed", "{by} changed the API token {name}"),
    EventKind("api-token-deleted", "API token deleted", "{by} deleted the API token {name}"),
    EventKind("pat-created", "Personal token created", "{by} created the personal token {name}", after_only),
    EventKind("pat-deleted", "Personal token deleted", "{by} deleted the personal token {name}", after_only),
    EventKind("user-created", "User created", "{by} created the user {name}"),
    EventKind("user-updated", "User changed", "{by} changed the user {name}"),
    EventKind("user-deleted", "User deleted", "{by} deleted the user {name}"),
    EventKind("user-linked", "User linked", "{by} linked the user {name} to an account elsewhere"),
    EventKind("user-unlinked", "User unlinked", "{by} unlinked the user {name} from an account elsewhere"),
    EventKind("user-link-created", "Sign-in link made", "{by} made a sign-in link for the user {name}"),
    EventKind("user-sessions-ended", "Sessions ended", "{by} ended sessions of the user {name}"),
    EventKind("addon-config-created", "Webhook made", "{by} made the webhook {name}", without("createdAt")),
    EventKind("addon-config-updated", "Webhook changed", "{by} changed the webhook {name}", without("updatedAt")),
    EventKind("addon-config-deleted", "Webhook deleted", "{by} deleted the webhook {name}"),
    EventKind("setting-created", "Setting made", "{by} made the setting {name}"),
    EventKind("setting-updated", "Setting changed", "{by} changed the setting {name}"),
    EventKind("backup-restored", "Backup restored", "{by} restored a backup of the whole database"),
)
KINDS: Mapping[str, EventKind] = {row.type: row for row in ROWS}
NAMES = ("name", "feature", "tokenName", "username", "email", "value", "url", "description", "id")
"""The members that name what an event is about; the first one that is there counts."""


def kind_of(type_: str) -> EventKind:
    """Return the row of a type; one without words for a type that only an older or newer version knows."""
    return KINDS.get(type_) or EventKind(type_, type_, "{by}: " + type_)


def words_of(kind: EventKind, found: Mapping[str, Any], before: Side, after: Side) -> str:
    """Return an event as a sentence, with its names in bold; `found` has by, feature, environment and project."""
    side = {**(before or {}), **(after or {})}
    name = next((side[each] for each in NAMES if side.get(each) and isinstance(side[each], str | int)), None)
    given = {key: f"**{value}**" for key, value in (dict(found) | {"name": name}).items()}
    return kind.words.format_map(given)


def list_changes(before: Side, after: Side) -> list[dict[str, Any]]:
    """Return each member of an event that is different before and after. Without one of the two sides nothing is compared."""
    if before is None or after is None:
        return []
    return [
        {"name": name, "before": before.get(name), "after": after.get(name)}
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
