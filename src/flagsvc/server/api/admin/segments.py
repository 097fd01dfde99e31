"""`/api/admin/segments`: constraints with a name, and which strategies have them, as on the real server."""

from __future__ import annotations

from flagsvc.http.shapes import Array, Integer, Named, Nullable, Object, String
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.places import LARGEST, of_body, of_segment, of_written_segment, read_number
from flagsvc.server.api.route import Route
from flagsvc.server.api.texts import NAME_BODY, location
from flagsvc.server.shapes.strategies import CONSTRAINT
from flagsvc.server.store.nouns import segments

COUNT = Nullable(Integer(minimum=0))
CONSTRAINTS = Array(CONSTRAINT, description="What must hold of the context, all of it.")

UPSERT = Named(
    "upsertSegmentSchema",
    Object(
        {
            "name": String(description="What the segment is called.", example="beta-users"),
            "description": Nullable(String(), description="What it is for.", example="Customers who try what is new"),
            "project": Nullable(String(), description="The only project that may use it; without one all may."),
            "constraints": CONSTRAINTS,
        },
        required=("name", "constraints"),
        description="A segment as it is made or written anew.",
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
                Integer(minimum=0, maximum=LARGEST), description="Every segment it has afterwards.", example=[1, 5]
            ),
        },
        required=("projectId", "strategyId", "environmentId", "segmentIds"),
        description="Which segments a strategy has.",
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
        description="The strategies that have a segment.",
    ),
)


def _number(call: ApiCall) -> int:
    """Return the number of the segment that the path names. Raises ShapeError (400), and Refusal (404) for one beyond all ids."""
    number = read_number(call, "id")
    if number == LARGEST:
        raise segments.unknown(call.params["id"])
    return number


def list_all(call: ApiCall) -> ApiAnswer:
    """Answer every segment."""
    with call.store.reading() as tx:
        return ApiAnswer({"segments": segments.list_segments(tx)})


def show(call: ApiCall) -> ApiAnswer:
    """Answer one segment."""
    number = _number(call)
    with call.store.reading() as tx:
        return ApiAnswer(segments.find(tx, number))


def create(call: ApiCall) -> ApiAnswer:
    """Make a segment."""
    with call.store.writing(call.actor) as tx:
        made = segments.create(tx, call.body)
    return ApiAnswer(made, 201, location(f"segments/{made['id']}"))


def update(call: ApiCall) -> ApiAnswer:
    """Write a segment anew."""
    number = _number(call)
    with call.store.writing(call.actor) as tx:
        segments.change(tx, number, call.body)
    return ApiAnswer()


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a segment that no strategy has."""
    number = _number(call)
    with call.store.writing(call.actor) as tx:
        gone = segments.remove(tx, number)
    return ApiAnswer(status=204 if gone else 409)


def validate(call: ApiCall) -> ApiAnswer:
    """Say whether a name is free."""
    with call.store.reading() as tx:
        segments.check_name(tx, call.body["name"])
    return ApiAnswer()


def of_strategy(call: ApiCall) -> ApiAnswer:
    """Answer the segments of a strategy."""
    with call.store.reading() as tx:
        return ApiAnswer({"segments": segments.segments_of(tx, call.params["strategyId"])})


def set_of_strategy(call: ApiCall) -> ApiAnswer:
    """Set the segments of a strategy."""
    body = call.body
    place = {"project": body["projectId"], "environment": body["environmentId"]}
    if not call.actor.may("UPDATE_FEATURE_STRATEGY", **place):
        return ApiAnswer(status=403)
    with call.store.writing(call.actor) as tx:
        segments.set_segments_of(tx, body["strategyId"], body["segmentIds"], **place)
    return ApiAnswer(body, 201, location(f"strategies/{body['strategyId']}"))


def strategies_of(call: ApiCall) -> ApiAnswer:
    """Answer the strategies that have a segment."""
    number = _number(call)
    with call.store.reading() as tx:
        segments.find(tx, number)
        return ApiAnswer({"strategies": segments.strategies_of(tx, number), "changeRequestStrategies": []})


PATH = "/api/admin/segments"
TAG = "Segments"

ROUTES = (
    Route(
        path=PATH,
        handler=list_all,
        operation="getSegments",
        summary="List segments",
        tag=TAG,
        result=SEGMENTS,
    ),
    Route(
        path=PATH,
        method="POST",
        handler=create,
        operation="createSegment",
        summary="Make a segment",
        tag=TAG,
        permission=("CREATE_SEGMENT", "UPDATE_PROJECT_SEGMENT"),
        project_of=of_body,
        body=UPSERT,
        status=201,
        result=SEGMENT,
    ),
    Route(
        path=f"{PATH}/validate",
        method="POST",
        handler=validate,
        reads=True,
        operation="validateSegment",
        summary="Ask whether a name is free",
        tag=TAG,
        body=NAME_BODY,
        status=204,
    ),
    Route(
        path=f"{PATH}/strategies/:strategyId",
        handler=of_strategy,
        operation="getSegmentsByStrategyId",
        summary="List the segments of a strategy",
        description="None for a strategy that does not exist.",
        tag=TAG,
        result=SEGMENTS,
    ),
    Route(
        path=f"{PATH}/strategies",
        method="POST",
        handler=set_of_strategy,
        operation="updateFeatureStrategySegments",
        summary="Set the segments of a strategy",
        description="Needs `UPDATE_FEATURE_STRATEGY` for the project and the environment that the body names.",
        tag=TAG,
        body=OF_STRATEGY,
        status=201,
        result=OF_STRATEGY,
    ),
    Route(
        path=f"{PATH}/:id",
        handler=show,
        operation="getSegment",
        summary="Show a segment",
        tag=TAG,
        result=SEGMENT,
    ),
    Route(
        path=f"{PATH}/:id",
        method="PUT",
        handler=update,
        operation="updateSegment",
        summary="Write a segment anew",
        description="Without a project it belongs to all; without a description it keeps the one it has.",
        tag=TAG,
        permission=("UPDATE_SEGMENT", "UPDATE_PROJECT_SEGMENT"),
        project_of=of_written_segment,
        body=UPSERT,
        status=204,
    ),
    Route(
        path=f"{PATH}/:id",
        method="DELETE",
        handler=remove,
        operation="removeSegment",
        summary="Delete a segment",
        description="409 while a strategy of a feature in use has it.",
        tag=TAG,
        permission=("DELETE_SEGMENT", "UPDATE_PROJECT_SEGMENT"),
        project_of=of_segment,
        status=204,
    ),
    Route(
        path=f"{PATH}/:id/strategies",
        handler=strategies_of,
        operation="getStrategiesBySegmentId",
        summary="List the strategies that have a segment",
        tag=TAG,
        result=STRATEGIES,
    ),
)
