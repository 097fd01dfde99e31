"""Context fields: the list, and the form of one with its legal values; deleting one that no strategy constrains."""

from __future__ import annotations

from flagsvc.core.direction import isolate
from flagsvc.pages.forms import Form, read_values
from flagsvc.server.pages.edits import Rows, differences
from flagsvc.server.pages.flags import project_choices
from flagsvc.server.pages.resource import MAKE, Resource, Seen, makes_in, may_any
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import context_fields, segments
from flagsvc.server.store.store import Tx

TEXTS = ("name", "description", "project")
PARTS = {
    "description": "Description",
    "project": "Project",
    "stickiness": "Rollouts may stick to it",
    "words": "Legal values",
}
"""Part of a form → what people call it."""
NEW_FORM: Json = {"name": "", "description": "", "project": "", "stickiness": False, "values": []}
VALUES = Rows("value", 0, {})
"""New values come from the box for several."""


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a stored context field."""
    texts = {name: stored.get(name) or "" for name in TEXTS}
    values = [{"value": each["value"], "description": each.get("description", "")} for each in stored["legalValues"]]
    return texts | {"stickiness": stored["stickiness"], "values": values}


def read(form: Form) -> Json:
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
    body |= {"project": shown["project"]} if shown["project"] else {}
    return body | ({"name": shown["name"]} if stored is None else {})


def change(tx: Tx, name: str, body: Json) -> None:
    """Change a context field, unless nothing is different: a change takes its place in the list."""
    stored = context_fields.find(tx, name)
    if body != body_of(shown_of(stored), stored):
        context_fields.change(tx, name, body)


def told(shown: Json) -> Json:
    """Return a form with words for what is no text."""
    words = "; ".join(
        ": ".join([isolate(each[part]) for part in ("value", "description") if each[part]]) for each in shown["values"]
    )
    return {**shown, "stickiness": "yes" if shown["stickiness"] else "no", "words": words}


def more(seen: Seen) -> Json:
    """Return what uses the field, and the projects to which it may belong."""
    call, tx, stored = seen.call, seen.tx, seen.stored
    needed, owner = CONTEXT_FIELD.needs(MAKE), (stored or {}).get("project") or ""
    return {
        "projects": makes_in(call, tx, needed) if stored is None else project_choices(tx),
        "owner": owner,
        "for_all": not owner and (stored is not None or may_any(call, needed, None)),
        "uses": [] if stored is None else context_fields.strategies_using(tx, seen.key),
        "segments": [] if stored is None else segments_using(tx, seen.key),
    }


def segments_using(tx: Tx, name: str) -> list[Json]:
    """Return the segments that constrain a context field: id and name."""
    return [
        {"id": each["id"], "name": each["name"]}
        for each in segments.list_segments(tx)
        if any(one["contextName"] == name for one in each["constraints"])
    ]


CONTEXT_FIELD = Resource(
    name="context field",
    plural="context fields",
    key="contextField",
    members=("field", "fields"),
    operations=("createContextField", "updateContextField", "deleteContextField"),
    rows=context_fields.list_fields,
    find=context_fields.find,
    create=context_fields.create,
    change=change,
    remove=context_fields.remove,
    new_form=NEW_FORM,
    shown_of=shown_of,
    read=read,
    body_of=body_of,
    compare=lambda theirs, mine: differences(PARTS, told(theirs), told(mine)),
    more=more,
    rows_of=lambda typed: [(VALUES, typed["values"])],
)

ROUTES = CONTEXT_FIELD.routes()
