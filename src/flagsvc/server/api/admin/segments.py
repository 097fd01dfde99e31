"""`/api/admin/segments`: named lists of constraints, and the strategies that use them, as on the real server."""

from __future__ import annotations

from functools import partial

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Array, Integer, Named, Nullable, Object, String
from flagsvc.server.api.authorization import (
    MAX_ID,
    body_project,
    read_number,
    segment_project,
    written_segment_project,
)
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import NAME_BODY, Route, by_path, location_header, reading, writing
from flagsvc.server.shapes.strategies import CONSTRAINT
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import segments
from flagsvc.server.store.store import Tx

COUNT = Nullable(Integer(minimum=0))
CONSTRAINTS = Array(CONSTRAINT, description="Conditions that must all hold.")

UPSERT = Named(
    "upsertSegmentSchema",
    Object(
        {
            "name": String(description="The name of the segment.", example="beta-users"),
            "description": Nullable(String(), description="What it is for.", example="Customers who try what is new"),
            "project": Nullable(String(), description="The only project that may use it; absent for all."),
            "constraints": CONSTRAINTS,
        },
        required=("name", "constraints"),
        description="The content of a segment.",
    ),
)
SEGMENT = Named(
    "adminSegmentSchema",
    Object(
        {
            "id": Integer(minimum=0),
            "name": String(),
            "description": Nullable(String()),
            "constraints": CONSTRAINTS,
            "usedInFeatures": COUNT,
            "usedInProjects": COUNT,
            "project": Nullable(String()),
            "createdBy": Nullable(String()),
            "createdAt": String(format="date-time"),
        },
        required=("id", "name", "constraints", "createdAt"),
        closed=True,
        description="A segment.",
    ),
)
SEGMENTS = Named("segmentsSchema", Object({"segments": Array(SEGMENT)}, description="Several segments."))
OF_STRATEGY = Named(
    "updateFeatureStrategySegmentsSchema",
    Object(
        {
            "projectId": String(description="The project of the strategy's feature.", example="default"),
            "strategyId": String(description="The strategy that gets the segments."),
            "environmentId": String(description="The environment of the strategy.", example="development"),
            "segmentIds": Array(
                Integer(minimum=0, maximum=MAX_ID),
                description="All segments of the strategy after the change.",
                example=[1, 5],
            ),
        },
        required=("projectId", "strategyId", "environmentId", "segmentIds"),
        description="The segments of a strategy.",
    ),
)
USE = {name: String() for name in ("id", "projectId", "featureName", "strategyName", "environment")}
STRATEGIES = Named(
    "segmentStrategiesSchema",
    Object(
        {
            "strategies": Array(Object(USE, required=tuple(USE))),
            "changeRequestStrategies": Array(Object(USE), description="Always empty: there are no change requests."),
        },
        required=("strategies", "changeRequestStrategies"),
        description="The strategies that use a segment.",
    ),
)


def read_id(call: ApiCall, name: str = "id") -> int:
    """Return the id of the segment in the path. Raises ShapeError (400), and CallerError (404) for a too large number."""
    number = read_number(call, name)
    if number == MAX_ID:
        raise segments.unknown_segment(call.params[name])
    return number


def remove(call: ApiCall) -> Answer:
    """Delete a segment that no strategy uses."""
    number = read_id(call)
    with call.store.writing(call.actor) as tx:
        removed = segments.remove(tx, number)
    return Answer(status=204 if removed else 409)


def set_for_strategy(call: ApiCall) -> Answer:
    body = call.body
    place = {"project": body["projectId"], "environment": body["environmentId"]}
    if not call.actor.may("UPDATE_FEATURE_STRATEGY", **place):
        return Answer(status=403)
    with call.store.writing(call.actor) as tx:
        segments.set_segments(tx, body["strategyId"], body["segmentIds"], **place)
    return Answer(body, 201, location_header(f"strategies/{body['strategyId']}"))


def list_strategies(tx: Tx, call: ApiCall) -> Json:
    number = segments.find(tx, read_id(call))["id"]
    return {"strategies": segments.strategies_using(tx, number), "changeRequestStrategies": []}


PATH = "/api/admin/segments"
route = partial(Route, tag="Segments")

ROUTES = (
    route(
        path=PATH,
        handler=reading(lambda tx, call: {"segments": segments.list_segments(tx)}),
        operation="getSegments",
        summary="List segments",
        result=SEGMENTS,
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(by_path(segments.create), location="segments/{id}"),
        operation="createSegment",
        summary="Create a segment",
        permission=("CREATE_SEGMENT", "UPDATE_PROJECT_SEGMENT"),
        project_of=body_project,
        body=UPSERT,
        status=201,
        result=SEGMENT,
    ),
    route(
        path=f"{PATH}/validate",
        method="POST",
        handler=reading(lambda tx, call: segments.check_name(tx, call.body["name"])),
        reads=True,
        operation="validateSegment",
        summary="Check that a name is free",
        body=NAME_BODY,
        status=204,
    ),
    route(
        path=f"{PATH}/strategies/:strategyId",
        handler=reading(lambda tx, call: {"segments": segments.segments_of(tx, call.params["strategyId"])}),
        operation="getSegmentsByStrategyId",
        summary="List the segments of a strategy",
        description="An empty list for a strategy that does not exist.",
        result=SEGMENTS,
    ),
    route(
        path=f"{PATH}/strategies",
        method="POST",
        handler=set_for_strategy,
        operation="updateFeatureStrategySegments",
        summary="Set the segments of a strategy",
        description="Needs `UPDATE_FEATURE_STRATEGY` in the project and the environment of the body.",
        body=OF_STRATEGY,
        status=201,
        result=OF_STRATEGY,
    ),
    route(
        path=f"{PATH}/:id",
        handler=reading(lambda tx, call: segments.find(tx, read_id(call))),
        operation="getSegment",
        summary="Show a segment",
        result=SEGMENT,
    ),
    route(
        path=f"{PATH}/:id",
        method="PUT",
        handler=writing(lambda tx, call: segments.change(tx, read_id(call), call.body)),
        operation="updateSegment",
        summary="Change a segment",
        description="Without a project it belongs to all projects; without a description it keeps its own.",
        permission=("UPDATE_SEGMENT", "UPDATE_PROJECT_SEGMENT"),
        project_of=written_segment_project,
        body=UPSERT,
        status=204,
    ),
    route(
        path=f"{PATH}/:id",
        method="DELETE",
        handler=remove,
        operation="removeSegment",
        summary="Delete a segment",
        description="409 while a strategy of an active feature uses it.",
        permission=("DELETE_SEGMENT", "UPDATE_PROJECT_SEGMENT"),
        project_of=segment_project,
        status=204,
    ),
    route(
        path=f"{PATH}/:id/strategies",
        handler=reading(list_strategies),
        operation="getStrategiesBySegmentId",
        summary="List the strategies that use a segment",
        result=STRATEGIES,
    ),
)
