"""Projects: the list, and one project with its settings, its naming pattern, its environments, its members, and deleting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from flagsvc.http.shapes import ShapeError
from flagsvc.server.api.admin.environments import ADD as ADD_ENVIRONMENT
from flagsvc.server.api.admin.project_access import ADD as ADD_ACCESS
from flagsvc.server.api.admin.project_access import SET as SET_ROLES
from flagsvc.server.api.admin.projects import CREATE, MODE, SETTINGS, UPDATE
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import row_id
from flagsvc.server.pages.edits import (
    Look,
    attempt,
    changed_meanwhile,
    checked,
    differences,
    digest_of,
    reasons_of,
    require_unchanged,
)
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.pages.variants_form import sticky_names
from flagsvc.server.store.actors import DEFAULT_PROJECT
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources import (
    context_fields,
    environments,
    project_access,
    project_changes,
    projects,
    users,
)
from flagsvc.server.store.store import Tx

MAKE, WRITE, DELETE = "CREATE_PROJECT", "UPDATE_PROJECT", "DELETE_PROJECT"
PARTS = {
    "name": "Name",
    "description": "Description",
    "mode": "Mode",
    "defaultStickiness": "New rollouts stick to",
    "featureLimit": "Limit of active flags",
}
"""Setting of a project → what people call it."""
NAMING = {"pattern": "Pattern", "example": "Example", "description": "Description"}
"""Part of a naming pattern → what people call it."""
MAY_BE_EMPTY = ("description", "featureLimit")
CHANGED = "Nothing was done: someone changed this project meanwhile. This is what it is now."


def list_all(call: ApiCall) -> ApiAnswer:
    """Return every project with its numbers of flags and members."""
    with call.store.reading() as tx:
        found = projects.list_all(tx)
    return ApiAnswer({"projects": found, "may_create": call.actor.may(MAKE), "permission": MAKE})


def show_new(call: ApiCall) -> ApiAnswer:
    """Return the form of a new project. It has every environment that is on."""
    with call.store.reading() as tx:
        names = [each["name"] for each in environments.list_plain(tx) if each["enabled"]]
    return show_form(call, {"id": "", "name": "", "description": "", "environments": names}, Look())


def show_form(call: ApiCall, typed: Json, look: Look) -> ApiAnswer:
    """Return the page with the form of a new project."""
    with call.store.reading() as tx:
        names = [each["name"] for each in environments.list_plain(tx)]
    data = {"form": typed, "environments": names, "may": call.actor.may(MAKE), "permission": MAKE}
    return ApiAnswer(data | {"problems": look.problems}, look.status)


def create(call: ApiCall) -> ApiAnswer:
    """Create a project."""
    typed: Json = {name: call.form.text(name) for name in ("id", "name", "description")}
    typed |= {"environments": call.form.texts("environments")}
    try:
        with call.store.writing(call.actor, "page") as tx:
            made = project_changes.create(tx, checked(CREATE, typed | {"description": typed["description"] or None}))
    except (CallerError, ShapeError) as error:
        return show_form(call, typed, Look(*reasons_of(error)))
    return see_other(call, "projects", made["id"], done=tx)


def show(call: ApiCall) -> ApiAnswer:
    """Return a project."""
    return show_page(call, Look())


def show_page(call: ApiCall, look: Look, typed: Json | None = None, naming: Json | None = None) -> ApiAnswer:
    """Return the page of a project. Raises CallerError (404).

    Its forms have what is stored; the refused one has what was typed: `typed` as settings, or `naming` as the naming pattern.
    """
    project = call.params["projectId"]
    may = call.actor.may(WRITE, project=project)
    with call.store.reading() as tx:
        stored = project_changes.describe(tx, project)
        places = list_environments(tx, project)
        shown, pattern = texts_of(stored, PARTS), texts_of(stored["featureNaming"], NAMING)
        form = typed or shown
        data = {
            "project": project,
            "title": stored["name"],
            "flags": projects.count_flags(tx, project),
            "member_count": projects.get_overview(tx, project)["members"],
            "sticky": sticky_names(context_fields.list_choices(tx), form["defaultStickiness"]),
            "environments": [each for each in places if each["visible"]],
            "other_environments": [each["name"] for each in places if not each["visible"]],
            "members": list_members(tx, project) if may else [],
            "others": list_others(tx, project) if may else [],
            "last_change": last_change(call, tx, look, *changed_thing(call, look), project=project),
        }
    data |= {
        "form": form,
        "modes": MODE.values,
        "base": digest_of(shown),
        "naming": naming or pattern,
        "naming_base": digest_of(pattern),
        "whole_base": digest_of(stored),
        "changed": look.conflict and naming is None,
        "naming_changed": look.conflict and naming is not None,
        "conflict_rows": differences(PARTS, shown, form) + differences(NAMING, pattern, naming or pattern),
        "roles": project_access.ROLES,
        "may": may,
        "permission": WRITE,
        "may_delete": call.actor.may(DELETE, project=project),
        "delete_permission": DELETE,
        "is_default": project == DEFAULT_PROJECT,
        "problems": look.problems,
    }
    return ApiAnswer(data, look.status)


def changed_thing(call: ApiCall, look: Look) -> tuple[str] | tuple[str, int]:
    """Return what the form of a page with a conflict changes: the roles of a user, the settings, or the whole project."""
    if "userId" in call.params:
        return "roles", row_id(call, "userId")
    return ("project",) if look.conflict else ("whole project",)


def texts_of(stored: Json, parts: Iterable[str]) -> Json:
    """Return what a form shows of stored values: texts, empty for none."""
    return {name: "" if stored[name] is None else str(stored[name]) for name in parts}


def list_environments(tx: Tx, project: str) -> list[Json]:
    """Return every environment with its numbers for a project, each with its digest."""
    return [each | {"base": digest_of(each)} for each in environments.list_for_project(tx, project)]


def list_members(tx: Tx, project: str) -> list[Json]:
    """Return the users with a role in a project, each with a name to show and the digest of the roles."""
    found = project_access.list_access(tx, project)["users"]
    return [
        {"id": each["id"], "name": name_of(each), "roles": each["roles"], "base": digest_of(each["roles"])}
        for each in found
    ]


def list_others(tx: Tx, project: str) -> list[Json]:
    """Return the users without a role in a project, as choices."""
    held = {each["id"] for each in project_access.list_access(tx, project)["users"]}
    return [{"value": each["id"], "text": name_of(each)} for each in users.list_names(tx) if each["id"] not in held]


def name_of(user: Json) -> str:
    """Return the name of a user for people."""
    return str(user.get("name") or user.get("username") or user.get("email") or user["id"])


def do(call: ApiCall, work: Callable[[Tx], object], typed: Json | None = None, naming: Json | None = None) -> ApiAnswer:
    """Do something to a project in one transaction, and return to its page: with a notice, or with what is wrong."""
    # what a project has in an environment is changed by much else, too, so no one is named there
    by_whom = "environment" not in call.params
    changed = changed_meanwhile(CHANGED, by_whom=by_whom) if typed is None and naming is None else None
    again = partial(show_page, call, typed=typed, naming=naming)
    return attempt(call, work, again, "projects", call.params["projectId"], changed=changed)


def update(call: ApiCall) -> ApiAnswer:
    """Change the settings of a project, unless someone else changed them since they were shown."""
    project, typed = call.params["projectId"], {name: call.form.text(name) for name in PARTS}

    def work(tx: Tx) -> None:
        require_unchanged(texts_of(project_changes.describe(tx, project), PARTS), call.form.text("base"))
        body = typed | {name: typed[name] or None for name in MAY_BE_EMPTY}
        project_changes.change(tx, project, checked(UPDATE, body))

    return do(call, work, typed)


def update_naming(call: ApiCall) -> ApiAnswer:
    """Change the naming pattern of a project, unless someone else changed it since it was shown."""
    project, typed = call.params["projectId"], {name: call.form.text(name) for name in NAMING}

    def work(tx: Tx) -> None:
        stored = project_changes.describe(tx, project)["featureNaming"]
        require_unchanged(texts_of(stored, NAMING), call.form.text("base"))
        project_changes.change_settings(tx, project, checked(SETTINGS, {"featureNaming": typed}))

    return do(call, work, naming=typed)


def add_environment(call: ApiCall) -> ApiAnswer:
    """Add an environment to a project."""

    def work(tx: Tx) -> None:
        body = checked(ADD_ENVIRONMENT, {"environment": call.form.text("environment")})
        environments.add_to_project(tx, call.params["projectId"], body["environment"])

    return do(call, work)


def remove_environment(call: ApiCall) -> ApiAnswer:
    """Remove an environment from a project, unless what it has there changed since it was shown."""
    project, name = call.params["projectId"], call.params["environment"]

    def work(tx: Tx) -> None:
        found = next((each for each in environments.list_for_project(tx, project) if each["name"] == name), None)
        require_unchanged(found, call.form.text("base"))
        environments.remove_from_project(tx, project, name)

    return do(call, work)


def give(call: ApiCall) -> ApiAnswer:
    """Give a role to a user."""

    def work(tx: Tx) -> None:
        body = checked(ADD_ACCESS, {"roles": call.form.texts("role"), "users": call.form.texts("user")})
        project_access.add(tx, call.params["projectId"], body["roles"], body["users"])

    return do(call, work)


def replace(call: ApiCall) -> ApiAnswer:
    """Set the roles of a user, unless someone else changed them since they were shown."""

    def work(tx: Tx) -> None:
        body = checked(SET_ROLES, {"roles": call.form.texts("roles")})
        project_access.replace(tx, call.params["projectId"], unchanged_user(call, tx), body["roles"])

    return do(call, work)


def take(call: ApiCall) -> ApiAnswer:
    """Take all roles of a user away, unless someone else changed them since they were shown."""
    return do(call, lambda tx: project_access.remove(tx, call.params["projectId"], unchanged_user(call, tx)))


def unchanged_user(call: ApiCall, tx: Tx) -> int:
    """Return the user in the path. Raises ChangedMeanwhileError if the roles are not those that were shown."""
    user = row_id(call, "userId")
    require_unchanged(held_roles(tx, call.params["projectId"], user), call.form.text("base"))
    return user


def held_roles(tx: Tx, project: str, user: int) -> Sequence[int]:
    """Return the roles of a user. Raises CallerError (404) for an unknown user."""
    users.get(tx, user)
    return project_access.roles_of(tx, project, user)


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a project without active flags, unless someone else changed it since it was shown."""
    project = call.params["projectId"]

    def work(tx: Tx) -> None:
        require_unchanged(project_changes.describe(tx, project), call.form.text("base"))
        project_changes.remove(tx, project)

    return attempt(call, work, partial(show_page, call), "projects", changed=changed_meanwhile(CHANGED))


NEW, ONE = "project_new.html", "project.html"
OWN = "/projects/:projectId"
USER = f"{OWN}/users/:userId"
FORMS = (
    (OWN, update, "Change the settings of a project.", "updateProject"),
    (
        f"{OWN}/naming",
        update_naming,
        "Change the naming pattern of a project.",
        "updateProjectEnterpriseSettings",
    ),
    (f"{OWN}/environments", add_environment, "Add an environment to a project.", "addEnvironmentToProject"),
    (
        f"{OWN}/environments/:environment/remove",
        remove_environment,
        "Remove an environment from a project.",
        "removeEnvironmentFromProject",
    ),
    (f"{OWN}/access", give, "Give a role in a project to a user.", "addAccessToProject"),
    (f"{USER}/roles", replace, "Set the roles of a user in a project.", "setRolesForUser"),
    (f"{USER}/remove", take, "Take all roles of a user in a project away.", "removeUserAccess"),
)
"""Path, handler, summary, and the operation of the admin API, of the forms that need WRITE."""

ROUTES = (
    page("/projects", list_all, "projects.html", "The list of projects."),
    page("/new-project", show_new, NEW, "The form of a new project."),
    page(OWN, show, ONE, "A project."),
    change("/new-project", create, "Create a project.", template=NEW, permission=MAKE, stands_for="createProject"),
    *(
        change(path, handler, summary, template=ONE, permission=WRITE, stands_for=operation)
        for path, handler, summary, operation in FORMS
    ),
    change(f"{OWN}/delete", remove, "Delete a project.", template=ONE, permission=DELETE, stands_for="deleteProject"),
)
