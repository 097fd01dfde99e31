"""Strategy types: the list, the form of a custom one with its parameters, deprecating one, and deleting one."""

from __future__ import annotations

from flagsvc.core.direction import isolate
from flagsvc.pages.forms import Form
from flagsvc.server.api.admin.strategy_types import TYPES
from flagsvc.server.pages.edits import Rows, differences, digest_of
from flagsvc.server.pages.resource import NOT_DONE, Resource, Seen
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import strategy_types

TEXTS = ("title", "description")
PARTS = {"title": "Title", "description": "Description", "words": "Parameters"}
NEW_FORM: Json = {"name": "", "title": "", "description": "", "parameters": []}
EMPTY: Json = {"name": "", "type": TYPES[0], "description": "", "required": False}
PARAMETERS = Rows("parameter", 100, EMPTY)


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a stored strategy type."""
    parameters = [EMPTY | {key: each[key] for key in EMPTY if key in each} for each in stored["parameters"]]
    return {"name": stored["name"], **{key: stored[key] or "" for key in TEXTS}, "parameters": parameters}


def read(form: Form) -> Json:
    parameters = [read_parameter(form, f"p{at}.") for at in PARAMETERS.places(form)]
    return {**{key: form.text(key) for key in ("name", *TEXTS)}, "parameters": parameters}


def read_parameter(form: Form, prefix: str) -> Json:
    texts = {key: form.text(f"{prefix}{key}") for key in ("name", "type", "description")}
    return texts | {"required": form.has(f"{prefix}required")}


def body_of(shown: Json, stored: Json | None) -> Json:
    """Return what the form stands for, as the admin API takes it. A text that there never was stays absent."""
    before: Json = {"name": "", "parameters": []} if stored is None else stored
    kept = {key: shown[key] for key in TEXTS if shown[key] or before.get(key) is not None}
    old = {each["name"]: each for each in reversed(before["parameters"])}
    parameters = [parameter_of(each, old.get(each["name"], {})) for each in shown["parameters"]]
    return kept | {"parameters": parameters} | ({"name": shown["name"]} if stored is None else {})


def parameter_of(row: Json, stored: Json) -> Json:
    """Return a parameter as the admin API takes it. A member that it never had and that says nothing stays absent."""
    return {key: each for key, each in row.items() if each or key in stored or key in ("name", "type")}


def told(shown: Json) -> Json:
    """Return a form with its parameters in words."""
    words = [
        f"{isolate(each['name'])} ({each['type']}{', required' if each['required'] else ''}) {isolate(each['description'])}".strip()
        for each in shown["parameters"]
    ]
    return {**shown, "words": "; ".join(words)}


def more(seen: Seen) -> Json:
    """Return what uses the strategy type, and what may be done with it."""
    return {
        "kinds": TYPES,
        "editable": seen.stored is None or seen.stored["editable"],
        "deprecated": seen.stored is not None and seen.stored["deprecated"],
        "uses": [] if seen.stored is None else strategy_types.strategies_using(seen.tx, seen.key),
        "stored_base": digest_of(seen.stored),
    }


STRATEGY_TYPE = Resource(
    name="strategy type",
    plural="strategy types",
    members=("type", "types"),
    operations=("createStrategy", "updateStrategy", "removeStrategy"),
    rows=strategy_types.list_types,
    find=strategy_types.find,
    create=strategy_types.create,
    change=strategy_types.change,
    remove=strategy_types.remove,
    new_form=NEW_FORM,
    shown_of=shown_of,
    read=read,
    body_of=body_of,
    compare=lambda theirs, mine: differences(PARTS, told(theirs), told(mine)),
    more=more,
    rows_of=lambda typed: [(PARAMETERS, typed["parameters"])],
    sentence=NOT_DONE,
)

OWN, unchanged = STRATEGY_TYPE.own, STRATEGY_TYPE.unchanged

ROUTES = (
    *STRATEGY_TYPE.routes(),
    STRATEGY_TYPE.form(f"{OWN}/deprecate", unchanged(strategy_types.deprecate, stays=True), "deprecateStrategy"),
    STRATEGY_TYPE.form(f"{OWN}/reactivate", unchanged(strategy_types.reactivate, stays=True), "reactivateStrategy"),
)
