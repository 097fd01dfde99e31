"""The conditions of a form, for strategies and segments: read from a form, shown in one, changed by its buttons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from flagsvc.core.direction import isolate
from flagsvc.engine.context import FIELDS, Context
from flagsvc.engine.operators import (
    DATE,
    LISTS,
    NETWORKS,
    NUMBER,
    OPERATORS,
    PATTERN,
    TEXTS,
    VERSION,
    compile_constraint,
)
from flagsvc.engine.parse import parse_segment
from flagsvc.engine.predicates import FieldPredicate
from flagsvc.engine.run import Memory, Run
from flagsvc.http.shapes import ShapeError
from flagsvc.pages.forms import Form, read_values, show_values
from flagsvc.server.pages.edits import SAVE, Rows, checked
from flagsvc.server.pages.problems import Problem, problems_of, under
from flagsvc.server.shapes.strategies import CONSTRAINT
from flagsvc.server.store.checks import Json
from flagsvc.server.store.constraints import MAX_VALUES, check_constraint, find_long
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources import context_fields
from flagsvc.server.store.resources.segments import MAX_VALUES as MOST_OF_SEGMENT
from flagsvc.server.store.resources.strategies import read_legal_values
from flagsvc.server.store.store import Tx
from flagsvc.settings.kinds import nearest_name

MOST_BOXES: Final = 500
"""The most legal values of a field for which a condition has boxes: each condition of a form shows all of them."""
FIRST: Final = "IN"
CONDITIONS: Final = Rows(
    "condition", 200, {"field": "", "operator": FIRST, "text": "", "inverted": False, "insensitive": False}, "field"
)
"""The store accepts fewer. The fields of the condition 0 are `c0.field`, `c0.operator`, …"""
Counted: TypeAlias = Sequence[Json]
"""Constraints whose values are counted."""
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
ALWAYS_THERE: Final = ("appName", "environment", "currentTime")
"""The fields that SDKs or servers fill themselves."""
WARNED: Final = "warned"
"""The name of the hidden fields with the unknown context fields of which the page has warned."""
NEAR: Final = "There is no context field `{}`. Do you mean `{}`? Save again to keep it as it is."
NO_LEGAL_VALUE: Final = "`{}` {} of the field `{}`. It has legal values: take these only."
TOO_MANY: Final = f"These are {{}} values, and a condition takes {MAX_VALUES}. {{}} segment takes {MOST_OF_SEGMENT}."
TO_SEGMENT: Final = "Create a segment of them: a"
TOO_MANY_OF_SEGMENT: Final = f"The conditions have {{}} values together, and a segment takes {MOST_OF_SEGMENT}."


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


def shown_conditions(tx: Tx, rows: Sequence[Json]) -> list[Json]:
    """Return conditions as the form shows them: with legal values, and with what is told of their fields."""
    return show_rows(rows, legal_values(tx, rows), field_names(tx))


def show_rows(rows: Sequence[Json], legal: Mapping[str, Mapping[str, None]], fields: Sequence[str]) -> list[Json]:
    """Return conditions with the legal values of their fields: those are boxes to tick, and the others stay in the text.

    A field with more than MOST_BOXES legal values has no boxes. A field that is none of `fields` is unknown, and `near` is the
    name that may be meant. `count` is the number of values.
    """
    shown = []
    for row in rows:
        known = legal.get(row["field"], {})
        offered = {each: None for each in known if "\r" not in each} if len(known) <= MOST_BOXES else {}
        boxes: list[Json] = []
        text = row["text"]
        count = len(read_values(text)) if has_list(row["operator"]) else 1
        unknown = bool(row["field"]) and row["field"] not in fields
        guards = {"count": count, "unknown": unknown, "near": nearest_name(row["field"], fields) if unknown else ""}
        if offered and has_list(row["operator"]):
            given = dict.fromkeys(read_values(text))
            boxes = [{"value": each, "ticked": each in given} for each in offered]
            text = show_values([each for each in given if each not in offered])
        offers = {"boxes": boxes, "offered": list(offered), "list": has_list(row["operator"])}
        shown.append(row | {"text": text} | offers | guards)
    return shown


def problems_of_rows(
    tx: Tx,
    form: Form,
    rows: Sequence[Json],
    before: Sequence[Json],
    too_many: Callable[[Counted, Counted], list[Problem]],
) -> list[str]:
    """Return what is wrong with the conditions of a form, each by itself, given the constraints `before`.

    `too_many` returns what is wrong with the number of values. An unknown field that is like a known one is not saved until the
    page has warned of it, unless one of `before` has it.
    """
    legal, constraints = legal_values(tx, rows), constraints_of(rows)
    known = field_names(tx)
    kept = {*known, *(each["contextName"] for each in before), *form.texts(WARNED)}
    saves = form.text("do") == SAVE
    found: list[str] = []
    for at, each in enumerate(constraints):
        name = each["contextName"]
        near = nearest_name(name, known) if saves and name not in kept else ""
        warning = [Problem(NEAR.format(name, near), "field")] if near else []
        found += under(f"c{at}.", [*problems_of_constraint(each, legal), *warning])
    return found + too_many(constraints, before)


def problems_of_constraint(constraint: Json, legal: Mapping[str, Mapping[str, None]]) -> list[Problem]:
    """Return what is wrong with a constraint but for the number of its values."""
    name, allowed = constraint["contextName"], legal.get(constraint["contextName"], {})
    values = constraint["values"] or [each for each in (constraint.get("value"),) if each]
    wrong = [each for each in values if allowed and each not in allowed]
    try:
        if not wrong:
            check_constraint(checked(CONSTRAINT, constraint), legal)
    except (CallerError, ShapeError) as error:
        return problems_of(error)[1]
    words = "is no legal value" if len(wrong) == 1 else f"and {len(wrong) - 1} more are no legal values"
    return [Problem(NO_LEGAL_VALUE.format(wrong[0], words, name), "values")] if wrong else []


def too_many_of_strategy(constraints: Counted, before: Counted) -> list[Problem]:
    """Return the conditions of a strategy that have too many values, unless they had them before."""
    counts = {at: len(constraints[at]["values"]) for at in find_long(constraints, before)}
    return [
        Problem(TOO_MANY.format(count, TO_SEGMENT if count <= MOST_OF_SEGMENT else "A"), f"c{at}.values")
        for at, count in counts.items()
    ]


def too_many_of_segment(constraints: Counted, _before: Counted) -> list[Problem]:
    """Return the largest condition of a segment if all have too many values together."""
    counts = [len(each["values"]) for each in constraints]
    if sum(counts) <= MOST_OF_SEGMENT:
        return []
    return [Problem(TOO_MANY_OF_SEGMENT.format(sum(counts)), f"c{counts.index(max(counts))}.values")]


def words_without(constraints: Iterable[Json]) -> list[str]:
    """Return which users fit although an application sends no such field, a sentence for each field that it has to send."""
    nobody = Run(Context(), Memory(0, 0, utf8=False))
    fits: dict[str, bool] = {}
    for spec in parse_segment({"id": 0, "name": "", "constraints": list(constraints)}, "segment").constraints:
        test = compile_constraint(spec)
        if isinstance(test, FieldPredicate) and test.name and test.name not in ALWAYS_THERE:
            fits[test.name] = fits.get(test.name, True) and test.test(nobody)
    return [f"Users without `{isolate(name)}` {'fit' if each else 'do not fit'}." for name, each in fits.items()]


def legal_values(tx: Tx, rows: Iterable[Json]) -> dict[str, dict[str, None]]:
    return read_legal_values(tx, [each["field"] for each in rows])


def condition_choices(tx: Tx) -> Json:
    """Return what a form of conditions offers: the operators by kind, and the fields."""
    kinds = [
        {
            "title": title,
            "operators": [{"value": name, "text": row.words.many} for name, row in OPERATORS.items() if row.takes == takes],
        }
        for takes, title in KINDS.items()
    ]
    return {"operators": kinds, "fields": field_names(tx), "most_values": MAX_VALUES, "may_segment": False}


def field_names(tx: Tx) -> list[str]:
    """Return the names of the known context fields: the stored fields, and the fields of every context."""
    own = [each["name"] for each in context_fields.list_choices(tx)]
    return list(dict.fromkeys([*own, *STANDARD_FIELDS]))
