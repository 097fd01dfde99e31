"""The shapes of a feature and of what it is in an environment, as a batch carries them (import validation 2).

Only a commercial server makes the release plans and safeguards among them.
"""

from __future__ import annotations

from typing import Any, Final

from flagsvc.http.shapes.containers import Array, Map, Object
from flagsvc.http.shapes.scalars import Boolean, Enum, Integer, Number, String
from flagsvc.http.shapes.shape import Named, Nullable
from flagsvc.server.shapes.strategies import CONSTRAINT, CREATE_STRATEGY_VARIANT, FEATURE_STRATEGY, PARAMETERS, VARIANT

MOMENT: Final = String(format="date-time")

MILESTONE_STRATEGY: Final = Named(
    "releasePlanMilestoneStrategySchema",
    Object(
        {
            "id": String(),
            "milestoneId": String(),
            "sortOrder": Number(),
            "title": Nullable(String()),
            "name": String(),
            "strategyName": String(),
            "parameters": PARAMETERS,
            "constraints": Array(CONSTRAINT),
            "variants": Array(CREATE_STRATEGY_VARIANT),
            "segments": Array(Number()),
            "disabled": Nullable(Boolean()),
        },
        required=("id", "milestoneId", "sortOrder", "strategyName"),
        closed=True,
        description="A strategy that a milestone brings.",
    ),
)

MILESTONE: Final = Named(
    "releasePlanMilestoneSchema",
    Object(
        {
            "id": String(),
            "name": String(),
            "sortOrder": Integer(),
            "releasePlanDefinitionId": String(),
            "startedAt": Nullable(MOMENT),
            "transitionCondition": Nullable(
                Object({"intervalMinutes": Integer(minimum=1)}, required=("intervalMinutes",), closed=True)
            ),
            "progressionExecutedAt": Nullable(MOMENT),
            "pausedAt": Nullable(MOMENT),
            "strategies": Array(MILESTONE_STRATEGY),
        },
        required=("id", "name", "sortOrder", "releasePlanDefinitionId"),
        closed=True,
        description="One step of a release plan.",
    ),
)

TRIGGER: Final = Named(
    "safeguardTriggerConditionSchema",
    Object(
        {"operator": Enum(">", "<"), "threshold": Number()},
        required=("operator", "threshold"),
        closed=True,
        description="The bound at which a safeguard acts.",
    ),
)

SAFEGUARD: Final = Named(
    "safeguardSchema",
    Object(
        {
            "id": String(),
            "action": Object({"type": String(), "id": String()}, required=("type", "id"), closed=True),
            "triggerCondition": TRIGGER,
            "impactMetric": Object(
                {
                    "id": String(),
                    "metricName": String(),
                    "timeRange": Enum("hour", "day", "week", "month"),
                    "aggregationMode": Enum("rps", "count", "avg", "sum", "p95", "p99", "p50"),
                    "labelSelectors": Map(Array(String())),
                },
                required=("id", "metricName", "timeRange", "aggregationMode", "labelSelectors"),
                closed=True,
            ),
        },
        required=("id", "action", "triggerCondition", "impactMetric"),
        closed=True,
        description="What stops a release plan when a metric leaves its bounds.",
    ),
)

RELEASE_PLAN: Final = Named(
    "releasePlanSchema",
    Object(
        {
            "id": String(),
            "discriminator": Enum("plan"),
            "name": String(),
            "description": Nullable(String()),
            "featureName": String(),
            "environment": String(),
            "createdByUserId": Number(),
            "createdAt": MOMENT,
            "activeMilestoneId": Nullable(String()),
            "milestones": Array(MILESTONE),
            "releasePlanTemplateId": String(),
            "safeguards": Array(SAFEGUARD),
        },
        required=(
            *("id", "discriminator", "name", "featureName", "environment", "createdByUserId", "createdAt"),
            *("milestones", "releasePlanTemplateId"),
        ),
        closed=True,
        description="A release plan of a feature in an environment.",
    ),
)


COLOR: Final = Nullable(String(pattern="^#[0-9A-Fa-f]{6}$"), description="Colour, null for none.", example="#FFFFFF")
WHEN: Final = Nullable(MOMENT, example="2024-01-28T15:21:39.975Z")
STAGES: Final = ("initial", "pre-live", "live", "completed", "archived")

TAG: Final = Named(
    "tagSchema",
    Object(
        {
            "value": String(min_length=2, max_length=50, description="Value of the tag.", example="team-a"),
            "type": String(min_length=2, max_length=50, description="Tag type.", example="simple"),
            "color": COLOR,
        },
        required=("value", "type"),
        closed=True,
        description="A tag: a value of a tag type.",
    ),
)

DEPENDENT: Final = Named(
    "dependentFeatureSchema",
    Object(
        {
            "feature": String(description="Parent feature.", example="parent-feature"),
            "enabled": Boolean(description="Whether the parent must be on, or off."),
            "variants": Array(String(), description="Variants of the parent of which one must be the caller's."),
        },
        required=("feature",),
        closed=True,
        description="What a feature asks of its parent.",
    ),
)

PERSON: Final = {"id": Integer(example=123), "name": String(example="Some One"), "imageUrl": String()}
PERSON_NEEDS: Final = ("id", "name", "imageUrl")

LIFECYCLE: Final = Object(
    {"stage": Enum(*STAGES), "status": Nullable(String()), "enteredStageAt": MOMENT},
    required=("stage", "enteredStageAt"),
    closed=True,
    description="Where in its life the feature is.",
)

FEATURE_ENVIRONMENT: Final = Named(
    "featureEnvironmentSchema",
    Object(
        {
            "name": String(description="Environment; in a batch the feature.", example="development"),
            "featureName": String(description="Feature.", example="dark-mode"),
            "environment": String(description="Environment.", example="development"),
            "type": String(description="Type of the environment.", example="production"),
            "enabled": Boolean(description="Whether the feature is on in the environment."),
            "sortOrder": Number(description="Place of the environment."),
            "variantCount": Number(description="Number of variants."),
            "strategies": Array(FEATURE_STRATEGY, description="Strategies of the feature in the environment."),
            "variants": Array(VARIANT, description="Variants of the feature in the environment."),
            "changeRequestIds": Array(Number(), description="Change requests that touch it."),
            "milestoneName": String(),
            "milestoneOrder": Number(),
            "totalMilestones": Number(),
            "lastSeenAt": WHEN,
            "hasStrategies": Boolean(description="Whether it has a strategy."),
            "hasEnabledStrategies": Boolean(description="Whether it has a strategy that is not disabled."),
            "releasePlans": Array(RELEASE_PLAN),
            "safeguards": Array(SAFEGUARD),
            "yes": Integer(minimum=0, description="Evaluations that said yes."),
            "no": Integer(minimum=0, description="Evaluations that said no."),
        },
        required=("name", "enabled"),
        closed=True,
        description="What a feature is in an environment.",
    ),
)

DESCRIPTION: Final[dict[str, Any]] = {"type": "release", "description": None, "stale": False, "impressionData": False}
"""Member that describes a feature → its value in a new feature, and in an import that does not name the member."""

FEATURE: Final = Named(
    "featureSchema",
    Object(
        {
            "name": String(description="Name; unique in the whole server.", example="dark-mode"),
            "type": String(description="Feature type.", example="release"),
            "description": Nullable(String(), description="What it is for.", example="A theme for the night"),
            "archived": Boolean(description="Whether it is put away."),
            "project": String(description="Project it belongs to.", example="default"),
            "enabled": Boolean(description="Whether it is on; the environments say where."),
            "stale": Boolean(description="Whether it has outlived its use."),
            "favorite": Boolean(description="Whether the asking user marked it."),
            "impressionData": Boolean(description="Whether evaluations are to be reported as events."),
            "createdAt": WHEN,
            "createdBy": Object(PERSON, required=PERSON_NEEDS, closed=True, description="Who created it."),
            "archivedAt": WHEN,
            "environments": Array(FEATURE_ENVIRONMENT, description="What it is in each environment."),
            "tags": Nullable(Array(TAG), description="Its tags."),
            "children": Array(String(), description="Features that depend on it."),
            "lifecycle": LIFECYCLE,
            "dependencies": Array(DEPENDENT, description="Its parents."),
            "collaborators": Object(
                {"users": Array(Object(PERSON, required=PERSON_NEEDS))},
                required=("users",),
                description="Who worked on it.",
            ),
            "links": Array(
                Object(
                    {"id": String(), "url": String(), "title": Nullable(String()), "feature": String()},
                    required=("id", "url"),
                    closed=True,
                ),
                description="Pages about it.",
            ),
        },
        required=("name",),
        closed=True,
        description="A feature flag.",
    ),
)
