"""Tag types: the list, and the form of one; deleting one with its tags."""

from __future__ import annotations

from functools import partial

from flagsvc.pages.forms import Form
from flagsvc.server.pages.edits import differences, digest_of
from flagsvc.server.pages.resource import Resource, Seen
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import tag_types
from flagsvc.server.store.store import Tx

PARTS = {"description": "Description", "icon": "Icon", "color": "Color"}
NEW_FORM = {"name": "", "description": "", "icon": "", "color": ""}
FIRST_COLOR = "#1d4ed8"
"""The color that the form offers where a type has none."""


def rows(tx: Tx) -> list[Json]:
    """Return every tag type with its number of tags."""
    return [each | {"tags": len(tag_types.tags_of(tx, each["name"]))} for each in tag_types.list_types(tx)]


def read(form: Form) -> Json:
    """Return what was typed. The color counts where its box is ticked."""
    color = form.text("color") if form.has("colored") else ""
    return {name: form.text(name) for name in NEW_FORM} | {"color": color}


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a stored tag type."""
    return {name: stored[name] or "" for name in NEW_FORM}


def body_of(shown: Json, stored: Json | None) -> Json:
    """Return what the form changes, as the admin API takes it. The API has no way to take a color away."""
    before = NEW_FORM if stored is None else shown_of(stored)
    named = {"name": shown["name"]} if stored is None else {}
    return named | {name: shown[name] for name in PARTS if shown[name] != before[name] and (shown[name] or name != "color")}


def whole(tx: Tx, stored: Json) -> list[object]:
    return [stored, tag_types.tags_of(tx, stored["name"])]


def more(seen: Seen) -> Json:
    """Return the tags of the type, the flags that have them, and its color."""
    tags = [] if seen.stored is None else tag_types.tags_of(seen.tx, seen.key)
    flags = {flag for each in tags for flag in each["features"]}
    more = {"tags": tags, "flags": len(flags), "whole_base": digest_of([seen.stored, tags])}
    return more | {"color": seen.own["color"], "first_color": FIRST_COLOR}


ROUTES = Resource(
    name="tag type",
    plural="tag types",
    members=("type", "types"),
    operations=("createTagType", "updateTagType", "deleteTagType"),
    rows=rows,
    find=tag_types.find,
    create=tag_types.create,
    change=tag_types.change,
    remove=tag_types.remove,
    new_form=NEW_FORM,
    shown_of=shown_of,
    read=read,
    body_of=body_of,
    compare=partial(differences, PARTS),
    more=more,
    whole=whole,
    thing="tag type with its tags",
    sentence="It was not deleted: someone changed this tag type or its tags meanwhile. This is what it is now.",
).routes()
