"""Registered applications with their instances (/api/admin/metrics/applications), and usage metrics (/api/admin/client-metrics)."""

from __future__ import annotations

from functools import partial

from flagsvc.engine.values import jsnumber
from flagsvc.http.answers import Answer
from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Array, Integer, Map, Named, Nullable, Object, String
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route, by_path, reading
from flagsvc.server.store.resources.applications import create, get, instances_of, list_applications, remove
from flagsvc.server.store.resources.usage import KEEP_HOURS, SHOW_HOURS, list_hourly, summarize
from flagsvc.server.store.texts import split_words

MAX_APPLICATIONS = 1000
"""The most applications in an answer."""
MAX_OFFSET = 2**31
CHANGE = "UPDATE_APPLICATION"
TEXT = Nullable(String())
FIELDS = ("strategies", "description", "url", "color", "icon")
INSTANCE_FIELDS = ("instanceId", "clientIp", "sdkVersion", "lastSeen")

APPEARANCE = {"description": TEXT, "url": TEXT, "color": TEXT, "icon": TEXT}
INSTANCE = {"instanceId": String(), "clientIp": TEXT, "sdkVersion": TEXT, "lastSeen": String(format="date-time")}
NEW = Named(
    "createApplicationSchema",
    Object(
        {
            "strategies": Array(String(), description="Names of the strategies that the application supports."),
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
        **APPEARANCE,
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
            **APPEARANCE,
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


def get_applications(call: ApiCall) -> Answer:
    """Return a page of the applications, sorted by name."""
    limit, offset = read_integer(call, "limit"), read_integer(call, "offset")
    with call.store.reading() as tx:
        found = list_applications(
            tx,
            words=split_words(call.first_value("query") or ""),
            limit=limit if 0 < limit <= MAX_APPLICATIONS else MAX_APPLICATIONS,
            offset=min(max(offset, 0), MAX_OFFSET),
            descending=call.first_value("sortOrder") == "desc",
        )
    return Answer(found)


def read_integer(call: ApiCall, name: str) -> int:
    """Return an integer parameter of the query string; 0 without one."""
    value = jsnumber.parse(call.first_value(name) or "")
    return int(min(max(value, 0), MAX_OFFSET)) if value == value else 0


def create_application(call: ApiCall) -> Answer:
    """Create an application, or change its description."""
    values = {name: call.body[name] for name in FIELDS if name in call.body}
    with call.store.recording() as tx:
        create(tx, call.params["appName"], values)
    return Answer(None, 202)


def delete_application(call: ApiCall) -> Answer:
    """Delete an application; a missing one is not an error."""
    with call.store.recording() as tx:
        remove(tx, call.params["appName"])
    return Answer(None)


ABOUT = {"version": 1, "maturity": "stable"}
VERSION = {"version": Integer(), "maturity": String()}
USAGE = {"environment": String(), "timestamp": String(format="date-time"), "yes": Integer(), "no": Integer()}

SUMMARY = Named(
    "featureUsageSchema",
    Object(
        {
            **VERSION,
            "featureName": String(),
            "lastHourUsage": Array(Object(USAGE, required=tuple(USAGE))),
            "seenApplications": Array(String(), description="Applications that evaluated the flag within a day."),
        },
        required=("version", "maturity", "featureName", "lastHourUsage", "seenApplications"),
    ),
)
HOURS = Named(
    "featureMetricsSchema",
    Object(
        {
            **VERSION,
            "data": Array(
                Object(
                    {**USAGE, "featureName": String(), "appName": String(), "variants": Map(Integer())},
                    required=("featureName", "appName", *USAGE),
                )
            ),
        },
        required=("version", "maturity", "data"),
    ),
)


def hours_of(call: ApiCall) -> float:
    """Return the requested number of hours, from 1 to 48; 24 for an invalid, missing or repeated value."""
    values = call.query.get("hoursBack", [])
    hours = jsnumber.parse(values[0]) if len(values) == 1 else 0
    return hours if 1 <= hours <= KEEP_HOURS else SHOW_HOURS


route = partial(Route, tag="Metrics")

ROUTES = (
    route(
        path="/api/admin/metrics/applications",
        handler=get_applications,
        operation="getApplications",
        summary="The applications that use flags.",
        query=(
            Parameter("query", "Words, separated by commas: applications with any of them in the name."),
            Parameter("limit", "The most applications in the answer, up to 1000.", "integer"),
            Parameter("offset", "How many applications to skip.", "integer"),
            Parameter("sortOrder", "`asc` or `desc`, by name."),
        ),
        result=ALL,
    ),
    route(
        path="/api/admin/metrics/applications/:appName",
        handler=reading(by_path(get)),
        operation="getApplication",
        summary="One application, its instances and the flags it evaluated.",
        result=ONE,
    ),
    route(
        path="/api/admin/metrics/applications/:appName",
        method="POST",
        handler=create_application,
        operation="createApplication",
        summary="Create an application, or change its description.",
        permission=CHANGE,
        body=NEW,
        status=202,
    ),
    route(
        path="/api/admin/metrics/applications/:appName",
        method="DELETE",
        handler=delete_application,
        operation="deleteApplication",
        summary="Delete an application and its instances.",
        permission=CHANGE,
    ),
    route(
        path="/api/admin/metrics/instances/:appName/environment/:environment",
        handler=reading(
            lambda tx, call: {
                "instances": [
                    {name: each[name] for name in INSTANCE_FIELDS}
                    for each in instances_of(tx, call.params["appName"], call.params["environment"])
                ]
            }
        ),
        operation="getApplicationEnvironmentInstances",
        summary="The instances of an application in an environment that reported within the last day.",
        result=INSTANCES,
    ),
    route(
        path="/api/admin/client-metrics/features/:name",
        handler=reading(lambda tx, call: ABOUT | summarize(tx, call.params["name"])),
        operation="getFeatureUsageSummary",
        summary="A flag's usage in the last hour, and the applications that evaluated it.",
        result=SUMMARY,
    ),
    route(
        path="/api/admin/client-metrics/features/:name/raw",
        handler=reading(lambda tx, call: ABOUT | {"data": list_hourly(tx, call.params["name"], hours_of(call))}),
        operation="getRawFeatureMetrics",
        summary="A flag's usage by hour, application and environment.",
        query=(Parameter("hoursBack", "How many hours, 1 to 48; 24 by default.", "number"),),
        result=HOURS,
    ),
)
