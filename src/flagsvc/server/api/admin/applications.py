"""Registered applications: /api/admin/metrics/applications and the instances of one."""

from __future__ import annotations

from flagsvc.engine.values import jsnumber
from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Array, Integer, Named, Nullable, Object, String
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.store.nouns.applications import create, instances_of, listed, remove, show
from flagsvc.server.store.texts import words

MOST = 1000
"""Applications in an answer."""
FURTHEST = 2**31
CHANGE = "UPDATE_APPLICATION"
TEXT = Nullable(String())
FIELDS = ("strategies", "description", "url", "color", "icon")
SHOWN_INSTANCE = ("instanceId", "clientIp", "sdkVersion", "lastSeen")

LOOK = {"description": TEXT, "url": TEXT, "color": TEXT, "icon": TEXT}
INSTANCE = {"instanceId": String(), "clientIp": TEXT, "sdkVersion": TEXT, "lastSeen": String(format="date-time")}
NEW = Named(
    "createApplicationSchema",
    Object(
        {
            "strategies": Array(String(), description="Names of the strategies that the application knows."),
            "description": String(),
            "url": String(),
            "color": String(),
            "icon": String(),
        }
    ),
)
LISTED = Object(
    {
        "appName": String(),
        "createdAt": String(format="date-time"),
        "updatedAt": String(format="date-time"),
        "strategies": Array(String()),
        "createdBy": TEXT,
        **LOOK,
        "usage": Array(Object({"project": String(), "environments": Array(String())})),
    },
    required=("appName",),
)
ALL = Named("applicationsSchema", Object({"applications": Array(LISTED), "total": Integer()}))
ONE = Named(
    "applicationSchema",
    Object(
        {
            "appName": String(),
            "createdAt": String(format="date-time"),
            **LOOK,
            "strategies": Array(Object({"name": String()})),
            "instances": Array(Object(INSTANCE)),
            "seenToggles": Array(Object({"name": String()})),
            "links": Object({"self": String()}),
        },
        required=("appName",),
    ),
)
INSTANCES = Named(
    "applicationEnvironmentInstancesSchema",
    Object({"instances": Array(Object(INSTANCE))}, required=("instances",)),
)


def list_applications(call: ApiCall) -> ApiAnswer:
    """Return the applications by name, a page of them."""
    limit, offset = number(call, "limit"), number(call, "offset")
    with call.store.reading() as tx:
        found = listed(
            tx,
            words=words(call.first("query") or ""),
            limit=limit if 0 < limit <= MOST else MOST,
            offset=min(max(offset, 0), FURTHEST),
            descending=call.first("sortOrder") == "desc",
        )
    return ApiAnswer(found)


def number(call: ApiCall, name: str) -> int:
    """Return a whole number of the query string; 0 where there is none."""
    value = jsnumber.parse(call.first(name) or "")
    return int(min(max(value, 0), FURTHEST)) if value == value else 0


def show_application(call: ApiCall) -> ApiAnswer:
    """Return one application. Raises `Refusal` (404)."""
    with call.store.reading() as tx:
        return ApiAnswer(show(tx, call.params["appName"]))


def create_application(call: ApiCall) -> ApiAnswer:
    """Make an application, or change how it is shown."""
    values = {name: call.body[name] for name in FIELDS if name in call.body}
    with call.store.noting() as tx:
        create(tx, call.params["appName"], values)
    return ApiAnswer(None, 202)


def delete_application(call: ApiCall) -> ApiAnswer:
    """Forget an application; one that is not there is forgotten already."""
    with call.store.noting() as tx:
        remove(tx, call.params["appName"])
    return ApiAnswer(None)


def list_instances(call: ApiCall) -> ApiAnswer:
    """Return the instances of an application in an environment that were heard of within a day."""
    with call.store.reading() as tx:
        found = instances_of(tx, call.params["appName"], call.params["environment"])
    return ApiAnswer({"instances": [{name: each[name] for name in SHOWN_INSTANCE} for each in found]})


ROUTES = (
    Route(
        path="/api/admin/metrics/applications",
        handler=list_applications,
        operation="getApplications",
        summary="The applications that use flags.",
        tag="Metrics",
        query=(
            Parameter("query", "Words, separated by commas: applications with any of them in the name."),
            Parameter("limit", "How many at most, up to 1000.", "integer"),
            Parameter("offset", "How many to leave out at the beginning.", "integer"),
            Parameter("sortOrder", "`asc` or `desc`, by name."),
        ),
        result=ALL,
    ),
    Route(
        path="/api/admin/metrics/applications/:appName",
        handler=show_application,
        operation="getApplication",
        summary="One application, its instances and the flags it evaluated.",
        tag="Metrics",
        result=ONE,
    ),
    Route(
        path="/api/admin/metrics/applications/:appName",
        method="POST",
        handler=create_application,
        operation="createApplication",
        summary="Make an application, or change how it is shown.",
        tag="Metrics",
        permission=CHANGE,
        body=NEW,
        status=202,
    ),
    Route(
        path="/api/admin/metrics/applications/:appName",
        method="DELETE",
        handler=delete_application,
        operation="deleteApplication",
        summary="Forget an application and its instances.",
        tag="Metrics",
        permission=CHANGE,
    ),
    Route(
        path="/api/admin/metrics/instances/:appName/environment/:environment",
        handler=list_instances,
        operation="getApplicationEnvironmentInstances",
        summary="The instances of an application in an environment, of the last day.",
        tag="Metrics",
        result=INSTANCES,
    ),
)
