"""The form of a strategy: what it shows of a stored one, how it is read, and the strategy that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flagsvc.engine.model import SegmentSpec, StrategySpec
from flagsvc.engine.parse import parse_strategy
from flagsvc.pages.forms import Form, read_whole
from flagsvc.reasons.impact import Impact, impact_of
from flagsvc.reasons.words import DEFAULT
from flagsvc.server.pages import variants_form
from flagsvc.server.pages.conditions import constraints_of, read_rows, rows_of
from flagsvc.server.pages.edits import digest_of
from flagsvc.server.pages.problems import Problem
from flagsvc.server.pages.variants_form import Variants
from flagsvc.server.store.checks import FLEXIBLE_ROLLOUT, Json

ROLLOUT_FIELDS: Final = {"rollout": "rollout", "stickiness": "stickiness", "group": "groupId"}
"""Field of the form → parameter of a flexible rollout."""
PARAMETER: Final = "p."
"""What the fields of other parameters begin with."""
FULL: Final = 100
WHOLE: Final = Problem(f"A rollout is a whole number from 0 to {FULL}.", "rollout")
NO_GROUP: Final = "undefined"
"""The group of the variants of a strategy whose parameters have none, as SDKs have it."""
PLACE: Final = ("id", "sortOrder", "milestoneId")
"""What of a strategy is its place, and not its content."""


def content_of(strategy: Json) -> Json:
    """Return the content of a stored strategy, without its place."""
    return {name: value for name, value in strategy.items() if name not in PLACE}


def shown_of(strategy: Json) -> Json:
    """Return what the form shows of a stored strategy."""
    given = {name: str(value) for name, value in strategy["parameters"].items() if value is not None}
    own = ROLLOUT_FIELDS.items() if strategy["name"] == FLEXIBLE_ROLLOUT else ()
    rest = given.keys() - {parameter for _, parameter in own}
    return {
        "name": strategy["name"],
        "title": strategy["title"] or "",
        "disabled": bool(strategy["disabled"]),
        **dict.fromkeys(ROLLOUT_FIELDS, ""),
        **{field: given.get(parameter, "") for field, parameter in own},
        "parameters": {name: given[name] for name in given if name in rest},
        "conditions": rows_of(strategy["constraints"]),
        "segments": [str(each) for each in strategy["segments"]],
        "variants": variants_form.rows_of(strategy["variants"]),
        variants_form.STICKS_TO: drawn_variants(strategy).sticks_to,
        "base": digest_of(content_of(strategy)),
    }


def empty_form(name: str, flag: str) -> Json:
    rollout = {"rollout": str(FULL), "stickiness": "default", "group": flag}
    parts: Json = {"name": name, "title": "", "disabled": False, **rollout, "parameters": {}}
    parts |= {"variants": [], variants_form.STICKS_TO: "default"}
    return parts | {"conditions": [], "segments": [], "base": ""}


def read_form(form: Form) -> Json:
    return {
        "name": form.text("name") or FLEXIBLE_ROLLOUT,
        "title": form.text("title"),
        "disabled": form.has("disabled"),
        **{field: form.text(field) for field in ROLLOUT_FIELDS},
        "parameters": {name.removeprefix(PARAMETER): form.text(name) for name in form if name.startswith(PARAMETER)},
        "conditions": read_rows(form),
        "segments": list(dict.fromkeys(each for each in form.texts("segment") if each)),
        "variants": variants_form.read_rows(form),
        variants_form.STICKS_TO: form.text(variants_form.STICKS_TO) or DEFAULT,
        "base": form.text("base"),
    }


def body_of(shown: Json, stored: Json | None) -> Json:
    """Return what the form stands for, as the admin API takes it."""
    parameters = {name: text for name, text in shown["parameters"].items() if text}
    if shown["name"] == FLEXIBLE_ROLLOUT:
        parameters |= {name: shown[field] for field, name in ROLLOUT_FIELDS.items() if shown[field]}
    body: Json = {
        "name": shown["name"],
        "disabled": shown["disabled"],
        "parameters": parameters,
        "constraints": constraints_of(shown["conditions"]),
        "segments": segment_ids(shown),
        "variants": variants_form.variants_of(shown["variants"], shown[variants_form.STICKS_TO]),
    }
    had_title = stored is not None and stored["title"] is not None
    return body | ({"title": shown["title"]} if shown["title"] or had_title else {})


def segment_ids(shown: Json) -> list[int | str]:
    """Return the ids of the segments of a form. The admin API refuses what is no number."""
    return [each if (number := read_whole(each)) is None else number for each in shown["segments"]]


def problems_of_rollout(shown: Json) -> list[Problem]:
    """Return what is wrong with a rollout that the admin API would take: it is no percentage."""
    share = read_whole(shown["rollout"])
    fine = share is not None and share <= FULL
    return [WHOLE] if shown["name"] == FLEXIBLE_ROLLOUT and not fine else []


def drawn_variants(strategy: Json | None) -> Variants:
    """Return the variants of a strategy as clients draw them; none without a strategy."""
    if strategy is None:
        return Variants((), "", "")
    parameters, given = strategy["parameters"], strategy["variants"]
    field = variants_form.sticks_to(given, str(parameters.get("stickiness") or DEFAULT))
    return Variants(given, str(parameters.get("groupId", NO_GROUP)), field)


def spec_of(strategy: Json | None) -> StrategySpec | None:
    """Return a strategy for the arithmetic of impact: None without one, or for a disabled one."""
    return None if strategy is None or strategy["disabled"] else parse_strategy(strategy, "strategy")


def impact(before: Json | None, after: Json | None, segments: Mapping[str, SegmentSpec]) -> Impact:
    return impact_of(spec_of(before), spec_of(after), segments)
