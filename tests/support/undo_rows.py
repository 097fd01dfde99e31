"""The state before each change that is undone, and a change for each kind of event that can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from support.admin_call_rows import Step, delete, post, put

PRODUCTION_SECRET = "*:production.backend-secret-of-tests"
P = "/api/admin/projects/default"
F = f"{P}/features"
A = f"{F}/a"
HERE = f"{A}/environments/development"
RULES = f"{HERE}/strategies"
SHOP = "/api/admin/projects/shop"
TAG = {"type": "simple", "value": "blue"}
ROLLOUT = {"rollout": "25", "stickiness": "userId", "groupId": "a"}
RULE = {"name": "flexibleRollout", "parameters": ROLLOUT, "title": "one", "segments": [1]}
VARIANT = {"name": "v", "weight": 1000, "weightType": "variable", "stickiness": "default"}
ONLY_SEVEN = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
GIVEN: dict[str, Any] = {
    "users": [{"name": "guest", "rootRole": "viewer"}],
    "environments": [{"name": "staging", "type": "test"}],
    "projects": [{"id": "shop", "name": "Shop", "environments": ["development"]}],
    "tokens": [{"type": "backend", "environment": "production", "secret": PRODUCTION_SECRET}],
    "features": [
        {"name": "a"},
        {"name": "parent"},
        {"name": "other"},
        {"name": "c"},
        {"name": "goods", "project": "shop"},
    ],
    "segments": [{"name": name, "constraints": ONLY_SEVEN} for name in ("beta", "idle", "free")],
    "contextFields": [{"name": "plan", "description": "d", "stickiness": True, "legalValues": [{"value": "gold"}]}],
    "strategyTypes": [{"name": "hours", "parameters": [], "description": "d"}, {"name": "days", "parameters": []}],
    "tagTypes": [{"name": "area", "description": "d"}, {"name": "late", "description": "x"}],
}
"""What a server has before the steps of STARTED."""
STARTED: tuple[Step, ...] = (
    post(RULES, RULE, keep="first"),
    post(RULES, RULE | {"title": "two", "segments": []}, keep="second"),
    post(f"{HERE}/on"),
    post(f"{F}/c/environments/development/strategies", RULE | {"segments": [2]}),
    put(f"{A}/variants-batch", {"environments": ["development"], "variants": [VARIANT]}),
    post(f"{A}/dependencies", {"feature": "parent", "variants": []}),
    post("/api/admin/features/a/tags", TAG),
    post("/api/admin/features/a/tags", {"type": "area", "value": "cart"}),
    delete(f"{F}/c"),
)
"""A flag `a` with all that a flag can have, and an archived flag `c` with the segment `idle`."""


def data_set(**given: Any) -> Step:
    """Return the import of a data set into `default`, `development`."""
    names = ("features", "featureStrategies", "featureEnvironments", "contextFields", "featureTags", "segments")
    data = {name: [] for name in (*names, "tagTypes")} | given
    body = {"project": "default", "environment": "development", "data": data}
    return post("/api/admin/features-batch/import", body)


def links(*urls: str) -> Step:
    """Return the import of the links of `a`."""
    return data_set(links=[{"feature": "a", "links": [{"url": each, "title": each} for each in urls]}])


LINKED = links("https://example.com/x", "https://example.com/y")
IMPORT = data_set(
    features=[
        {"name": "a", "type": "experiment", "description": "brought", "stale": True},
        {"name": "new", "type": "release"},
    ],
    featureStrategies=[
        {"name": "default", "featureName": "a", "parameters": {}, "constraints": []},
        {"name": "default", "featureName": "new", "parameters": {}, "constraints": []},
    ],
    featureEnvironments=[
        {"enabled": False, "featureName": "a", "environment": "development", "name": "a", "variants": []},
        {"enabled": True, "featureName": "new", "environment": "development", "name": "new", "variants": [VARIANT]},
    ],
    contextFields=[{"name": "region", "legalValues": [{"value": "eu"}]}],
    featureTags=[{"featureName": "new", "tagType": "fresh", "tagValue": "cart"}],
    tagTypes=[{"name": "fresh", "description": "x", "icon": ""}],
    dependencies=[{"feature": "new", "dependencies": [{"feature": "parent"}]}],
    links=[{"feature": "new", "links": [{"url": "https://example.com/x", "title": "t"}]}],
)
"""It changes a flag, makes another with all that it may have, and what that needs."""


class Trial(NamedTuple):
    """Steps before a change, and the change, whose newest event of a kind is undone."""

    change: Step
    before: tuple[Step, ...] = ()


SEGMENT = {"name": "extra", "constraints": ONLY_SEVEN}
MEMBER = {"roles": [5], "groups": [], "users": [4]}
ROLES = f"{P}/users/4/roles"
TRIALS: Mapping[str, Trial] = {
    "feature-created": Trial(post(F, {"name": "z", "description": "d", "tags": [TAG]})),
    "feature-deleted": Trial(delete("/api/admin/archive/a"), (LINKED, delete(A))),
    "feature-metadata-updated": Trial(put(A, {"name": "a", "type": "experiment", "description": "x", "stale": True})),
    "feature-stale-on": Trial(post(f"{P}/stale", {"features": ["a"], "stale": True})),
    "feature-stale-off": Trial(
        post(f"{P}/stale", {"features": ["a"], "stale": False}),
        (post(f"{P}/stale", {"features": ["a"], "stale": True}),),
    ),
    "feature-archived": Trial(delete(A), (delete(f"{A}/dependencies"),)),
    "feature-revived": Trial(post("/api/admin/archive/revive/a"), (delete(A),)),
    "feature-environment-enabled": Trial(post(f"{HERE}/on"), (post(f"{HERE}/off"),)),
    "feature-environment-disabled": Trial(post(f"{HERE}/off")),
    "feature-environment-variants-updated": Trial(put(f"{HERE}/variants", [VARIANT | {"name": "w"}])),
    "feature-strategy-add": Trial(post(RULES, RULE | {"title": "three"})),
    "feature-strategy-update": Trial(put(f"{RULES}/{{first}}", RULE | {"title": "changed", "segments": []})),
    "feature-strategy-remove": Trial(delete(f"{RULES}/{{first}}")),
    "strategy-order-changed": Trial(
        post(f"{RULES}/set-sort-order", [{"id": "{second}", "sortOrder": 0}, {"id": "{first}", "sortOrder": 1}])
    ),
    "feature-dependency-added": Trial(post(f"{A}/dependencies", {"feature": "other", "enabled": False})),
    "feature-dependency-removed": Trial(delete(f"{A}/dependencies/parent")),
    "feature-dependencies-removed": Trial(delete(f"{A}/dependencies")),
    "feature-tagged": Trial(post("/api/admin/features/other/tags", TAG)),
    "feature-untagged": Trial(delete("/api/admin/features/a/tags/simple/blue")),
    "feature-link-added": Trial(LINKED),
    "feature-link-updated": Trial(put(f"{A}/link/{{link}}", {"url": "https://example.com/z", "title": "z"}), (LINKED,)),
    "feature-link-removed": Trial(links("https://example.com/y"), (LINKED,)),
    "features-imported": Trial(IMPORT),
    "tag-created": Trial(post("/api/admin/tags", {"type": "simple", "value": "free"})),
    "tag-deleted": Trial(delete("/api/admin/tags/simple/blue")),
    "tag-type-created": Trial(post("/api/admin/tag-types", {"name": "team", "description": "d"})),
    "tag-type-updated": Trial(put("/api/admin/tag-types/area", {"description": "e", "icon": "j"})),
    "tag-type-deleted": Trial(delete("/api/admin/tag-types/area")),
    "context-field-created": Trial(post("/api/admin/context", {"name": "color", "legalValues": [{"value": "a"}]})),
    "context-field-updated": Trial(put("/api/admin/context/plan", {"name": "plan", "stickiness": False})),
    "context-field-deleted": Trial(delete("/api/admin/context/plan")),
    "segment-created": Trial(post("/api/admin/segments", SEGMENT)),
    "segment-updated": Trial(put("/api/admin/segments/1", {"name": "gamma", "description": "e", "constraints": []})),
    "segment-deleted": Trial(delete("/api/admin/segments/2")),
    "strategy-created": Trial(post("/api/admin/strategies", {"name": "weeks", "parameters": []})),
    "strategy-updated": Trial(
        put("/api/admin/strategies/hours", {"name": "hours", "description": "j", "parameters": []})
    ),
    "strategy-deprecated": Trial(post("/api/admin/strategies/hours/deprecate")),
    "strategy-reactivated": Trial(
        post("/api/admin/strategies/hours/reactivate"), (post("/api/admin/strategies/hours/deprecate"),)
    ),
    "strategy-deleted": Trial(delete("/api/admin/strategies/hours")),
    "project-created": Trial(post("/api/admin/projects", {"id": "new", "name": "New"})),
    "project-updated": Trial(put(P, {"name": "The default", "description": "d", "featureLimit": 100})),
    "project-deleted": Trial(
        delete(SHOP),
        (post(f"{SHOP}/access", MEMBER), delete(f"{SHOP}/features/goods"), delete("/api/admin/archive/goods")),
    ),
    "project-environment-added": Trial(post(f"{P}/environments", {"environment": "staging"})),
    "project-environment-removed": Trial(delete(f"{P}/environments/development")),
    "project-access-added": Trial(post(f"{P}/access", MEMBER)),
    "project-access-user-roles-updated": Trial(put(ROLES, {"roles": [4]}), (post(f"{P}/access", MEMBER),)),
    "project-access-user-roles-deleted": Trial(delete(ROLES), (post(f"{P}/access", MEMBER),)),
    "environment-created": Trial(post("/api/admin/environments", {"name": "qa", "type": "test"})),
    "environment-updated": Trial(put("/api/admin/environments/update/staging", {"type": "other", "sortOrder": 7})),
    "environment-deleted": Trial(
        delete("/api/admin/environments/staging"),
        (
            post(f"{P}/environments", {"environment": "staging"}),
            post(f"{A}/environments/staging/strategies", RULE),
            delete(f"{P}/environments/staging"),
        ),
    ),
}
"""Kind of event → its trial."""
TOGETHER: Mapping[str, Trial] = {
    "a patch that marks as stale": Trial(
        Step(
            "PATCH",
            A,
            [
                {"op": "replace", "path": "/stale", "value": True},
                {"op": "replace", "path": "/description", "value": "p"},
            ],
        )
    ),
    "an archived child": Trial(delete(A)),
    "a clone": Trial(post(f"{A}/clone", {"name": "copy"})),
    "a first switch": Trial(post(f"{F}/other/environments/production/on")),
    "a new tag": Trial(post("/api/admin/features/other/tags", {"type": "simple", "value": "new"})),
    "an import over an import": Trial(
        data_set(
            features=[{"name": "new"}],
            featureEnvironments=[
                {"enabled": False, "featureName": "new", "environment": "development", "name": "new", "variants": []}
            ],
            links=[{"feature": "new", "links": []}],
        ),
        (IMPORT,),
    ),
    "a project with all that is its own": Trial(
        delete(SHOP),
        (
            post("/api/admin/segments", {"name": "own", "constraints": [], "project": "shop"}, keep="own"),
            post("/api/admin/context", {"name": "basket", "project": "shop"}),
            post(f"{SHOP}/features/goods/environments/development/strategies", RULE | {"segments": ["{own}"]}),
            delete(f"{SHOP}/features/goods"),
        ),
    ),
    "flags at once": Trial(
        post(f"{P}/delete", {"features": ["a", "c"]}), (post(f"{P}/archive", {"features": ["a", "other"]}),)
    ),
}
"""Changes of several events → their trial; the whole action is undone."""
IS_RED = {"contextName": "color", "operator": "IN", "values": ["red"]}
USED = RULE | {"segments": [4]}
OBSTACLES: Mapping[str, tuple[str, tuple[Step, ...], str]] = {
    "a flag that has a strategy since": (
        "feature-created",
        (post(F, {"name": "z"}), post(f"{F}/z/environments/development/strategies", RULE)),
        "added",
    ),
    "a flag with a child": (
        "feature-created",
        (post(F, {"name": "z"}), post(f"{F}/other/dependencies", {"feature": "z"})),
        "depend on z",
    ),
    "a segment in use": (
        "segment-created",
        (post("/api/admin/segments", SEGMENT), post(RULES, USED)),
        "added flexibleRollout",
    ),
    "a context field in use": (
        "context-field-created",
        (post("/api/admin/context", {"name": "color"}), post(RULES, RULE | {"constraints": [IS_RED]})),
        "added flexibleRollout",
    ),
    "a strategy type in use": (
        "strategy-created",
        (post("/api/admin/strategies", {"name": "weeks", "parameters": []}), post(RULES, {"name": "weeks"})),
        "added weeks",
    ),
    "a tag that another flag has": (
        "tag-created",
        (post("/api/admin/tags", TAG | {"value": "new"}), post("/api/admin/features/a/tags", TAG | {"value": "new"})),
        "tagged a with new",
    ),
    "a deleted segment of a revived flag": (
        "segment-deleted",
        (delete("/api/admin/segments/2"), post("/api/admin/archive/revive/c")),
        "The flag c, which used the segment, is active again",
    ),
    "a project with a member": (
        "project-created",
        (post("/api/admin/projects", {"id": "new", "name": "N"}), post("/api/admin/projects/new/access", MEMBER)),
        "gave roles in new",
    ),
    "an environment that a project has": (
        "environment-created",
        (
            post("/api/admin/environments", {"name": "qa", "type": "test"}),
            post(f"{P}/environments", {"environment": "qa"}),
        ),
        "added qa to the project default",
    ),
    "an environment of a project, in which a flag is on": (
        "project-environment-added",
        (post(f"{P}/environments", {"environment": "staging"}), post(f"{A}/environments/staging/on")),
        "switched a on in staging",
    ),
    "a switch of a revived flag": (
        "feature-environment-enabled",
        (post(f"{HERE}/off"), post(f"{HERE}/on"), delete(A), post("/api/admin/archive/revive/a")),
        "revived a",
    ),
    "a switch in an environment that the project no longer has": (
        "feature-environment-enabled",
        (post(f"{HERE}/off"), post(f"{HERE}/on"), delete(f"{P}/environments/development")),
        "removed development from the project default",
    ),
    "a parent that is archived": (
        "feature-dependency-removed",
        (delete(f"{A}/dependencies/parent"), delete(f"{F}/parent")),
        "No active feature parent exists",
    ),
}
"""What stands in the way → the kind that is undone, the steps, and what the message says."""
