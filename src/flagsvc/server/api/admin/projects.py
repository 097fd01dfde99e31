"""`/api/admin/projects`: lists and shows projects."""

from __future__ import annotations

from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Anything, Array, Boolean, Integer, Named, Nullable, Object, String
from flagsvc.server.api.admin.features import PROJECT, TRUE
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.shapes.feature_bodies import PROJECT_FEATURE
from flagsvc.server.shapes.features import WHEN
from flagsvc.server.store.resources import projects

HEALTH = {
    "health": Integer(minimum=0, maximum=100, description="Share of the features that are not stale, in percent."),
    "technicalDebt": Integer(minimum=0, maximum=100, description="Share of the features that are stale, in percent."),
}
DESCRIBED = {
    "name": String(example="Default"),
    "description": Nullable(String()),
    "mode": String(example="open"),
    "createdAt": WHEN,
    "archivedAt": WHEN,
    **HEALTH,
}
LISTED = Named(
    "projectSchema",
    Object(
        {
            **DESCRIBED,
            "id": String(example="default"),
            "featureCount": Integer(minimum=0, description="Active features."),
            "memberCount": Integer(minimum=0, description="Users with a role in the project."),
            "lastReportedFlagUsage": WHEN,
            "lastUpdatedAt": WHEN,
            "owners": Array(Object({"ownerType": String()})),
        },
        required=("id", "name"),
        description="A project in a list.",
    ),
)
PROJECTS = Named(
    "projectsSchema",
    Object({"version": Integer(example=1), "projects": Array(LISTED)}, required=("version", "projects"), closed=True),
)
DETAILS = DESCRIBED | {
    "version": Integer(example=1),
    "featureLimit": Nullable(Integer(), description="The most active features; null: no limit."),
    "featureNaming": Object(
        {name: Nullable(String()) for name in ("pattern", "example", "description")},
        description="The pattern for names of features.",
    ),
    "defaultStickiness": String(example="default"),
    "favorite": Boolean(),
    "updatedAt": WHEN,
    "environments": Array(Object({"environment": String()}, required=("environment",))),
    "members": Integer(minimum=0),
}
OVERVIEW = Named(
    "projectOverviewSchema",
    Object(
        DETAILS
        | {
            "linkTemplates": Array(Anything()),
            "featureTypeCounts": Array(Object({"type": String(), "count": Integer()}, required=("type", "count"))),
        },
        required=("version", "name"),
        description="A project, its environments, and its numbers of features by type.",
    ),
)
REPORT = Named(
    "healthReportSchema",
    Object(
        DETAILS
        | {"features": Array(PROJECT_FEATURE)}
        | {name: Integer(minimum=0) for name in ("potentiallyStaleCount", "activeCount", "staleCount")},
        required=("version", "name", "features", "activeCount", "staleCount"),
        description="A project, its features, and the number of stale ones.",
    ),
)


def list_all(call: ApiCall) -> ApiAnswer:
    """Answer the active projects, or the archived ones."""
    with call.store.reading() as tx:
        return ApiAnswer(
            {"version": 1, "projects": projects.list_all(tx, archived=call.first_value("archived") == TRUE)}
        )


def overview(call: ApiCall) -> ApiAnswer:
    """Answer a project."""
    with call.store.reading() as tx:
        return ApiAnswer(projects.get_overview(tx, call.params["projectId"]))


def health_report(call: ApiCall) -> ApiAnswer:
    """Answer a project with its features."""
    with call.store.reading() as tx:
        return ApiAnswer(projects.get_health_report(tx, call.params["projectId"]))


TAG = "Projects"

ROUTES = (
    Route(
        path="/api/admin/projects",
        handler=list_all,
        operation="getProjects",
        summary="List projects",
        tag=TAG,
        query=(Parameter("archived", "`true`: the archived ones."),),
        result=PROJECTS,
    ),
    Route(
        path=f"{PROJECT}/overview",
        handler=overview,
        operation="getProjectOverview",
        summary="Show a project",
        tag=TAG,
        result=OVERVIEW,
    ),
    Route(
        path=f"{PROJECT}/health-report",
        handler=health_report,
        operation="getProjectHealthReport",
        summary="Show a project with its features",
        tag=TAG,
        result=REPORT,
    ),
)
