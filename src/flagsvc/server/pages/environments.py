"""Environments: the list with its order, the form, which adds a new one to projects, the switch, and deleting."""

from __future__ import annotations

from functools import partial

from flagsvc.core.direction import isolate
from flagsvc.http.answers import Answer
from flagsvc.pages.forms import Form
from flagsvc.server.api.admin.environments import CREATE
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Handler
from flagsvc.server.pages.edits import (
    CONFLICT,
    ChangedMeanwhileError,
    Look,
    attempt,
    checked,
    digest_of,
    require_unchanged,
)
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.page import change, see_other
from flagsvc.server.pages.resource import NOT_DONE, Resource, Seen
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import environments, projects
from flagsvc.server.store.store import Tx

TYPES = ("development", "test", "pre-production", "production")
"""The usual types, which the form offers. Any other text is a type, too."""
MOVED = "Nothing was moved: someone changed the order meanwhile. This is what it is now."


def list_more(call: ApiCall, tx: Tx, rows: list[Json], look: Look) -> Json:
    """Return the digest of the order, and who changed it."""
    base = digest_of([each["name"] for each in rows])
    last = last_change(call, tx, look, "order")
    return {"last_change": last, "base": base, "may": ENVIRONMENT.may_make(call, tx), "problems": look.problems}


def move(step: int) -> Handler:
    """Return a handler that moves an environment by a step, unless someone else changed the order since it was shown."""

    def handler(call: ApiCall) -> Answer:
        name = call.params["name"]
        try:
            with call.store.writing(call.actor, "page") as tx:
                environments.get(tx, name)
                found = environments.list_all(tx)
                names = [each["name"] for each in found]
                require_unchanged(names, call.form.text("base"))
                environments.sort(tx, orders_after(found, names.index(name), step))
        except ChangedMeanwhileError:
            return ENVIRONMENT.show_list(call, Look(CONFLICT, [MOVED], by_whom=True))
        return see_other(call, "environments", done=tx)

    return handler


def orders_after(found: list[Json], at: int, step: int) -> dict[str, int]:
    """Return the sort orders after moving the environment at an index. The first stays first, the last stays last."""
    names = [each["name"] for each in found]
    names.insert(max(0, at + step), names.pop(at))
    orders = [each["sortOrder"] for each in found]
    if len(set(orders)) < len(orders):
        orders = list(range(1, len(orders) + 1))
    return dict(zip(names, orders, strict=True))


def read(form: Form) -> Json:
    return {"name": form.text("name"), "type": form.text("type"), "enabled": form.has("enabled")}


def body_of(shown: Json, stored: Json | None) -> Json:
    """Return what the form stands for, as the admin API takes it."""
    return shown if stored is None else {"type": shown["type"]}


def more(seen: Seen) -> Json:
    """Return the stored environment, and the usual types. The form of a stored environment has only a type.

    The form of a new environment has the projects that get it: every project, until somebody chooses.
    """
    if seen.stored is not None:
        return {"environment": seen.stored, "types": TYPES, "form": {**seen.own, "type": seen.form["type"]}}
    names = [each["id"] for each in projects.list_names(seen.tx)]
    chosen = names if seen.typed is None else seen.call.form.texts("projects")
    return {"environment": None, "types": TYPES, "form": seen.form | {"projects": chosen}, "projects": names}


def create(call: ApiCall) -> Answer:
    """Create an environment, and add it to the ticked projects, in one transaction."""
    typed = read(call.form)

    def work(tx: Tx) -> None:
        made = environments.create(tx, checked(CREATE, typed))
        for project in call.form.texts("projects"):
            environments.add_to_project(tx, project, made["name"])

    return attempt(call, work, partial(ENVIRONMENT.show_page, call, typed), "environments")


def switch(_call: ApiCall, tx: Tx, name: str, *, enabled: bool) -> None:
    environments.switch(tx, name, enabled=enabled)


ENVIRONMENT = Resource(
    name="environment",
    plural="environments",
    members=("environment", "environments"),
    operations=("createEnvironment", "updateEnvironment", "removeEnvironment"),
    rows=environments.list_all,
    list_more=list_more,
    find=environments.get,
    change=environments.change,
    remove=environments.remove,
    new_form={"name": "", "type": "", "enabled": True},
    read=read,
    body_of=body_of,
    more=more,
    retyped=lambda typed: f"You typed the type {isolate(typed['type'])}.",
    place="environment",
    sentence=NOT_DONE,
    stays=True,
    lacks=("changed", "conflict_rows", "may_delete", "delete_permission"),
    list_lacks=("may_create",),
)
OWN = ENVIRONMENT.own

NEW = "/new-environment"

ROUTES = (
    *ENVIRONMENT.routes(),
    ENVIRONMENT.page(NEW, ENVIRONMENT.show, "environment", "The form of a new environment."),
    ENVIRONMENT.form(NEW, create, "createEnvironment"),
    change(f"{OWN}/on", ENVIRONMENT.does(partial(switch, enabled=True)), stands_for="toggleEnvironmentOn"),
    change(f"{OWN}/off", ENVIRONMENT.does(partial(switch, enabled=False)), stands_for="toggleEnvironmentOff"),
    ENVIRONMENT.form(f"{OWN}/up", move(-1), "updateSortOrder", template="environments"),
    ENVIRONMENT.form(f"{OWN}/down", move(1), "updateSortOrder", template="environments"),
)
