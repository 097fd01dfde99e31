"""Context fields: the list, and the form of one with its legal values; deleting one that no strategy constrains."""

from __future__ import annotations

from flagsvc.pages.forms import Form, read_values, read_whole
from flagsvc.server.api.admin.context_fields import CREATE, MAY_CREATE, MAY_DELETE, MAY_UPDATE, UPDATE
from flagsvc.server.api.call import NUL, ApiAnswer, ApiCall
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
from flagsvc.server.pages.segment import form_project, makes_in, may, project_choices
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import context_fields, segments
from flagsvc.server.store.resources.projects import project_of_field
from flagsvc.server.store.store import Tx

REMOVE = "remove-value"
TEXTS = ("name", "description", "project")
PARTS = {
    "description": "Description",
    "project": "Project",
    "stickiness": "Rollouts may stick to it",
    "words": "Legal values",
}
"""Part of a form → what people call it."""
NEW_FORM: Json = {"name": "", "description": "", "project": "", "stickiness": False, "values": []}
CHANGED = "It was not deleted: someone changed this context field meanwhile. This is what it is now."


def list_all(call: ApiCall) -> ApiAnswer:
    """Return every context field with its legal values and the number of flags that constrain it."""
    with call.store.reading() as tx:
        found = context_fields.list_fields(tx)
        may_create = may(call, MAY_CREATE, None) or bool(makes_in(call, tx, MAY_CREATE))
    return ApiAnswer({"fields": found, "may_create": may_create, "permission": MAY_CREATE[0]})


def show(call: ApiCall) -> ApiAnswer:
    """Return the form of a context field, or that of a new one."""
    return show_page(call, None, Look())


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a stored context field."""
    texts = {name: stored.get(name) or "" for name in TEXTS}
    values = [{"value": each["value"], "description": each.get("description", "")} for each in stored["legalValues"]]
    return texts | {"stickiness": stored["stickiness"], "values": values}


def read_form(form: Form) -> Json:
    """Return what was typed. Values of the box for several follow those with a line of their own."""
    lines = zip(form.trimmed("value"), form.trimmed("meaning"), strict=False)
    values = [{"value": value, "description": text} for value, text in lines]
    known = {each["value"] for each in values}
    more = [{"value": each, "description": ""} for each in read_values(form.text("more")) if each not in known]
    texts = {name: form.text(name) for name in TEXTS}
    return texts | {
        "stickiness": form.has("stickiness"),
        "values": [each for each in values if any(each.values())] + more,
    }


def body_of(shown: Json, stored: Json | None) -> Json:
    """Return what the form stands for, as the admin API takes it. A description that there never was stays absent."""
    legal = [{name: text for name, text in each.items() if text or name == "value"} for each in shown["values"]]
    body: Json = {"stickiness": shown["stickiness"], "legalValues": legal}
    kept = stored is not None and stored["description"] is not None
    body |= {"description": shown["description"]} if shown["description"] or kept else {}
    return body | ({"project": shown["project"]} if shown["project"] else {})


def submit(call: ApiCall) -> ApiAnswer:
    """Do what the button of the form says: save, take a value out, or take the pasted values in."""
    shown = read_form(call.form)
    action, _, place = call.form.text("do").partition(":")
    if action == SAVE:
        return save(call, shown)
    at = read_whole(place)
    if action == REMOVE and at is not None and at < len(shown["values"]):
        shown["values"].pop(at)
    return show_page(call, shown, Look())


def save(call: ApiCall, shown: Json) -> ApiAnswer:
    """Save a form in one transaction, unless someone else changed the context field since it was shown."""
    name = call.params.get("contextField")

    def work(tx: Tx) -> None:
        if name is None:
            context_fields.create(tx, checked(CREATE, body_of(shown, None) | {"name": shown["name"]}))
            return
        stored = context_fields.find(tx, name)
        require_unchanged(stored, call.form.text("base"))
        if differences(PARTS, told(shown_of(stored)), told(shown)):
            context_fields.change(tx, name, checked(UPDATE, body_of(shown, stored)))

    return attempt(call, work, lambda look: show_page(call, shown, look), "context-fields")


def show_page(call: ApiCall, typed: Json | None, look: Look) -> ApiAnswer:
    """Return the page of the form: with what was typed, or with what is stored. Raises CallerError (404)."""
    name = call.params.get("contextField")
    with call.store.reading() as tx:
        stored = None if name is None else context_fields.find(tx, name)
        own = NEW_FORM if stored is None else shown_of(stored)
        data: Json = {
            "field": name,
            "form": typed or own,
            "projects": makes_in(call, tx, MAY_CREATE) if stored is None else project_choices(tx),
            "uses": [] if name is None else context_fields.strategies_using(tx, name),
            "segments": [] if name is None else segments_using(tx, name),
            "last_change": last_change(call, tx, look, "context field", name),
        }
    project = None if stored is None else stored.get("project")
    needed = MAY_CREATE if stored is None else MAY_UPDATE
    allowed = may(call, needed, project)
    data |= {
        "base": call.form.text("base") if typed is not None and not look.conflict else digest_of(stored),
        "owner": project or "",
        "for_all": not project and (allowed or stored is not None),
        "changed": look.conflict,
        "conflict_rows": differences(PARTS, told(own), told(typed or own)) if look.conflict else [],
        "may": allowed or (stored is None and bool(data["projects"])),
        "permission": needed[0],
        "may_delete": may(call, MAY_DELETE, project),
        "delete_permission": MAY_DELETE[0],
        "problems": look.problems,
    }
    return ApiAnswer(data, look.status)


def told(shown: Json) -> Json:
    """Return a form with words for what is no text."""
    words = "; ".join(f"{each['value']}: {each['description']}".removesuffix(": ") for each in shown["values"])
    return {**shown, "stickiness": "yes" if shown["stickiness"] else "no", "words": words}


def segments_using(tx: Tx, name: str) -> list[Json]:
    """Return the segments that constrain a context field: id and name."""
    return [
        {"id": each["id"], "name": each["name"]}
        for each in segments.list_segments(tx)
        if any(one["contextName"] == name for one in each["constraints"])
    ]


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a context field that no strategy constrains, unless someone else changed it since it was shown."""
    name = call.params["contextField"]

    def work(tx: Tx) -> None:
        require_unchanged(context_fields.find(tx, name), call.form.text("base"))
        context_fields.remove(tx, name)

    return attempt(
        call, work, lambda look: show_page(call, None, look), "context-fields", changed=changed_meanwhile(CHANGED)
    )


def own_project(call: ApiCall) -> str | None:
    """Return the project of the field in the path, if the form names the same; else None, which stands for all projects."""
    if NUL in call.params["contextField"]:
        return None
    with call.store.reading() as tx:
        own = project_of_field(tx, call.params["contextField"])
    return own if form_project(call) == own else None


ONE = "context_field.html"
OWN = "/context-fields/:contextField"

ROUTES = (
    page("/context-fields", list_all, "context_fields.html", "The list of context fields."),
    page("/new-context-field", show, ONE, "The form of a new context field."),
    page(OWN, show, ONE, "The form of a context field."),
    change(
        "/new-context-field",
        submit,
        "Create a context field.",
        template=ONE,
        permission=MAY_CREATE,
        project_of=form_project,
        stands_for="createContextField",
    ),
    change(
        OWN,
        submit,
        "Change a context field.",
        template=ONE,
        permission=MAY_UPDATE,
        project_of=own_project,
        stands_for="updateContextField",
    ),
    change(
        f"{OWN}/delete",
        remove,
        "Delete a context field.",
        template=ONE,
        permission=MAY_DELETE,
        project_of=own_project,
        stands_for="deleteContextField",
    ),
)
