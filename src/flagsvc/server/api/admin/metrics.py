"""Usage metrics of a feature: GET /api/admin/client-metrics/features/:name, /raw."""

from __future__ import annotations

from flagsvc.engine.values import jsnumber
from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Array, Integer, Map, Named, Object, String
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.store.resources.usage import KEEP_HOURS, SHOW_HOURS, list_hourly, summarize

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


def get_summary(call: ApiCall) -> ApiAnswer:
    """Return a feature's counts in the last hour; none for an unknown feature."""
    with call.store.reading() as tx:
        return ApiAnswer(ABOUT | summarize(tx, call.params["name"]))


def get_hours(call: ApiCall) -> ApiAnswer:
    """Return a feature's counts by hour, for the requested hours."""
    with call.store.reading() as tx:
        return ApiAnswer(ABOUT | {"data": list_hourly(tx, call.params["name"], hours_of(call))})


def hours_of(call: ApiCall) -> float:
    """Return the requested number of hours, from 1 to 48; 24 for an invalid, missing or repeated value."""
    values = call.query.get("hoursBack", [])
    hours = jsnumber.parse(values[0]) if len(values) == 1 else 0
    return hours if 1 <= hours <= KEEP_HOURS else SHOW_HOURS


ROUTES = (
    Route(
        path="/api/admin/client-metrics/features/:name",
        handler=get_summary,
        operation="getFeatureUsageSummary",
        summary="A flag's usage in the last hour, and the applications that evaluated it.",
        tag="Metrics",
        result=SUMMARY,
    ),
    Route(
        path="/api/admin/client-metrics/features/:name/raw",
        handler=get_hours,
        operation="getRawFeatureMetrics",
        summary="A flag's usage by hour, application and environment.",
        tag="Metrics",
        query=(Parameter("hoursBack", "How many hours, 1 to 48; 24 by default.", "number"),),
        result=HOURS,
    ),
)
