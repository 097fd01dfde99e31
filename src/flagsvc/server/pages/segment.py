"""Segments: the list, the form with the conditions, what uses a segment, and deleting."""

from __future__ import annotations

from flagsvc.engine.parse import parse_segment
from flagsvc.pages.forms import Form, read_whole
from flagsvc.reasons.words import EVERYONE, constraint_words
from flagsvc.server.api.admin.segments import read_id
from flagsvc.server.pages.conditions import (
    CONDITIONS,
    condition_choices,
    constraints_of,
    problems_of_rows,
    read_rows,
    rows_of,
    shown_conditions,
    too_many_of_segment,
    words_without,
)
from flagsvc.server.pages.edits import differences, digest_of
from flagsvc.server.pages.flags import project_choices
from flagsvc.server.pages.resource import MAKE, Resource, Seen, makes_in, may_any
from flagsvc.server.pages.strategy_preview import conditions_of, tell_apart
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources import segments
from flagsvc.server.store.store import Tx

TEXTS = ("name", "description", "project", "base")
PARTS = {"name": "Name", "description": "Description", "project": "Project", "words": "Conditions"}
OF_CONDITION = "segment-of"
"""The button of a condition that makes a segment of it: `segment-of:2`."""
IN_USE = "It was not deleted: strategies use it. Take it out of them first."


def rows(tx: Tx) -> list[Json]:
    """Return every segment in words, with the number of flags that use it."""
    return [each | {"words": words_of(each["constraints"])} for each in segments.list_segments(tx)]


def words_of(constraints: list[Json]) -> str:
    spec = parse_segment({"id": 0, "name": "", "constraints": constraints}, "segment")
    return " and ".join([constraint_words(each) for each in spec.constraints]) or EVERYONE


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a stored segment."""
    texts = {name: stored.get(name) or "" for name in TEXTS}
    return texts | {"conditions": rows_of(stored["constraints"]), "base": digest_of(stored)}


def read(form: Form) -> Json:
    """Return what was typed; of another form whose button makes a segment of a condition, this condition."""
    rows = read_rows(form)
    action, _, place = form.text("do").partition(":")
    if action != OF_CONDITION:
        return {name: form.text(name) for name in TEXTS} | {"conditions": rows}
    at = read_whole(place) or 0
    return dict.fromkeys(TEXTS, "") | {"project": form.text("project"), "conditions": rows[at : at + 1]}


def find_problems(tx: Tx, form: Form, typed: Json, stored: Json | None) -> list[str]:
    """Return what is wrong with the conditions, before they are saved."""
    before = [] if stored is None else stored["constraints"]
    return problems_of_rows(tx, form, typed["conditions"], before, too_many_of_segment)


def body_of(shown: Json, _stored: Json | None) -> Json:
    """Return what the form stands for, as the admin API takes it."""
    body = {"name": shown["name"], "constraints": constraints_of(shown["conditions"])}
    body |= {"description": shown["description"]}
    return body | ({"project": shown["project"]} if shown["project"] else {})


def remove(tx: Tx, number: int) -> None:
    """Delete a segment. Raises CallerError (404, and 409 where strategies use it)."""
    if not segments.remove(tx, number):
        raise CallerError("ConflictError", IN_USE)


def compare(theirs: Json, mine: Json) -> list[Json]:
    """Return the parts in which two forms differ, with their conditions in words."""
    old, new = (conditions_of({**each, "segments": []}) for each in (theirs, mine))
    words = tell_apart(old, new, {})
    return differences(PARTS, {**theirs, "words": words[0]}, {**mine, "words": words[1]})


def more(seen: Seen) -> Json:
    """Return what the form offers, what uses the segment, and with a preview who is in it."""
    call, tx, stored, conditions = seen.call, seen.tx, seen.stored, seen.form["conditions"]
    needed, shows = SEGMENT.needs(MAKE), seen.look.preview and not seen.look.problems
    offered = makes_in(call, tx, needed) if stored is None else project_choices(tx)
    return {
        "form": seen.form | {"conditions": shown_conditions(tx, conditions)},
        "choices": condition_choices(tx) | {"projects": offered, "most_values": segments.MAX_VALUES},
        "uses": [] if stored is None else segments.strategies_using(tx, seen.key),
        "words": words_of(constraints_of(conditions)) if shows else "",
        "without": words_without(constraints_of(conditions)) if shows else [],
        "before": words_of(stored["constraints"]) if shows and stored is not None else "",
        "for_all": stored is not None or may_any(call, needed, None),
        **({"base": seen.form["base"]} if stored is None else {}),
    }


SEGMENT = Resource(
    name="segment",
    plural="segments",
    key="id",
    read_key=read_id,
    members=("segment", "segments"),
    operations=("createSegment", "updateSegment", "removeSegment"),
    rows=rows,
    find=segments.find,
    create=segments.create,
    change=segments.change,
    remove=remove,
    new_form=dict.fromkeys(TEXTS, "") | {"conditions": []},
    shown_of=shown_of,
    read=read,
    body_of=body_of,
    compare=compare,
    more=more,
    rows_of=lambda typed: [(CONDITIONS, typed["conditions"])],
    problems=find_problems,
    new="/segments/new",
    lacks=("delete_permission",),
    list_lacks=("permission",),
)

ROUTES = SEGMENT.routes()
