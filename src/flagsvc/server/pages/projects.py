"""Projects: the list, and one project with its settings, its naming pattern, its environments, its members, and deleting."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import ShapeError
from flagsvc.pages.forms import Form
from flagsvc.server.api.admin.environments import ADD as ADD_ENVIRONMENT
from flagsvc.server.api.admin.project_access import ADD as ADD_ACCESS
from flagsvc.server.api.admin.project_access import SET as SET_ROLES
from flagsvc.server.api.admin.projects import CREATE, MODE, SETTINGS
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import row_id
from flagsvc.server.pages.edits import (
    Look,
    attempt,
    changed_meanwhile,
    checked,
    differences,
    digest_of,
    require_unchanged,
)
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.pages.problems import reasons_of, under
from flagsvc.server.pages.resource import NOT_DONE, Resource, Seen
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

MAKE, WRITE = "CREATE_PROJECT", "UPDATE_PROJECT"
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
CHANGED = NOT_DONE.format("project")


def show_new(call: ApiCall) -> Answer:
    """Return the form of a new project. It has every environment that is on."""
    with call.store.reading() as tx:
        names = [each["name"] for each in environments.list_plain(tx) if each["enabled"]]
    return show_form(call, {"id": "", "name": "", "description": "", "environments": names}, Look())


def show_form(call: ApiCall, typed: Json, look: Look) -> Answer:
    with call.store.reading() as tx:
        names = [each["name"] for each in environments.list_plain(tx)]
    data = {"form": typed, "environments": names, "may": call.actor.may(MAKE), "permission": MAKE}
    return Answer(data | {"problems": look.problems}, look.status)


def create(call: ApiCall) -> Answer:
    typed: Json = {name: call.form.text(name) for name in ("id", "name", "description")}
    typed |= {"environments": call.form.texts("environments")}
    try:
        with call.store.writing(call.actor, "page") as tx:
            made = project_changes.create(tx, checked(CREATE, typed | {"description": typed["description"] or None}))
    except (CallerError, ShapeError) as error:
        return show_form(call, typed, Look(*reasons_of(error, call.form)))
    return see_other(call, "projects", made["id"], done=tx)


def more(seen: Seen) -> Json:
    """Return what a project has, and its naming pattern: as it is stored, or as it was typed in the form that was refused."""
    call, tx, project, stored, conflict = seen.call, seen.tx, seen.key, seen.stored or {}, seen.look.conflict
    typed = read(call.form, NAMING) if call.form.has("pattern") else None
    pattern = texts_of(stored["featureNaming"], NAMING)
    places = list_environments(tx, project)
    may = call.actor.may(WRITE, project=project)
    user = row_id(call, "userId") if "userId" in call.params else None
    rows = differences(PARTS, seen.own, seen.form) + differences(NAMING, pattern, typed or pattern)
    return {
        "title": stored["name"],
        "flags": projects.count_flags(tx, project),
        "member_count": projects.get_overview(tx, project)["members"],
        "modes": MODE.values,
        "sticky": sticky_names(context_fields.list_choices(tx), seen.form["defaultStickiness"]),
        "naming": typed or pattern,
        "naming_base": digest_of(pattern),
        "whole_base": digest_of(stored),
        "changed": conflict and typed is None,
        "naming_changed": conflict and typed is not None,
        "conflict_rows": rows,
        "environments": [each for each in places if each["visible"]],
        "other_environments": [each["name"] for each in places if not each["visible"]],
        "members": list_members(tx, project) if may else [],
        "others": list_others(tx, project) if may else [],
        "roles": project_access.ROLES,
        "is_default": project == DEFAULT_PROJECT,
    } | ({} if user is None else {"last_change": last_change(call, tx, seen.look, "roles", user, project=project)})


def read(form: Form, parts: Iterable[str] = PARTS) -> Json:
    return {name: form.text(name) for name in parts}


def texts_of(stored: Json, parts: Iterable[str]) -> Json:
    """Return what a form shows of stored values: texts, empty for none."""
    return {name: "" if stored[name] is None else str(stored[name]) for name in parts}


def list_environments(tx: Tx, project: str) -> list[Json]:
    """Return every environment with its numbers for a project, each with its digest."""
    return [each | {"base": digest_of(each)} for each in environments.list_for_project(tx, project)]


def list_members(tx: Tx, project: str) -> list[Json]:
    """Return the users with a role in a project, each with a name to show and the digest of the roles."""
    found = project_access.list_access(tx, project)["users"]
    return [{"id": each["id"], "name": name_of(each), "roles": each["roles"], "base": digest_of(each["roles"])} for each in found]


def list_others(tx: Tx, project: str) -> list[Json]:
    """Return the users without a role in a project, as choices."""
    held = {each["id"] for each in project_access.list_access(tx, project)["users"]}
    return [{"value": each["id"], "text": name_of(each)} for each in users.list_names(tx) if each["id"] not in held]


def name_of(user: Json) -> str:
    return str(user.get("name") or user.get("username") or user.get("email") or user["id"])


def do(call: ApiCall, work: Callable[[Tx], object], changed: Look | None = None, *, form: str = "") -> Answer:
    """Do something to a project in one transaction, and return to its page: with a notice, or with what is wrong.

    `form` is what the fields of the form begin with.
    """

    def again(look: Look) -> Answer:
        return PROJECT.show_page(call, None, dataclasses.replace(look, problems=under(form, look.problems)))

    return attempt(call, work, again, "projects", call.params["projectId"], changed=changed)


def update_naming(call: ApiCall) -> Answer:
    """Change the naming pattern of a project, unless someone else changed it since it was shown."""
    project, typed = call.params["projectId"], read(call.form, NAMING)

    def work(tx: Tx) -> None:
        stored = project_changes.describe(tx, project)["featureNaming"]
        require_unchanged(texts_of(stored, NAMING), call.form.text("base"))
        project_changes.change_settings(tx, project, checked(SETTINGS, {"featureNaming": typed}))

    return do(call, work, form="naming.")


def add_environment(call: ApiCall) -> Answer:
    def work(tx: Tx) -> None:
        body = checked(ADD_ENVIRONMENT, {"environment": call.form.text("environment")})
        environments.add_to_project(tx, call.params["projectId"], body["environment"])

    return do(call, work)


def remove_environment(call: ApiCall) -> Answer:
    """Remove an environment from a project, unless what it has there changed since it was shown."""
    project, name = call.params["projectId"], call.params["environment"]

    def work(tx: Tx) -> None:
        found = next((each for each in environments.list_for_project(tx, project) if each["name"] == name), None)
        require_unchanged(found, call.form.text("base"))
        environments.remove_from_project(tx, project, name)

    # what a project has in an environment is changed by much else, too, so no one is named there
    return do(call, work, changed_meanwhile(CHANGED, by_whom=False))


def give(call: ApiCall) -> Answer:
    """Give a role to a user."""

    def work(tx: Tx) -> None:
        body = checked(ADD_ACCESS, {"roles": call.form.texts("role"), "users": call.form.texts("user")})
        project_access.add(tx, call.params["projectId"], body["roles"], body["users"])

    return do(call, work)


def replace(call: ApiCall) -> Answer:
    """Set the roles of a user, unless someone else changed them since they were shown."""

    def work(tx: Tx) -> None:
        body = checked(SET_ROLES, {"roles": call.form.texts("roles")})
        project_access.replace(tx, call.params["projectId"], unchanged_user(call, tx), body["roles"])

    return do(call, work, changed_meanwhile(CHANGED))


def take(call: ApiCall) -> Answer:
    """Take all roles of a user away, unless someone else changed them since they were shown."""

    def work(tx: Tx) -> None:
        project_access.remove(tx, call.params["projectId"], unchanged_user(call, tx))

    return do(call, work, changed_meanwhile(CHANGED))


def unchanged_user(call: ApiCall, tx: Tx) -> int:
    """Return the user in the path. Raises ChangedMeanwhileError if the roles have changed since they were shown."""
    user = row_id(call, "userId")
    require_unchanged(held_roles(tx, call.params["projectId"], user), call.form.text("base"))
    return user


def held_roles(tx: Tx, project: str, user: int) -> Sequence[int]:
    """Return the roles of a user. Raises CallerError (404) for an unknown user."""
    users.get(tx, user)
    return project_access.roles_of(tx, project, user)


PROJECT = Resource(
    name="project",
    plural="projects",
    key="projectId",
    members=("project", "projects"),
    operations=("createProject", "updateProject", "deleteProject"),
    rows=projects.list_all,
    find=project_changes.describe,
    change=project_changes.change,
    remove=project_changes.remove,
    shown_of=lambda stored: texts_of(stored, PARTS),
    read=read,
    body_of=lambda shown, _stored: shown | {name: shown[name] or None for name in MAY_BE_EMPTY},
    more=more,
    kept=lambda stored: texts_of(stored, PARTS),
    thing="whole project",
    place="project",
    project_of=lambda stored: stored["id"],
    sentence=NOT_DONE,
    stays=True,
)
NEW = "project_new.html"
OWN = PROJECT.own
USER = f"{OWN}/users/:userId"

ROUTES = (
    *PROJECT.routes(),
    page("/new-project", show_new, NEW, "The form of a new project."),
    change("/new-project", create, template=NEW, stands_for="createProject"),
    PROJECT.form(f"{OWN}/naming", update_naming, "updateProjectEnterpriseSettings"),
    PROJECT.form(f"{OWN}/environments", add_environment, "addEnvironmentToProject"),
    PROJECT.form(f"{OWN}/environments/:environment/remove", remove_environment, "removeEnvironmentFromProject"),
    PROJECT.form(f"{OWN}/access", give, "addAccessToProject"),
    PROJECT.form(f"{USER}/roles", replace, "setRolesForUser"),
    PROJECT.form(f"{USER}/remove", take, "removeUserAccess"),
)
