"""The conditions of a form, for strategies and segments: read from a form, shown in one, changed by its buttons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from flagsvc.engine.context import FIELDS
from flagsvc.engine.operators import DATE, LISTS, NETWORKS, NUMBER, OPERATORS, PATTERN, TEXTS, VERSION
from flagsvc.pages.forms import Form, read_values, show_values
from flagsvc.server.pages.edits import Rows
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import context_fields
from flagsvc.server.store.resources.strategies import read_legal_values
from flagsvc.server.store.store import Tx

MOST_BOXES: Final = 500
"""The most legal values of a field for which a condition has boxes: each condition of a form shows all of them."""
FIRST: Final = "IN"
CONDITIONS: Final = Rows(
    "condition", 200, {"field": "", "operator": FIRST, "text": "", "inverted": False, "insensitive": False}
)
"""The store accepts fewer. The fields of the condition 0 are `c0.field`, `c0.operator`, …"""
KINDS: Final = {
    TEXTS: "texts",
    NUMBER: "a number",
    DATE: "the time",
    VERSION: "a version",
    PATTERN: "a pattern",
    NETWORKS: "networks",
}
"""Kind of an operator's values → how the form calls its operators."""
STANDARD_FIELDS: Final = tuple(name for name in FIELDS if name != "properties")


def rows_of(constraints: Iterable[Json]) -> list[Json]:
    """Return what the form shows of constraints."""
    return [
        {
            "field": each["contextName"],
            "operator": each["operator"],
            "text": show_values(each.get("values") or []) if has_list(each["operator"]) else each.get("value") or "",
            "inverted": bool(each.get("inverted")),
            "insensitive": bool(each.get("caseInsensitive")),
        }
        for each in constraints
    ]


def read_rows(form: Form) -> list[Json]:
    """Return the conditions of a form. Ticked legal values join those that were typed."""
    return [read_row(form, f"c{at}.") for at in CONDITIONS.places(form)]


def read_row(form: Form, prefix: str) -> Json:
    operator = form.text(f"{prefix}operator") or FIRST
    text = "".join(form.texts(f"{prefix}values")[:1])
    if has_list(operator):
        text = show_values(list(dict.fromkeys([*form.texts(f"{prefix}legal"), *read_values(text)])))
    elif form.unchanged(f"{prefix}values") is None:  # a typed pattern keeps its blanks
        text = text.rstrip("\n") if operator == "REGEX" else text.strip()
    return {
        "field": form.text(f"{prefix}field"),
        "operator": operator,
        "text": text,
        "inverted": form.has(f"{prefix}inverted"),
        "insensitive": form.has(f"{prefix}insensitive"),
    }


def constraints_of(rows: Iterable[Json]) -> list[Json]:
    """Return conditions as the admin API takes them."""
    return [constraint_of(each) for each in rows]


def constraint_of(row: Json) -> Json:
    """Return one condition as the admin API takes it."""
    found: Json = {"contextName": row["field"], "operator": row["operator"]}
    found |= {"inverted": row["inverted"], "caseInsensitive": row["insensitive"]}
    if has_list(row["operator"]):
        return found | {"values": read_values(row["text"])}
    return found | {"values": [], "value": row["text"]}


def has_list(operator: str) -> bool:
    """Return whether an operator compares with several values."""
    known = OPERATORS.get(operator)
    return known is None or known.takes in LISTS


def show_rows(rows: Sequence[Json], legal: Mapping[str, Mapping[str, None]]) -> list[Json]:
    """Return conditions with the legal values of their fields: those are boxes to tick, and the others stay in the text.

    A field with more than MOST_BOXES legal values has no boxes.
    """
    shown = []
    for row in rows:
        known = legal.get(row["field"], {})
        offered = {each: None for each in known if "\r" not in each} if len(known) <= MOST_BOXES else {}
        boxes: list[Json] = []
        text = row["text"]
        if offered and has_list(row["operator"]):
            given = dict.fromkeys(read_values(text))
            boxes = [{"value": each, "ticked": each in given} for each in offered]
            text = show_values([each for each in given if each not in offered])
        shown.append(row | {"text": text, "boxes": boxes, "offered": list(offered), "list": has_list(row["operator"])})
    return shown


def legal_values(tx: Tx, rows: Iterable[Json]) -> dict[str, dict[str, None]]:
    return read_legal_values(tx, [each["field"] for each in rows])


def condition_choices(tx: Tx) -> Json:
    """Return what a form of conditions offers: the operators by kind, and the fields."""
    kinds = [
        {
            "title": title,
            "operators": [
                {"value": name, "text": row.words.many} for name, row in OPERATORS.items() if row.takes == takes
            ],
        }
        for takes, title in KINDS.items()
    ]
    own = [each["name"] for each in context_fields.list_choices(tx)]
    return {"operators": kinds, "fields": list(dict.fromkeys([*own, *STANDARD_FIELDS]))}
