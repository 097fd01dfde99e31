"""Environments: the list with its order, the form, the switch, and deleting."""

from __future__ import annotations

from flagsvc.http.shapes import check
from flagsvc.server.api.admin.environments import CREATE, UPDATE
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Handler
from flagsvc.server.pages.edits import (
    CONFLICT,
    ChangedMeanwhileError,
    Look,
    attempt,
    changed_meanwhile,
    digest_of,
    require_unchanged,
)
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import environments
from flagsvc.server.store.store import Tx

PERMISSION = "ADMIN"
TYPES = ("development", "test", "pre-production", "production")
"""The usual types, which the form offers. Any other text is a type, too."""
CHANGED = "Nothing was done: someone changed this environment meanwhile. This is what it is now."
MOVED = "Nothing was moved: someone changed the order meanwhile. This is what it is now."
STEPS = {"up": -1, "down": 1}


def list_all(call: ApiCall) -> ApiAnswer:
    """Return every environment in its order, with its numbers."""
    return show_list(call, Look())


def show_list(call: ApiCall, look: Look) -> ApiAnswer:
    """Return the page of the list."""
    with call.store.reading() as tx:
        found = environments.list_all(tx)
        last = last_change(call, tx, look, "order")
    data = {
        "environments": found,
        "last_change": last,
        "base": digest_of([each["name"] for each in found]),
        "may": call.actor.may(PERMISSION),
        "permission": PERMISSION,
        "problems": look.problems,
    }
    return ApiAnswer(data, look.status)


def move(step: int) -> Handler:
    """Return a handler that moves an environment by a step, unless someone else changed the order since it was shown."""

    def handler(call: ApiCall) -> ApiAnswer:
        name = call.params["name"]
        try:
            with call.store.writing(call.actor, "page") as tx:
                environments.get(tx, name)
                found = environments.list_all(tx)
                names = [each["name"] for each in found]
                require_unchanged(names, call.form.text("base"))
                environments.sort(tx, orders_after(found, names.index(name), step))
        except ChangedMeanwhileError:
            return show_list(call, Look(CONFLICT, [MOVED], by_whom=True))
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


def show(call: ApiCall) -> ApiAnswer:
    """Return the form of an environment, or that of a new one."""
    return show_page(call, None, Look())


def show_page(call: ApiCall, typed: Json | None, look: Look) -> ApiAnswer:
    """Return the page of the form: with what was typed, or with what is stored. Raises CallerError (404)."""
    name = call.params.get("name")
    stored = last = None
    if name is not None:
        with call.store.reading() as tx:
            stored = environments.get(tx, name)
            last = last_change(call, tx, look, "environment", environment=name)
    data = {
        "environment": stored,
        "form": typed or stored or {"name": "", "type": "", "enabled": True},
        "base": digest_of(stored),
        "types": TYPES,
        "may": call.actor.may(PERMISSION),
        "permission": PERMISSION,
        "problems": look.problems,
        "last_change": last,
    }
    return ApiAnswer(data, look.status)


def create(call: ApiCall) -> ApiAnswer:
    """Create an environment."""
    typed = {"name": call.form.text("name"), "type": call.form.text("type"), "enabled": call.form.has("enabled")}

    def work(tx: Tx) -> None:
        check(CREATE, typed)
        environments.create(tx, typed)

    return attempt(call, work, lambda look: show_page(call, typed, look), "environments")


def update(call: ApiCall) -> ApiAnswer:
    """Change the type of an environment, unless someone else changed the environment since it was shown."""
    name, wanted = call.params["name"], {"type": call.form.text("type")}

    def work(tx: Tx) -> None:
        require_unchanged(environments.get(tx, name), call.form.text("base"))
        check(UPDATE, wanted)
        environments.change(tx, name, wanted)

    def again(look: Look) -> ApiAnswer:
        return show_page(call, None if look.by_whom else {"name": name, **wanted}, look)

    changed = changed_meanwhile(CHANGED, f"You typed the type {wanted['type']}.")
    return attempt(call, work, again, "environments", name, changed=changed)


def switch(*, enabled: bool) -> Handler:
    """Return a handler that switches an environment on or off."""

    def handler(call: ApiCall) -> ApiAnswer:
        with call.store.writing(call.actor, "page") as tx:
            environments.switch(tx, call.params["name"], enabled=enabled)
        return see_other(call, "environments", call.params["name"], done=tx)

    return handler


def remove(call: ApiCall) -> ApiAnswer:
    """Delete an environment that is not in use, unless someone else changed it since it was shown."""
    name = call.params["name"]

    def work(tx: Tx) -> None:
        require_unchanged(environments.get(tx, name), call.form.text("base"))
        environments.remove(tx, name)

    changed = changed_meanwhile(CHANGED)
    return attempt(call, work, lambda look: show_page(call, None, look), "environments", changed=changed)


LIST, ONE = "environments.html", "environment.html"
OWN = "/environments/:name"

ROUTES = (
    page("/environments", list_all, LIST, "The list of environments."),
    page("/new-environment", show, ONE, "The form of a new environment."),
    page(OWN, show, ONE, "The form of an environment."),
    change(
        "/new-environment",
        create,
        "Create an environment.",
        template=ONE,
        permission=PERMISSION,
        stands_for="createEnvironment",
    ),
    change(
        OWN,
        update,
        "Change the type of an environment.",
        template=ONE,
        permission=PERMISSION,
        stands_for="updateEnvironment",
    ),
    *(
        change(
            f"{OWN}/{name}",
            switch(enabled=enabled),
            f"Switch an environment {name}.",
            permission=PERMISSION,
            stands_for=f"toggleEnvironment{name.title()}",
        )
        for name, enabled in (("on", True), ("off", False))
    ),
    *(
        change(
            f"{OWN}/{name}",
            move(step),
            f"Move an environment {name} in the order.",
            template=LIST,
            permission=PERMISSION,
            stands_for="updateSortOrder",
        )
        for name, step in STEPS.items()
    ),
    change(
        f"{OWN}/delete",
        remove,
        "Delete an environment.",
        template=ONE,
        permission=PERMISSION,
        stands_for="removeEnvironment",
    ),
)
