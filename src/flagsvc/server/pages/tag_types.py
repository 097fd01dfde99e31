"""Tag types: the list, and the form of one; deleting one with its tags."""

from __future__ import annotations

from flagsvc.pages.forms import Form
from flagsvc.server.api.admin.tag_types import UPDATE
from flagsvc.server.api.call import ApiAnswer, ApiCall
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
from flagsvc.server.pages.page import change, page
from flagsvc.server.shapes.batch import TAG_TYPE
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import tag_types
from flagsvc.server.store.store import Tx

MAKE, WRITE, DELETE = "CREATE_TAG_TYPE", "UPDATE_TAG_TYPE", "DELETE_TAG_TYPE"
PARTS = {"description": "Description", "icon": "Icon", "color": "Color"}
NEW_FORM = {"name": "", "description": "", "icon": "", "color": ""}
FIRST_COLOR = "#1d4ed8"
"""The color that the form offers where a type has none."""
CHANGED = "It was not deleted: someone changed this tag type or its tags meanwhile. This is what it is now."


def list_all(call: ApiCall) -> ApiAnswer:
    """Return every tag type with its number of tags."""
    with call.store.reading() as tx:
        found = [each | {"tags": len(tag_types.tags_of(tx, each["name"]))} for each in tag_types.list_types(tx)]
    return ApiAnswer({"types": found, "may_create": call.actor.may(MAKE), "permission": MAKE})


def show(call: ApiCall) -> ApiAnswer:
    """Return the form of a tag type, or that of a new one."""
    return show_page(call, None, Look())


def read_form(form: Form) -> Json:
    """Return what was typed. The color counts where its box is ticked."""
    color = form.text("color") if form.has("colored") else ""
    return {name: form.text(name) for name in NEW_FORM} | {"color": color}


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a stored tag type."""
    return {name: stored[name] or "" for name in NEW_FORM}


def body_of(shown: Json, before: Json) -> Json:
    """Return what the form changes, as the admin API takes it. The API has no way to take a color away."""
    return {name: shown[name] for name in PARTS if shown[name] != before[name] and (shown[name] or name != "color")}


def show_page(call: ApiCall, typed: Json | None, look: Look) -> ApiAnswer:
    """Return the page of the form: with what was typed, or with what is stored. Raises CallerError (404)."""
    name = call.params.get("name")
    with call.store.reading() as tx:
        stored = None if name is None else tag_types.find(tx, name)
        tags = [] if name is None else tag_types.tags_of(tx, name)
        last = last_change(call, tx, look, "tag type" if look.conflict else "tag type with its tags", name)
    own = NEW_FORM if stored is None else shown_of(stored)
    needed = MAKE if stored is None else WRITE
    data = {
        "type": name,
        "form": typed or own,
        "color": own["color"],
        "first_color": FIRST_COLOR,
        "tags": tags,
        "flags": len({flag for each in tags for flag in each["features"]}),
        "base": call.form.text("base") if typed is not None and not look.conflict else digest_of(stored),
        "whole_base": digest_of([stored, tags]),
        "changed": look.conflict,
        "last_change": last,
        "conflict_rows": differences(PARTS, own, typed or own) if look.conflict else [],
        "may": call.actor.may(needed),
        "permission": needed,
        "may_delete": call.actor.may(DELETE),
        "delete_permission": DELETE,
        "problems": look.problems,
    }
    return ApiAnswer(data, look.status)


def create(call: ApiCall) -> ApiAnswer:
    """Create a tag type."""
    typed = read_form(call.form)

    def work(tx: Tx) -> None:
        tag_types.create(tx, checked(TAG_TYPE, {"name": typed["name"]} | body_of(typed, NEW_FORM)))

    return attempt(call, work, lambda look: show_page(call, typed, look), "tag-types")


def update(call: ApiCall) -> ApiAnswer:
    """Change a tag type, unless someone else changed it since it was shown."""
    name, typed = call.params["name"], read_form(call.form)

    def work(tx: Tx) -> None:
        stored = tag_types.find(tx, name)
        require_unchanged(stored, call.form.text("base"))
        tag_types.change(tx, name, checked(UPDATE, body_of(typed, shown_of(stored))))

    return attempt(call, work, lambda look: show_page(call, typed, look), "tag-types")


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a tag type with its tags, unless someone else changed one of these since they were shown."""
    name = call.params["name"]

    def work(tx: Tx) -> None:
        require_unchanged([tag_types.find(tx, name), tag_types.tags_of(tx, name)], call.form.text("base"))
        tag_types.remove(tx, name)

    return attempt(
        call, work, lambda look: show_page(call, None, look), "tag-types", changed=changed_meanwhile(CHANGED)
    )


ONE = "tag_type.html"
OWN = "/tag-types/:name"

ROUTES = (
    page("/tag-types", list_all, "tag_types.html", "The list of tag types."),
    page("/new-tag-type", show, ONE, "The form of a new tag type."),
    page(OWN, show, ONE, "The form of a tag type."),
    change("/new-tag-type", create, "Create a tag type.", template=ONE, permission=MAKE, stands_for="createTagType"),
    change(OWN, update, "Change a tag type.", template=ONE, permission=WRITE, stands_for="updateTagType"),
    change(f"{OWN}/delete", remove, "Delete a tag type.", template=ONE, permission=DELETE, stands_for="deleteTagType"),
)
