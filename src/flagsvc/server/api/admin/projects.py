"""`/api/admin/projects`: lists, shows, creates, changes and deletes projects.

The open-source edition of the real server only lists and shows. Our other routes have the paths and bodies of the other editions
(decision 0024).
"""

from __future__ import annotations

from functools import partial

from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Anything, Array, Boolean, Enum, Integer, Named, Nullable, Object, String
from flagsvc.server.api.admin.features import PROJECT, TRUE
from flagsvc.server.api.route import Route, by_path, reading, versioned, versioned_shape, writing
from flagsvc.server.shapes.feature_bodies import PROJECT_FEATURE
from flagsvc.server.shapes.features import WHEN
from flagsvc.server.store.resources import project_changes, projects

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
PROJECTS = versioned_shape("projectsSchema", "projects", Array(LISTED), Integer(example=1))
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


route = partial(Route, tag="Projects")


MODE = Enum("open", "protected", "private", description="For people; the server treats all alike.")
CHANGES = {
    "name": String(description="The name of the project for people.", example="Shop"),
    "description": Nullable(String(), description="What the project is for."),
    "mode": MODE,
    "defaultStickiness": String(description="What new rollouts stick to.", example="default"),
    "featureLimit": Nullable(Integer(minimum=0, maximum=2**31 - 1), description="The most active features."),
}
CREATE = Named(
    "createProjectSchema",
    Object(
        {
            **CHANGES,
            "id": Nullable(String(), description="Part of paths; derived from the name if absent.", example="shop"),
            "environments": Array(String(), description="Those of the project; by default all that are on."),
        },
        required=("name",),
        description="A project to create.",
    ),
)
UPDATE = Named("updateProjectSchema", Object(CHANGES, description="A project with new content."))
NAMING = Named(
    "createFeatureNamingPatternSchema",
    Object(
        {
            "pattern": Nullable(String(), description="A regular expression of JavaScript, between `^` and `$`."),
            "example": Nullable(String(), description="A name that matches."),
            "description": Nullable(String(), description="The pattern in words."),
        },
        description="The pattern for names of new features; absent or empty for none.",
    ),
)
SETTINGS = Named(
    "updateProjectEnterpriseSettingsSchema",
    Object({"mode": MODE, "featureNaming": NAMING}, description="The mode and the naming pattern of a project."),
)
ID = Named(
    "validateProjectSchema",
    Object({"id": String(description="The id to check.", example="shop")}, required=("id",), description="An id."),
)
RESULT = Named(
    "projectCreatedSchema",
    Object(
        {
            **CHANGES,
            "id": String(),
            "featureNaming": NAMING,
            "environments": Array(String()),
        },
        required=("id", "name"),
        description="The created project.",
    ),
)


PATH = "/api/admin/projects"

ROUTES = (
    route(
        path="/api/admin/projects",
        handler=reading(
            versioned("projects", lambda tx, call: projects.list_all(tx, archived=call.first_value("archived") == TRUE))
        ),
        operation="getProjects",
        summary="List projects",
        query=(Parameter("archived", "`true`: the archived ones."),),
        result=PROJECTS,
    ),
    route(
        path=f"{PROJECT}/overview",
        handler=reading(by_path(projects.get_overview)),
        operation="getProjectOverview",
        summary="Show a project",
        result=OVERVIEW,
    ),
    route(
        path=f"{PROJECT}/health-report",
        handler=reading(by_path(projects.get_health_report)),
        operation="getProjectHealthReport",
        summary="Show a project with its features",
        result=REPORT,
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(by_path(project_changes.create), location="projects/{id}"),
        operation="createProject",
        summary="Create a project",
        description="A user who creates a project owns it.",
        permission="CREATE_PROJECT",
        body=CREATE,
        status=201,
        result=RESULT,
    ),
    route(
        path=f"{PATH}/validate",
        method="POST",
        handler=reading(lambda tx, call: project_changes.check_new_id(tx, call.body["id"])),
        reads=True,
        operation="validateProject",
        summary="Check that an id is valid and free",
        permission="CREATE_PROJECT",
        body=ID,
    ),
    route(
        path=PROJECT,
        method="PUT",
        handler=writing(by_path(project_changes.change)),
        operation="updateProject",
        summary="Change a project",
        description="Absent members stay unchanged.",
        permission="UPDATE_PROJECT",
        body=UPDATE,
    ),
    route(
        path=f"{PROJECT}/settings",
        method="PUT",
        handler=writing(by_path(project_changes.change_settings)),
        operation="updateProjectEnterpriseSettings",
        summary="Change the mode and the naming pattern of a project",
        description="Absent members stay unchanged. Existing features keep their names.",
        permission="UPDATE_PROJECT",
        body=SETTINGS,
    ),
    route(
        path=PROJECT,
        method="DELETE",
        handler=writing(by_path(project_changes.remove)),
        operation="deleteProject",
        summary="Delete a project",
        description="403 while it has active features. Its archived features, segments, context fields and tokens go with it.",
        permission="DELETE_PROJECT",
    ),
)
