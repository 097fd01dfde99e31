"""Segments: the list, the form with the conditions, what uses a segment, and deleting."""

from __future__ import annotations

from flagsvc.engine.parse import parse_segment
from flagsvc.pages.forms import Form
from flagsvc.reasons.words import EVERYONE, constraint_words
from flagsvc.server.api.admin.segments import UPSERT
from flagsvc.server.api.authorization import MAX_ID, read_number, segment_project
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.pages.conditions import (
    condition_choices,
    constraints_of,
    legal_values,
    press,
    read_rows,
    rows_of,
    show_rows,
)
from flagsvc.server.pages.edits import (
    PREVIEW,
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
from flagsvc.server.pages.strategy_preview import conditions_of, tell_apart
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources import projects, segments
from flagsvc.server.store.resources.projects import project_of_segment
from flagsvc.server.store.store import Tx

CREATE = ("CREATE_SEGMENT", "UPDATE_PROJECT_SEGMENT")
UPDATE = ("UPDATE_SEGMENT", "UPDATE_PROJECT_SEGMENT")
DELETE = ("DELETE_SEGMENT", "UPDATE_PROJECT_SEGMENT")
PARTS = {"name": "Name", "description": "Description", "project": "Project", "words": "Conditions"}
CHANGED = "It was not deleted: someone changed this segment meanwhile. This is what it is now."
IN_USE = "It was not deleted: strategies use it. Take it out of them first."


def list_all(call: ApiCall) -> ApiAnswer:
    """Return every segment in words, with the number of flags that use it."""
    with call.store.reading() as tx:
        found = [each | {"words": words_of(each["constraints"])} for each in segments.list_segments(tx)]
        may_create = may(call, CREATE, None) or bool(makes_in(call, tx, CREATE))
    return ApiAnswer({"segments": found, "may_create": may_create})


def words_of(constraints: list[Json]) -> str:
    """Return conditions in words."""
    spec = parse_segment({"id": 0, "name": "", "constraints": constraints}, "segment")
    return " and ".join([constraint_words(each) for each in spec.constraints]) or EVERYONE


def may(call: ApiCall, permissions: tuple[str, ...], project: str | None) -> bool:
    """Return whether the caller has one of the permissions: for all projects, or in this one."""
    return any(call.actor.may(each, project=project) for each in permissions)


def show(call: ApiCall) -> ApiAnswer:
    """Return the form of a segment, or that of a new one."""
    return show_page(call, None, Look())


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a stored segment."""
    return {
        "name": stored["name"],
        "description": stored["description"] or "",
        "project": stored.get("project") or "",
        "conditions": rows_of(stored["constraints"]),
        "base": digest_of(stored),
    }


def read_form(form: Form) -> Json:
    """Return what was typed."""
    texts = {name: form.text(name) for name in ("name", "description", "project", "base")}
    return texts | {"conditions": read_rows(form)}


def body_of(shown: Json) -> Json:
    """Return what the form stands for, as the admin API takes it."""
    body = {"name": shown["name"], "constraints": constraints_of(shown["conditions"])}
    body |= {"description": shown["description"]}
    return body | ({"project": shown["project"]} if shown["project"] else {})


def submit(call: ApiCall) -> ApiAnswer:
    """Do what the button of the form says: save, show it in words, or change the form."""
    do = call.form.text("do") or PREVIEW
    shown = read_form(call.form)
    if do == SAVE:
        return save(call, shown)
    press(shown["conditions"], do)
    return show_page(call, shown, Look(preview=do == PREVIEW))


def save(call: ApiCall, shown: Json) -> ApiAnswer:
    """Save a form in one transaction, unless someone else changed the segment since it was shown."""
    number = read_id(call)

    def work(tx: Tx) -> None:
        body = checked(UPSERT, body_of(shown))
        if number is None:
            segments.create(tx, body)
        else:
            require_unchanged(segments.find(tx, number), shown["base"])
            segments.change(tx, number, body)

    return attempt(call, work, lambda look: show_page(call, shown, look), "segments")


def read_id(call: ApiCall) -> int | None:
    """Return the id in the path; None for a new segment. Raises ShapeError (400), and CallerError (404) for a too large number."""
    if "id" not in call.params:
        return None
    number = read_number(call, "id")
    if number == MAX_ID:
        raise segments.unknown_segment(call.params["id"])
    return number


def show_page(call: ApiCall, typed: Json | None, look: Look) -> ApiAnswer:
    """Return the page of the form: with what was typed, or with what is stored. Raises CallerError (404)."""
    number = read_id(call)
    with call.store.reading() as tx:
        stored = None if number is None else segments.find(tx, number)
        shown = typed or (new_form() if stored is None else shown_of(stored))
        rows = shown["conditions"]
        data: Json = {
            "segment": number,
            "base": shown["base"] if stored is None or not look.conflict else digest_of(stored),
            "form": shown | {"conditions": show_rows(rows, legal_values(tx, rows))},
            "choices": condition_choices(tx)
            | {"projects": project_choices(tx) if stored is not None else makes_in(call, tx, CREATE)},
            "uses": [] if number is None else segments.strategies_using(tx, number),
            "words": words_of(constraints_of(rows)) if look.preview else "",
            "before": words_of(stored["constraints"]) if look.preview and stored is not None else "",
            "changed": look.conflict,
            "conflict_rows": in_words(shown_of(stored), shown) if look.conflict and stored is not None else [],
            "problems": look.problems,
            "last_change": last_change(call, tx, look, "segment", number),
        }
    project = None if stored is None else stored.get("project")
    needed = CREATE if stored is None else UPDATE
    for_all = may(call, needed, project)
    data |= {"for_all": for_all or stored is not None, "permission": needed[0]}
    data |= {"may": for_all or (stored is None and bool(data["choices"]["projects"]))}
    data |= {"may_delete": may(call, DELETE, project)}
    return ApiAnswer(data, look.status)


def new_form() -> Json:
    """Return the form of a new segment."""
    return {"name": "", "description": "", "project": "", "conditions": [], "base": ""}


def project_choices(tx: Tx) -> list[Json]:
    """Return the projects that a segment may belong to."""
    return [{"value": each["id"], "text": each["name"]} for each in projects.list_names(tx)]


def makes_in(call: ApiCall, tx: Tx, permissions: tuple[str, ...]) -> list[Json]:
    """Return the projects for which the caller may make something, by a right for all projects or for each."""
    return [each for each in project_choices(tx) if may(call, permissions, each["value"])]


def in_words(theirs: Json, mine: Json) -> list[Json]:
    """Return the parts in which two forms differ, with their conditions in words."""
    old, new = (conditions_of({**each, "segments": []}) for each in (theirs, mine))
    words = tell_apart(old, new, {})
    return differences(PARTS, {**theirs, "words": words[0]}, {**mine, "words": words[1]})


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a segment that no strategy uses, unless someone else changed it since it was shown."""
    number = read_id(call)
    assert number is not None

    def work(tx: Tx) -> None:
        require_unchanged(segments.find(tx, number), call.form.text("base"))
        if not segments.remove(tx, number):
            raise CallerError("ConflictError", IN_USE)

    changed = changed_meanwhile(CHANGED)
    return attempt(call, work, lambda look: show_page(call, None, look), "segments", changed=changed)


def form_project(call: ApiCall) -> str | None:
    """Return the project in the form, to which a new segment will belong."""
    return call.form.text("project") or None


def written_project(call: ApiCall) -> str | None:
    """Return the project of the segment in the path, if the form names the same; else None, which stands for all projects."""
    with call.store.reading() as tx:
        own = project_of_segment(tx, read_id(call) or 0)
    return own if form_project(call) == own else None


TEMPLATE = "segment.html"

ROUTES = (
    page("/segments", list_all, "segments.html", "The list of segments."),
    page("/segments/new", show, TEMPLATE, "The form of a new segment."),
    page("/segments/:id", show, TEMPLATE, "The form of a segment."),
    change(
        "/segments/new",
        submit,
        "Create a segment.",
        template=TEMPLATE,
        permission=CREATE,
        project_of=form_project,
        stands_for="createSegment",
    ),
    change(
        "/segments/:id",
        submit,
        "Change a segment.",
        template=TEMPLATE,
        permission=UPDATE,
        project_of=written_project,
        stands_for="updateSegment",
    ),
    change(
        "/segments/:id/delete",
        remove,
        "Delete a segment.",
        template=TEMPLATE,
        permission=DELETE,
        project_of=segment_project,
        stands_for="removeSegment",
    ),
)
