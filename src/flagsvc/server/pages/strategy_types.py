"""Strategy types: the list, the form of a custom one with its parameters, deprecating one, and deleting one."""

from __future__ import annotations

from collections.abc import Callable

from flagsvc.pages.forms import Form, read_whole
from flagsvc.server.api.admin.strategy_types import CREATE, TYPES, UPDATE
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Handler
from flagsvc.server.pages.edits import (
    SAVE,
    Look,
    attempt,
    changed_meanwhile,
    checked,
    differences,
    digest_of,
    require_unchanged,
)
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.page import change, page
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import strategy_types
from flagsvc.server.store.store import Tx

MAKE, WRITE, DELETE = "CREATE_STRATEGY", "UPDATE_STRATEGY", "DELETE_STRATEGY"
ADD, REMOVE = "add-parameter", "remove-parameter"
MOST = 100
"""Parameters that a form may have."""
TEXTS = ("title", "description")
PARTS = {"title": "Title", "description": "Description", "words": "Parameters"}
NEW_FORM: Json = {"name": "", "title": "", "description": "", "parameters": []}
EMPTY: Json = {"name": "", "type": TYPES[0], "description": "", "required": False}
CHANGED = "Nothing was done: someone changed this strategy type meanwhile. This is what it is now."


def list_all(call: ApiCall) -> ApiAnswer:
    """Return every strategy type."""
    with call.store.reading() as tx:
        found = strategy_types.list_types(tx)
    return ApiAnswer({"types": found, "may_create": call.actor.may(MAKE), "permission": MAKE})


def show(call: ApiCall) -> ApiAnswer:
    """Return the form of a strategy type, or that of a new one."""
    return show_page(call, None, Look())


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a stored strategy type."""
    parameters = [EMPTY | {key: each[key] for key in EMPTY if key in each} for each in stored["parameters"]]
    return {"name": stored["name"], **{key: stored[key] or "" for key in TEXTS}, "parameters": parameters}


def read_form(form: Form) -> Json:
    """Return what was typed."""
    parameters = [read_parameter(form, f"p{at}.") for at in range(min(read_whole(form.text("parameters")) or 0, MOST))]
    return {**{key: form.text(key) for key in ("name", *TEXTS)}, "parameters": parameters}


def read_parameter(form: Form, prefix: str) -> Json:
    """Return one parameter of a form."""
    texts = {key: form.text(f"{prefix}{key}") for key in ("name", "type", "description")}
    return texts | {"required": form.has(f"{prefix}required")}


def body_of(shown: Json, stored: Json | None) -> Json:
    """Return what the form stands for, as the admin API takes it. A text that there never was stays absent."""
    kept = {key: shown[key] for key in TEXTS if shown[key] or (stored is not None and stored[key] is not None)}
    old = [] if stored is None else stored["parameters"]
    parameters = [
        parameter_of(each, next((one for one in old if one["name"] == each["name"]), {}))
        for each in shown["parameters"]
    ]
    return kept | {"parameters": parameters}


def parameter_of(row: Json, stored: Json) -> Json:
    """Return a parameter as the admin API takes it. A member that it never had and that says nothing stays absent."""
    return {key: each for key, each in row.items() if each or key in stored or key in ("name", "type")}


def submit(call: ApiCall) -> ApiAnswer:
    """Do what the button of the form says: save, or add or remove a parameter."""
    shown = read_form(call.form)
    action, _, place = call.form.text("do").partition(":")
    at = read_whole(place)
    if action == SAVE:
        return save(call, shown)
    if action == ADD and len(shown["parameters"]) < MOST:
        shown["parameters"].append(EMPTY)
    elif action == REMOVE and at is not None and at < len(shown["parameters"]):
        shown["parameters"].pop(at)
    return show_page(call, shown, Look())


def save(call: ApiCall, shown: Json) -> ApiAnswer:
    """Save a form in one transaction, unless someone else changed the strategy type since it was shown."""
    name = call.params.get("name")

    def work(tx: Tx) -> None:
        if name is None:
            strategy_types.create(tx, checked(CREATE, body_of(shown, None) | {"name": shown["name"]}))
            return
        stored = strategy_types.find(tx, name)
        require_unchanged(stored, call.form.text("base"))
        strategy_types.change(tx, name, checked(UPDATE, body_of(shown, stored)))

    return attempt(call, work, lambda look: show_page(call, shown, look), "strategy-types")


def show_page(call: ApiCall, typed: Json | None, look: Look) -> ApiAnswer:
    """Return the page of the form: with what was typed, or with what is stored. Raises CallerError (404)."""
    name = call.params.get("name")
    with call.store.reading() as tx:
        stored = None if name is None else strategy_types.find(tx, name)
        uses = [] if name is None else strategy_types.strategies_using(tx, name)
        last = last_change(call, tx, look, "strategy type", name)
    own = NEW_FORM if stored is None else shown_of(stored)
    needed = MAKE if stored is None else WRITE
    data = {
        "type": name,
        "form": typed or own,
        "kinds": TYPES,
        "editable": stored is None or stored["editable"],
        "deprecated": stored is not None and stored["deprecated"],
        "uses": uses,
        "base": call.form.text("base") if typed is not None and not look.conflict else digest_of(stored),
        "stored_base": digest_of(stored),
        "changed": look.conflict,
        "last_change": last,
        "conflict_rows": differences(PARTS, told(own), told(typed or own)) if look.conflict else [],
        "may": call.actor.may(needed),
        "permission": needed,
        "may_delete": call.actor.may(DELETE),
        "delete_permission": DELETE,
        "problems": look.problems,
    }
    return ApiAnswer(data, look.status)


def told(shown: Json) -> Json:
    """Return a form with its parameters in words."""
    words = [
        f"{each['name']} ({each['type']}{', required' if each['required'] else ''}) {each['description']}".strip()
        for each in shown["parameters"]
    ]
    return {**shown, "words": "; ".join(words)}


def unchanged(work: Callable[[Tx, str], None], *, stays: bool) -> Handler:
    """Return a handler that does work on a strategy type, unless someone else changed it since it was shown.

    It shows the strategy type afterwards, or the list if it no longer `stays`.
    """

    def handler(call: ApiCall) -> ApiAnswer:
        name = call.params["name"]

        def unchanged(tx: Tx) -> None:
            require_unchanged(strategy_types.find(tx, name), call.form.text("base"))
            work(tx, name)

        goal = ("strategy-types", *([name] if stays else []))
        return attempt(
            call, unchanged, lambda look: show_page(call, None, look), *goal, changed=changed_meanwhile(CHANGED)
        )

    return handler


ONE = "strategy_type.html"
OWN = "/strategy-types/:name"
FORMS = (
    ("/new-strategy-type", submit, "Create a strategy type.", MAKE, "createStrategy"),
    (OWN, submit, "Change a strategy type.", WRITE, "updateStrategy"),
    (
        f"{OWN}/deprecate",
        unchanged(strategy_types.deprecate, stays=True),
        "Mark a strategy type as deprecated.",
        WRITE,
        "deprecateStrategy",
    ),
    (
        f"{OWN}/reactivate",
        unchanged(strategy_types.reactivate, stays=True),
        "Mark a strategy type as not deprecated.",
        WRITE,
        "reactivateStrategy",
    ),
    (
        f"{OWN}/delete",
        unchanged(strategy_types.remove, stays=False),
        "Delete a strategy type.",
        DELETE,
        "removeStrategy",
    ),
)
"""Path, handler, summary, permission, and the operation of the admin API."""

ROUTES = (
    page("/strategy-types", list_all, "strategy_types.html", "The list of strategy types."),
    page("/new-strategy-type", show, ONE, "The form of a new strategy type."),
    page(OWN, show, ONE, "The form of a strategy type."),
    *(
        change(path, handler, summary, template=ONE, permission=permission, stands_for=operation)
        for path, handler, summary, permission, operation in FORMS
    ),
)
