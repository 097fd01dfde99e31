"""The shapes of strategies, constraints and variants as a batch carries them (import validation 2)."""

from __future__ import annotations

from typing import Final

from flagsvc.engine.operators import OPERATORS
from flagsvc.http.shapes.containers import Array, Map, Object
from flagsvc.http.shapes.scalars import Boolean, Enum, Integer, Number, String
from flagsvc.http.shapes.shape import Named, Nullable

UNLISTED: Final = tuple(name for name, operator in OPERATORS.items() if operator.extension)
"""The operators that no message names."""
PAYLOAD_TYPES: Final = ("json", "csv", "string", "number")

CONSTRAINT: Final = Named(
    "constraintSchema",
    Object(
        {
            "contextName": String(description="Context field that is compared.", example="appName"),
            "operator": Enum(*OPERATORS, unlisted=UNLISTED, description="How it is compared.", example="IN"),
            "caseInsensitive": Boolean(description="Whether letter case is ignored where text is compared."),
            "inverted": Boolean(description="Whether the outcome is turned round."),
            "values": Array(String(), description="Values of an operator that takes several.", example=["web", "app"]),
            "value": String(min_length=1, description="Value of an operator that takes one.", example="1.2.3"),
        },
        required=("contextName", "operator"),
        closed=True,
        description="A condition on one field of the context.",
    ),
)

PARAMETERS: Final = Named(
    "parametersSchema",
    Map(String(), description="Parameters of a strategy by name; every value is text.", example={"rollout": "50"}),
)

WEIGHT_TYPE: Final = Enum("variable", "fix", description="Whether the weight is set or shares what the set ones leave.")
PAYLOAD: Final = {
    "type": Enum(*PAYLOAD_TYPES, description="How the value is to be read."),
    "value": String(description="The value as text."),
}
STRATEGY_VARIANT_FIELDS: Final = {
    "name": String(description="Name of the variant; unique in its strategy.", example="blue"),
    "weight": Integer(minimum=0, maximum=1000, description="Share of the variant in thousandths."),
    "weightType": WEIGHT_TYPE,
    "stickiness": String(description="Context field that decides who gets which variant.", example="userId"),
    "payload": Object(PAYLOAD, required=("type", "value"), description="What the variant carries."),
}
STRATEGY_VARIANT_NEEDS: Final = ("name", "weight", "weightType", "stickiness")

STRATEGY_VARIANT: Final = Named(
    "strategyVariantSchema",
    Object(STRATEGY_VARIANT_FIELDS, required=STRATEGY_VARIANT_NEEDS, closed=True, description="A variant of a strategy."),
)

CREATE_STRATEGY_VARIANT: Final = Named(
    "createStrategyVariantSchema",
    Object(STRATEGY_VARIANT_FIELDS, required=STRATEGY_VARIANT_NEEDS, description="A variant for a new strategy."),
)

OVERRIDE: Final = Named(
    "overrideSchema",
    Object(
        {
            "contextName": String(description="Context field that is looked at.", example="userId"),
            "values": Array(String(), description="Values that get the variant in spite of the weights."),
        },
        required=("contextName", "values"),
        closed=True,
        description="Who gets a variant regardless of its weight.",
    ),
)

VARIANT: Final = Named(
    "variantSchema",
    Object(
        {
            "name": String(description="Name of the variant; unique in its feature.", example="blue"),
            "weight": Number(minimum=0, maximum=1000, description="Share of the variant in thousandths."),
            "weightType": WEIGHT_TYPE,
            "stickiness": String(description="Context field that decides who gets which variant.", example="default"),
            "payload": Object(PAYLOAD, required=("type", "value"), closed=True, description="What the variant carries."),
            "overrides": Array(OVERRIDE, description="Who gets this variant regardless of its weight."),
        },
        required=("name", "weight"),
        closed=True,
        description="A variant of a feature in an environment.",
    ),
)

FEATURE_STRATEGY: Final = Named(
    "featureStrategySchema",
    Object(
        {
            "id": String(description="Identifier of the strategy.", example="6b5157cb-343a-41e7-bfa3-7b4ec3044840"),
            "name": String(description="Strategy type.", example="flexibleRollout"),
            "title": Nullable(String(), description="What people call it.", example="Half of the users"),
            "disabled": Nullable(Boolean(), description="Whether the strategy is left out of evaluation."),
            "featureName": String(description="Feature that the strategy belongs to.", example="dark-mode"),
            "sortOrder": Number(description="Place among the strategies of the feature.", example=1),
            "segments": Array(Number(), description="Ids of the segments that must hold.", example=[1, 2]),
            "constraints": Array(CONSTRAINT, description="Conditions that must all hold."),
            "variants": Array(STRATEGY_VARIANT, description="Variants of the strategy."),
            "parameters": PARAMETERS,
        },
        required=("name",),
        closed=True,
        description="An activation strategy of a feature in one environment.",
    ),
)
