"""The parent of a flag: the forms that choose the parent and its state, and remove it."""

from __future__ import annotations

from collections.abc import Callable

from flagsvc.http.answers import Answer
from flagsvc.pages.forms import Form
from flagsvc.server.api.admin.dependencies import CREATE, PERMISSION
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.edits import (
    Look,
    attempt,
    base_of,
    changed_meanwhile,
    checked,
    differences,
    digest_of,
    require_unchanged,
)
from flagsvc.server.pages.flag import require_flag, state_words
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.page import change, page
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import dependencies
from flagsvc.server.store.store import Tx

ON, OFF = "on", "off"
PARTS = {"words": "Depends on"}
CHANGED = "Nothing was removed: someone changed the parents meanwhile. This is what they are now."


def form_of(parent: Json) -> Json:
    return {"parent": parent["feature"], "state": ON if parent["enabled"] else OFF, "variants": parent["variants"]}


def read_form(form: Form) -> Json:
    return {"parent": form.text("parent"), "state": form.text("state"), "variants": form.texts("variants")}


def parent_of(form: Json) -> Json:
    """Return the parent that a form stands for, as it is stored. A parent that must be off has no variants."""
    enabled = form["state"] != OFF
    return {"feature": form["parent"], "enabled": enabled, "variants": form["variants"] if enabled else []}


def told(parents: list[Json]) -> Json:
    """Return parents in words, as one part of a form."""
    return {"words": "; ".join(f"{each['feature']}, {state_words(each)}" for each in parents)}


def show_page(call: ApiCall, typed: Json | None = None, look: Look | None = None) -> Answer:
    """Return the page of the form: with the typed values, or with the stored values. Raises CallerError (404)."""
    look = look or Look()
    name = call.params["featureName"]
    with call.store.reading() as tx:
        project = require_flag(tx, name).project
        parents = dependencies.parents_of(tx, name)
        children = dependencies.children_of(tx, [name])
        offered = dependencies.possible_parents(tx, name)
        last = last_change(call, tx, look, "parents", feature=name)
        form = typed or first_form(call, parents)
        variants = dependencies.variants_of(tx, form["parent"]) if form["parent"] else []
    data = {
        "flag": name,
        "parents": [each | {"words": state_words(each)} for each in parents],
        "children": children,
        "offered": offered,
        "form": form,
        "variants": list(dict.fromkeys([*variants, *form["variants"]])),
        "base": base_of(call, typed, look, parents),
        "stored_base": digest_of(parents),
        "changed": look.conflict,
        "last_change": last,
        "conflict_rows": differences(PARTS, told(parents), told([parent_of(form)])) if look.conflict else [],
        "may": call.actor.may(PERMISSION, project=project),
        "permission": PERMISSION,
        "problems": look.problems,
    }
    return Answer(data, look.status)


def first_form(call: ApiCall, parents: list[Json]) -> Json:
    """Return the form of the parent in the query as it is stored, or as a new one; without one in the query, of the first."""
    chosen = call.first_value("parent") or (parents[0]["feature"] if parents else "")
    stored = next((each for each in parents if each["feature"] == chosen), None)
    return form_of(stored or {"feature": chosen, "enabled": True, "variants": []})


def save(call: ApiCall) -> Answer:
    """Make the flag depend on a parent, which replaces others. Nothing is done where it depends so already."""
    form = read_form(call.form)

    def work(tx: Tx, project: str, name: str) -> None:
        if dependencies.parents_of(tx, name) != [parent_of(form)]:
            dependencies.add(tx, project, name, checked(CREATE, parent_of(form)))

    return do(call, form, work)


def remove(call: ApiCall) -> Answer:
    return do(call, None, lambda tx, project, name: dependencies.remove(tx, project, name, call.params["parent"]))


def do(call: ApiCall, form: Json | None, work: Callable[[Tx, str, str], None]) -> Answer:
    """Do work on the parents of the flag, given project and flag, unless someone else changed them since they were shown."""
    name = call.params["featureName"]

    def whole(tx: Tx) -> None:
        project = require_flag(tx, name).project
        require_unchanged(dependencies.parents_of(tx, name), call.form.text("base"))
        work(tx, project, name)

    changed = changed_meanwhile(CHANGED) if form is None else None
    return attempt(call, whole, lambda look: show_page(call, form, look), "flags", name, changed=changed)


OWN = "/flags/:featureName/parent"
TEMPLATE = "flag_parent.html"

ROUTES = (
    page(OWN, show_page, TEMPLATE, "What a flag depends on."),
    change(OWN, save, template=TEMPLATE, stands_for="addFeatureDependency"),
    change(f"{OWN}/:parent/remove", remove, template=TEMPLATE, stands_for="deleteFeatureDependency"),
)
