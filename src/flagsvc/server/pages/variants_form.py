"""The variants of a form, for flags and strategies: read from a form, shown in one, changed by its buttons, and previewed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from flagsvc.core.direction import isolate
from flagsvc.engine.model import VariantSpec
from flagsvc.engine.parse import parse_variants
from flagsvc.engine.values import jsnumber
from flagsvc.pages.forms import MAX_FIELDS, Form, read_values, show_values
from flagsvc.reasons.impact import Draw, range_words, variant_impact
from flagsvc.reasons.words import DEFAULT
from flagsvc.server.pages.edits import Rows
from flagsvc.server.pages.problems import Problem, problems_of
from flagsvc.server.shapes.strategies import PAYLOAD_TYPES
from flagsvc.server.store.checks import FIXED, TOTAL_WEIGHT, VARIABLE, Json, is_json_container, prepare_variants
from flagsvc.server.store.errors import CallerError

STICKINESS: Final = ("default", "userId", "sessionId", "random")
"""What users can stick to besides context fields that say so."""
STICKS_TO: Final = "variantStickiness"
ROWS: Final = Rows(
    "variant",
    MAX_FIELDS // 4,
    {"name": "", "fixed": False, "share": "", "type": "", "payload": "", "overrides": []},
)
"""A variant has four fields at least. Those of the variant 0 are `v0.name`, `v0.share`, …"""
TENTHS: Final = 10
"""Parts of a percent that a weight counts."""
BAD_SHARE: Final = "A share is a number from 0 to 100 with one decimal at most."
ALL_FIXED: Final = "One variant at least has no fixed share: it gets what the others leave."
TOO_MUCH: Final = "The fixed shares are more than 100 % together."
NO_JSON: Final = "The value is no JSON object or list."
NO_TYPE: Final = "A value needs a type. Choose a type, or empty the value."
FIRST_ONES: Final = "No user had a variant. Every user who gets the flag gets one now."
NO_MORE: Final = "No user gets a variant any more."
KEPT: Final = "Every user keeps the variant."


class Variants(NamedTuple):
    """Variants as the admin API has them, the group of their draw, and the field that it sticks to."""

    given: Sequence[Json]
    group: str
    sticks_to: str


def rows_of(variants: Iterable[Json]) -> list[Json]:
    """Return what the form shows of stored variants."""
    return [
        {
            "name": each["name"],
            "fixed": each.get("weightType") == FIXED,
            "share": jsnumber.to_text(each["weight"] / TENTHS),
            "type": (each.get("payload") or {}).get("type", ""),
            "payload": (each.get("payload") or {}).get("value", ""),
            "overrides": [
                {"field": one["contextName"], "text": show_values(one.get("values") or [])} for one in each.get("overrides") or []
            ],
        }
        for each in variants
    ]


def sticks_to(variants: Sequence[Json], otherwise: str = DEFAULT) -> str:
    """Return the field that decides who gets which variant: the field of the first variant, or `otherwise` if there is none."""
    return (variants[0].get("stickiness") if variants else "") or otherwise


def read_rows(form: Form) -> list[Json]:
    return [read_row(form, f"v{at}.") for at in ROWS.places(form)]


def read_row(form: Form, prefix: str) -> Json:
    """Return one variant of a form. Its payload keeps its blanks."""
    fields, texts = form.trimmed(f"{prefix}override"), form.texts(f"{prefix}values")
    return {
        "name": form.text(f"{prefix}name"),
        "fixed": form.has(f"{prefix}fixed"),
        "share": form.text(f"{prefix}share"),
        "type": form.text(f"{prefix}type"),
        "payload": "".join(form.texts(f"{prefix}payload")[:1]),
        "overrides": [
            {"field": field, "text": text} for field, text in zip(fields, texts, strict=False) if field.strip() or text.strip()
        ],
    }


def weight_of(row: Json) -> int | None:
    """Return the weight of a variant in thousandths; None for a share that is none."""
    try:
        weight = Decimal(row["share"] or "0") * TENTHS
    except ArithmeticError:
        return None
    fine = weight.is_finite() and 0 <= weight <= 100 * TENTHS and weight == weight.to_integral_value()
    return int(weight) if fine else None


def problems_of_rows(rows: Sequence[Json]) -> list[Problem]:
    """Return what is wrong with fixed shares and payloads. The weights of the other variants are computed."""
    found = []
    fixed = [at for at, each in enumerate(rows) if each["fixed"]]
    for at, each in enumerate(rows):
        found += [Problem(BAD_SHARE, f"v{at}.share")] * (each["fixed"] and weight_of(each) is None)
        found += [Problem(NO_TYPE, f"v{at}.type")] * bool(each["payload"] and not each["type"])
        json = each["type"] == "json" and each["payload"]
        found += [Problem(NO_JSON, f"v{at}.payload")] * bool(json and not is_json_container(each["payload"]))
    if fixed and len(fixed) == len(rows):
        found.append(Problem(ALL_FIXED, "v0.fixed"))
    if sum(weight_of(rows[at]) or 0 for at in fixed) > TOTAL_WEIGHT:
        found.append(Problem(TOO_MUCH, f"v{fixed[-1]}.share"))
    return found


def variants_of(rows: Iterable[Json], stickiness: str, stored: Sequence[Json] = ()) -> list[Json]:
    """Return variants as the admin API takes them. A stored variant without a stickiness stays so."""
    silent = {each["name"] for each in stored if "stickiness" not in each} if stickiness == DEFAULT else set()
    found = []
    for row in rows:
        each: Json = {"name": row["name"], "weightType": FIXED if row["fixed"] else VARIABLE}
        each["weight"] = (weight_of(row) or 0) if row["fixed"] else 0
        each |= {} if row["name"] in silent else {"stickiness": stickiness}
        each |= {"payload": {"type": row["type"], "value": row["payload"]}} if row["type"] else {}
        overrides = [{"contextName": one["field"], "values": read_values(one["text"])} for one in row["overrides"]]
        found.append(each | ({"overrides": overrides} if overrides else {}))
    return found


def told(rows: Sequence[Json], stickiness: str) -> str:
    """Return the variants of a form in one line, to compare two forms."""
    parts = [
        " ".join(
            [
                isolate(each["name"]),
                f"{each['share'] or '0'} %" if each["fixed"] else "the rest",
                *([f"{each['type']} {isolate(each['payload'])}"] if each["type"] else []),
                *(f"for {isolate(one['field'])} {', '.join(map(isolate, read_values(one['text'])))}" for one in each["overrides"]),
            ]
        )
        for each in rows
    ]
    return "; ".join(parts) + (f"; by {isolate(stickiness)}" if parts else "")


def preview(before: Variants, wanted: Variants) -> Json:
    """Return the ranges of variants in words, and what changes; or why the admin API refuses them."""
    try:
        stored = prepare_variants([dict(each) for each in wanted.given])
    except CallerError as error:
        return {
            "ranges": [],
            "sentences": [],
            "again": False,
            "problems": [str(each) for each in problems_of(error)[1]],
        }
    old, new = (Draw(read_specs(each.given), *each[1:]) for each in (before, wanted._replace(given=stored)))
    found = variant_impact(old, new)
    if not old.total or not new.total:
        sentences = [FIRST_ONES] if new.total else [NO_MORE] if old.total else []
    else:
        sentences = found.words() or [KEPT]
    return {"ranges": range_words(new), "sentences": sentences, "again": found.again, "problems": []}


def read_specs(variants: Sequence[Json]) -> list[VariantSpec]:
    return parse_variants({"variants": list(variants)}, "variants")


def sticky_names(fields: Iterable[Mapping[str, object]], own: str) -> list[str]:
    """Return what users can stick to: of every context, and fields that are marked so. `own`, the chosen one, is among them."""
    marked = [str(each["name"]) for each in fields if each["stickiness"]]
    return list(dict.fromkeys([*STICKINESS, *marked, *([own] if own else [])]))


def offered(fields: Iterable[Mapping[str, object]], own: str) -> Json:
    """Return what the form of variants offers: fields to stick to, and types of payloads."""
    return {"variant_stickiness": sticky_names(fields, own), "payload_types": PAYLOAD_TYPES}
