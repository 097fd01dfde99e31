"""`/api/admin/strategies`: the built-in and custom strategy types, as on the real server."""

from __future__ import annotations

from functools import partial

from flagsvc.http.shapes import Array, Boolean, Enum, Integer, Named, Nullable, Object, String
from flagsvc.server.api.route import Route, by_path, reading, versioned, writing
from flagsvc.server.store.resources import strategy_types

TYPES = ("string", "percentage", "list", "number", "boolean")
PARAMETERS = Array(
    Object(
        {
            "name": String(description="The name of the parameter.", example="rollout"),
            "type": Enum(*TYPES, description="The type of its value."),
            "description": String(description="What it is for."),
            "required": Boolean(description="Whether it is required."),
        },
        required=("name", "type"),
    ),
    description="The parameters of a strategy of this type.",
)
DESCRIPTION = String(description="When the strategy is on.", example="On for those who ask for it")
CREATE = Named(
    "createStrategySchema",
    Object(
        {
            "name": String(description="The name under which SDKs implement it.", example="onRequest"),
            "title": String(description="A title for people."),
            "description": DESCRIPTION,
            "editable": Boolean(description="Has no effect."),
            "deprecated": Boolean(description="Has no effect."),
            "parameters": PARAMETERS,
        },
        required=("name", "parameters"),
        description="A new strategy type.",
    ),
)
UPDATE = Named(
    "updateStrategySchema",
    Object(
        {
            "title": Nullable(String(), description="A title for people."),
            "description": DESCRIPTION,
            "parameters": PARAMETERS,
        },
        required=("parameters",),
        description="A strategy type with new content.",
    ),
)
STRATEGY = Named(
    "strategySchema",
    Object(
        {
            "title": Nullable(String()),
            "name": String(),
            "displayName": Nullable(String()),
            "description": Nullable(String()),
            "editable": Boolean(description="False for a built-in one."),
            "deprecated": Boolean(),
            "parameters": Array(
                Object({"name": String(), "type": String(), "description": String(), "required": Boolean()}, closed=True)
            ),
        },
        required=("name", "displayName", "editable", "deprecated", "parameters"),
        closed=True,
        description="A strategy type.",
    ),
)
STRATEGIES = Named(
    "strategiesSchema",
    Object(
        {"version": Integer(minimum=1, maximum=1), "strategies": Array(STRATEGY)},
        required=("version", "strategies"),
        closed=True,
        description="Every strategy type.",
    ),
)


PATH = "/api/admin/strategies"
route = partial(Route, tag="Strategies")

ROUTES = (
    route(
        path=PATH,
        handler=reading(versioned("strategies", by_path(strategy_types.list_types))),
        operation="getAllStrategies",
        summary="List strategy types",
        result=STRATEGIES,
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(by_path(strategy_types.create), location="strategies/{name}"),
        operation="createStrategy",
        summary="Create a strategy type",
        permission="CREATE_STRATEGY",
        body=CREATE,
        status=201,
        result=STRATEGY,
    ),
    route(
        path=f"{PATH}/:name",
        handler=reading(by_path(strategy_types.find)),
        operation="getStrategy",
        summary="Show a strategy type",
        result=STRATEGY,
    ),
    route(
        path=f"{PATH}/:name",
        method="PUT",
        handler=writing(by_path(strategy_types.change)),
        operation="updateStrategy",
        summary="Change a custom strategy type",
        permission="UPDATE_STRATEGY",
        body=UPDATE,
    ),
    route(
        path=f"{PATH}/:name",
        method="DELETE",
        handler=writing(by_path(strategy_types.remove)),
        operation="removeStrategy",
        summary="Delete a custom strategy type",
        permission="DELETE_STRATEGY",
    ),
    route(
        path=f"{PATH}/:strategyName/deprecate",
        method="POST",
        handler=writing(by_path(strategy_types.deprecate)),
        operation="deprecateStrategy",
        summary="Mark a strategy type as deprecated",
        permission="UPDATE_STRATEGY",
    ),
    route(
        path=f"{PATH}/:strategyName/reactivate",
        method="POST",
        handler=writing(by_path(strategy_types.reactivate)),
        operation="reactivateStrategy",
        summary="Mark a strategy type as not deprecated",
        permission="UPDATE_STRATEGY",
    ),
)
