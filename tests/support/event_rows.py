"""Changes that our flag server and the real one get alike, and the questions about their events; each difference has a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.admin_call_rows import ADMIN, Step, delete, get, post, put

P = "/api/admin/projects/default"
F = f"{P}/features"
HERE = f"{F}/fresh/environments/development"
ROLLOUT = {"rollout": "50", "stickiness": "default", "groupId": "fresh"}
VARIANT = {"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}
LATER = "2099-01-01T00:00:00.000Z"
SET: dict[str, Any] = {
    "features": [{"name": "brought", "type": "release", "description": "d", "stale": False}],
    "featureStrategies": [{"name": "default", "featureName": "brought", "parameters": {}, "constraints": []}],
    "featureEnvironments": [
        {
            "enabled": True,
            "featureName": "brought",
            "environment": "development",
            "name": "brought",
            "variants": [VARIANT],
        }
    ],
    "contextFields": [{"name": "region", "legalValues": [{"value": "eu"}]}],
    "featureTags": [{"featureName": "brought", "tagType": "area", "tagValue": "cart"}],
    "segments": [],
    "tagTypes": [{"name": "area", "description": "x", "icon": ""}],
    "dependencies": [{"feature": "brought", "dependencies": [{"feature": "app"}]}],
    "links": [{"feature": "brought", "links": [{"url": "https://example.com/x", "title": "t"}]}],
}
OTHER = {"features": [SET["features"][0] | {"description": "other", "stale": True}], "featureStrategies": []}
CHANGED = (
    SET
    | OTHER
    | {
        "featureEnvironments": [
            SET["featureEnvironments"][0] | {"enabled": False, "variants": [VARIANT | {"name": "b"}]}
        ]
    }
    | {"featureTags": [SET["featureTags"][0] | {"tagValue": "other"}], "links": [{"feature": "brought", "links": []}]}
)


def imported(data: Mapping[str, Any]) -> Step:
    """Return an import into `default`."""
    body = {"project": "default", "environment": "development", "data": data}
    return post("/api/admin/features-batch/import", body)


CHANGES: dict[str, tuple[Step, ...]] = {
    "a flag": (
        post(F, {"name": "fresh"}),
        put(f"{F}/fresh", {"name": "fresh", "type": "experiment", "description": "x"}),
        put(f"{F}/fresh", {"name": "fresh", "type": "experiment", "description": "x"}),
        Step("PATCH", f"{F}/fresh", [{"op": "replace", "path": "/stale", "value": True}]),
        post(f"{P}/stale", {"features": ["fresh"], "stale": False}),
        post(f"{P}/stale", {"features": ["fresh"], "stale": False}),
        post(f"{F}/fresh/clone", {"name": "copy"}),
        delete(f"{F}/fresh"),
        post("/api/admin/archive/revive/fresh"),
        post(f"{P}/archive", {"features": ["fresh"]}),
        post(f"{P}/archive", {"features": ["copy"]}),
        post(f"{P}/revive", {"features": ["fresh"]}),
        delete(f"{F}/fresh"),
        delete("/api/admin/archive/fresh"),
        post(f"{P}/delete", {"features": ["copy"]}),
    ),
    "strategies": (
        post(F, {"name": "fresh"}),
        post(f"{HERE}/strategies", {"name": "flexibleRollout", "parameters": ROLLOUT}, keep="first"),
        put(f"{HERE}/strategies/{{first}}", {"name": "flexibleRollout", "parameters": ROLLOUT, "title": "T"}),
        put(f"{HERE}/strategies/{{first}}", {"name": "flexibleRollout", "parameters": ROLLOUT, "title": "T"}),
        Step("PATCH", f"{HERE}/strategies/{{first}}", [{"op": "replace", "path": "/title", "value": "TT"}]),
        post(f"{HERE}/strategies", {"name": "default"}, who=ADMIN, keep="second"),
        post(
            f"{HERE}/strategies/set-sort-order",
            [{"id": "{second}", "sortOrder": 0}, {"id": "{first}", "sortOrder": 1}],
        ),
        post(f"{HERE}/on"),
        post(f"{HERE}/on"),
        post(f"{F}/fresh/environments/production/on"),
        put(f"{HERE}/strategies/{{first}}", {"name": "flexibleRollout", "parameters": ROLLOUT, "disabled": True}),
        put(f"{HERE}/strategies/{{second}}", {"name": "default", "disabled": True}),
        post(f"{HERE}/on?shouldActivateDisabledStrategies=true"),
        delete(f"{HERE}/strategies/{{second}}"),
        delete(f"{HERE}/strategies/{{first}}"),
        put(f"{F}/fresh/variants-batch", {"environments": ["development"], "variants": [VARIANT]}),
        put(f"{HERE}/variants", [VARIANT | {"name": "b"}]),
        Step("PATCH", f"{HERE}/variants", [{"op": "replace", "path": "/0/name", "value": "c"}]),
        post(f"{F}/fresh/environments/production/off"),
    ),
    "parents and tags": (
        post(F, {"name": "fresh"}),
        post(f"{F}/fresh/dependencies", {"feature": "web"}),
        post(f"{F}/fresh/dependencies", {"feature": "app", "enabled": False}),
        delete(f"{F}/fresh/dependencies/app"),
        post(f"{F}/fresh/dependencies", {"feature": "web", "variants": ["a"]}),
        delete(f"{F}/fresh/dependencies"),
        post("/api/admin/tags", {"type": "simple", "value": "free"}),
        delete("/api/admin/tags/simple/free"),
        delete("/api/admin/tags/simple/free"),
        post("/api/admin/features/fresh/tags", {"type": "simple", "value": "one"}),
        post("/api/admin/features/fresh/tags", {"type": "simple", "value": "one"}),
        put(
            "/api/admin/features/fresh/tags",
            {"addedTags": [{"type": "simple", "value": "two"}], "removedTags": [{"type": "simple", "value": "one"}]},
        ),
        put(
            f"{P}/tags",
            {
                "features": ["fresh"],
                "tags": {
                    "addedTags": [{"type": "simple", "value": "three"}],
                    "removedTags": [{"type": "simple", "value": "never"}],
                },
            },
        ),
        delete("/api/admin/features/fresh/tags/simple/two"),
        post("/api/admin/tag-types", {"name": "area", "description": "d", "icon": "i"}),
        put("/api/admin/tag-types/area", {"description": "e", "icon": "j"}),
        delete("/api/admin/tag-types/area"),
    ),
    "links": (
        post(F, {"name": "fresh"}),
        post(f"{F}/fresh/link", {"url": "https://example.com/a/"}),
        post(f"{F}/fresh/link", {"url": "https://example.com/b", "title": "B"}),
        get(f"{F}/fresh", keep="first"),
        put(f"{F}/fresh/link/{{first}}", {"url": "https://example.com/c"}),
        put(f"{F}/fresh/link/{{first}}", {"url": "https://example.com/c", "title": "C"}),
        put(f"{F}/fresh/link/{{first}}", {"url": "https://example.com/c", "title": "C"}),
        delete(f"{F}/fresh/link/{{first}}"),
    ),
    "segments and fields": (
        post("/api/admin/segments", {"name": "all", "constraints": []}, keep="all"),
        post("/api/admin/segments", {"name": "here", "constraints": [], "project": "default"}, keep="here"),
        post(F, {"name": "fresh"}),
        post(f"{HERE}/strategies", {"name": "default"}, keep="rule"),
        post(
            "/api/admin/segments/strategies",
            {"projectId": "default", "strategyId": "{rule}", "environmentId": "development", "segmentIds": ["{here}"]},
        ),
        post(
            "/api/admin/segments/strategies",
            {"projectId": "default", "strategyId": "{rule}", "environmentId": "development", "segmentIds": []},
        ),
        delete(f"{HERE}/strategies/{{rule}}"),
        put("/api/admin/segments/{all}", {"name": "everybody", "constraints": []}),
        delete("/api/admin/segments/{all}"),
        delete("/api/admin/segments/{here}"),
        post("/api/admin/context", {"name": "color", "legalValues": [{"value": "a"}]}),
        put("/api/admin/context/color", {"name": "color", "description": "k", "legalValues": [{"value": "a"}]}),
        post("/api/admin/context/color/legal-values", {"value": "q"}),
        delete("/api/admin/context/color/legal-values/q"),
        delete("/api/admin/context/color"),
    ),
    "types and environments": (
        post("/api/admin/strategies", {"name": "hours", "parameters": []}),
        put("/api/admin/strategies/hours", {"name": "hours", "description": "j", "parameters": []}),
        post("/api/admin/strategies/hours/deprecate"),
        post("/api/admin/strategies/hours/reactivate"),
        delete("/api/admin/strategies/hours"),
        delete(f"{P}/environments/production"),
        post(f"{P}/environments", {"environment": "production"}),
        post("/api/admin/environments/production/off"),
        post("/api/admin/environments/production/on"),
        post("/api/admin/maintenance", {"enabled": True}),
        post("/api/admin/maintenance", {"enabled": False}),
    ),
    "tokens and users": (
        post(
            "/api/admin/api-tokens",
            {"tokenName": "t", "type": "backend", "projects": ["default", "other"]},
            keep="token",
        ),
        put("/api/admin/api-tokens/{token}", {"expiresAt": LATER}),
        delete("/api/admin/api-tokens/{token}"),
        post("/api/admin/user/tokens", {"description": "mine", "expiresAt": LATER}, keep="pat"),
        delete("/api/admin/user/tokens/{pat}"),
        post("/api/admin/user-admin", {"username": "newcomer", "rootRole": 3}),
    ),
    "imports": (imported(SET), imported(CHANGED)),
}
"""Each history begins in the state of `server_pair`."""

IDLE = {
    "feature-tagged": "the tag is there already",
    "feature-untagged": "the tag is not there",
    "tag-deleted": "the tag is not there",
    "feature-link-added": "the link is there already",
    "feature-link-updated": "the link says the same already",
}
"""Types that the real server also writes where nothing changes."""
ADDED: dict[tuple[str, str], str] = {
    ("segments and fields", "feature-strategy-update"): "the segments of a strategy change",
    ("types and environments", "environment-updated"): "an environment is switched",
    ("imports", "feature-strategy-remove"): "an import replaces a strategy",
    ("imports", "feature-untagged"): "an import removes a tag",
    ("imports", "feature-link-removed"): "an import removes a link",
}
"""History and type of the events that only ours writes."""
FULLER = {
    "context-field-created": "the real server has the request",
    "context-field-updated": "the real server has the request",
    "tag-type-updated": "the real server has the request",
    "strategy-created": "the real server has the request",
    "strategy-updated": "the real server has the request",
    "pat-created": "the real server has the request",
    "pat-deleted": "the real server has a masked secret",
}
"""Types whose data and preData have more members here."""
ODD = {"api-token-updated": "the real server says `*` for the projects of the token"}
"""Types of which only the type is compared."""
OTHER_TAGS = {
    "feature-untagged": "the real server has the tags before or after, by the request",
    "feature-tagged": "the real server has the tags before others are removed",
    "feature-deleted": "the real server has the tags before",
}
"""Types whose tags are not compared. Those of imports are not either: the real server has the tags of the moment of each step."""

SEARCH = "/api/admin/search/events"
QUESTIONS = (
    *(
        "/api/admin/events",
        "/api/admin/events?project=default",
        "/api/admin/events?project=",
        "/api/admin/events?limit=2",
    ),
    *("/api/admin/events?project=nowhere", "/api/admin/events?project=default&project=other", "/api/admin/events/"),
    *("/api/admin/events/fresh", "/api/admin/events/FRESH", "/api/admin/events/nowhere"),
    *(
        f"{SEARCH}?{query}"
        for query in (
            *("", "limit=3", "limit=0", "limit=-1", "limit=1000", "limit=1001", "limit=abc", "limit=2.5", "limit=5x"),
            *("limit=", "offset=2&limit=2", "offset=-2&limit=2", "offset=x&limit=2"),
            *("offset=1.5&limit=2", "offset=100000", "type=IS:feature-created", "type=feature-created", "type="),
            *("type=IS_ANY_OF:feature-created,feature-archived",),
            *("type=IS_NOT:feature-created", "type=IS:", "type=IS:a&type=IS:b", "feature=IS:fresh", "feature=fresh"),
            *(
                "feature=IS_ANY_OF:,fresh",
                "project=IS:default",
                "project=IS:nowhere",
                "project=IS_ANY_OF:other,default",
            ),
            *("project=INCLUDE:default", "environment=IS:development", "environment=IS_ANY_OF:development,production"),
            *("createdBy=IS:-42", "createdBy=IS:424242", "createdBy=boss", "createdBy=IS:", "id=IS:", "id=40"),
            *("groupId=IS:nothing", "groupId=x", "query=experiment", "query=EXPERIMENT", "query=x,y", "query="),
            *("from=IS:2020-01-01", "to=IS:2020-01-01", "from=IS:2020-01-01&to=IS:2100-01-01", "from=2020-01-01"),
            *("from=", "to=IS_BEFORE:2020-01-01", "nonsense=3", "sortOrder=asc"),
        )
    ),
)
"""What is asked after the history of a flag, and answered alike."""
REFUSED_HERE = ("createdBy=IS:boss", "id=IS:abc", "from=IS:2026-13-45", "id=IS:99999999999999999999")
"""Searches that are 400 here, and 500 there."""
ASKERS = ("boss", "writer", "reader", "owner", "member", "admin")
