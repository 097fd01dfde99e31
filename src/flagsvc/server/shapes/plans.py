"""The shapes of release plans and safeguards, which only a commercial server makes and a batch may carry (import validation 2)."""

from __future__ import annotations

from typing import Final

from flagsvc.http.shapes.containers import Array, Map, Object
from flagsvc.http.shapes.scalars import Boolean, Enum, Integer, Number, String
from flagsvc.http.shapes.shape import Named, Nullable
from flagsvc.server.shapes.strategies import CONSTRAINT, CREATE_STRATEGY_VARIANT, PARAMETERS

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
