"""The changes of an import or of a copy, in words, before they are done. They are done only if they are still the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from flagsvc.core.direction import isolate
from flagsvc.engine.model import SegmentSpec
from flagsvc.engine.parse import parse_dependency
from flagsvc.http.answers import Answer
from flagsvc.http.json_text import whole
from flagsvc.http.shapes import ShapeError
from flagsvc.http.shapes.text import to_json
from flagsvc.reasons.words import dependency_words, plain, whole_words, words_of_variants
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.edits import (
    CONFLICT,
    SAVE,
    ChangedMeanwhileError,
    Look,
    digest_of,
    require_unchanged,
)
from flagsvc.server.pages.flags import is_protected
from flagsvc.server.pages.page import see_other
from flagsvc.server.pages.problems import problems_of
from flagsvc.server.store.batch.importing import check_importer
from flagsvc.server.store.batch.planning import KINDS, SAME, ImportPlan, ImportRequest, carry_out
from flagsvc.server.store.batch.rules import PERMISSIONS
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.event_views import Way
from flagsvc.server.store.resources import environments
from flagsvc.server.store.resources.feature_views import read_segment_specs
from flagsvc.server.store.store import Tx, read_revision

Maker: TypeAlias = Callable[[Tx], Sequence[ImportRequest]]
"""Makes the requests to import in the transaction that imports them."""
SHOWN: Final = 200
"""Flags of a plan that a page lists."""


class RefusedError(Exception):
    """Errors or missing permissions stop an import."""


def show_plans(call: ApiCall, make: Maker) -> Json:
    """Return what imports would change, and the digest of it. Nothing is changed. Raises CallerError, ShapeError."""
    make = made_before(call, make)
    with call.store.dry_run(call.actor) as tx:
        plans = carry_out(tx, call.actor, make(tx))
        segments = read_segment_specs(tx)
        protected = {each["name"] for each in environments.list_plain(tx) if is_protected(each["type"])}
    shown = [plan_to_json(each, segments) | {"protected": each.environment in protected} for each in plans]
    return {
        "plans": whole(shown),  # a page can show no half of a surrogate pair
        "refused": any(each.refused for each in plans),
        "obstacle": obstacle_of(plans),
        "base": digest_of(contents_of(plans)),
    }


def made_before(call: ApiCall, make: Maker) -> Maker:
    """Return a maker that has its requests already, and makes them again only if flags have changed since.

    Reading thousands of flags takes as long as changing them. Meanwhile no other change has to wait.
    """
    with call.store.reading() as tx:
        requests, revision = make(tx), read_revision(tx.db)
    return lambda tx: requests if read_revision(tx.db) == revision else make(tx)


def contents_of(plans: Sequence[ImportPlan]) -> list[Json]:
    """Return what imports change, for a digest. A flag stands as its own digest: one of thousands would stop all other threads."""
    contents = [each.content() for each in plans]
    return [each | {"flags": [digest_of(flag) for flag in each["flags"]]} for each in contents]


def obstacle_of(plans: Sequence[ImportPlan]) -> str:
    """Return what stands in the way of imports: errors, or the permissions that are missing; empty if nothing does."""
    if any(each.checks["errors"] for each in plans):
        return "the errors above stop it"
    missing: dict[str, dict[str, None]] = {}
    for plan in plans:
        names = [PERMISSIONS[name] for each in plan.checks["permissions"] for name in each["affectedItems"]]
        missing.setdefault(plan.environment, {}).update(dict.fromkeys(names))
    told = [f"{', '.join(names)} in {environment}" for environment, names in missing.items() if names]
    return f"needs {'; '.join(told)}" if told else ""


def preview_plans(call: ApiCall, make: Maker, look: Look) -> Json | None:
    """Return what imports would change if the look has a preview. An error becomes the status and the problems of the look."""
    if not look.preview:
        return None
    try:
        return show_plans(call, make)
    except (CallerError, ShapeError) as error:
        look.status, look.problems = problems_of(error, call.form)
        return None


def submit_plans(
    call: ApiCall, make: Maker, again: Callable[[Look], Answer], *goal: str, query: Mapping[str, str] | None = None
) -> Answer:
    """Do what the button of a form says: show what imports change, or import, and go to a page. Nothing is imported unseen."""
    if call.form.text("do") != SAVE:
        return again(Look(preview=True))
    done = try_plans(call, make, "page")
    return again(done) if isinstance(done, Look) else see_other(call, *goal, done=done, **(query or {}))


def try_plans(call: ApiCall, make: Maker, way: Way) -> Tx | Look:
    """Import what a form shows, and return the transaction; else nothing is changed, and the page is to look so."""
    try:
        return apply_plans(call, make, way)
    except ChangedMeanwhileError:
        return Look(CONFLICT, preview=True, conflict=True)
    except RefusedError:
        return Look(400, preview=True)
    except (CallerError, ShapeError) as error:
        return Look(*problems_of(error, call.form))


def apply_plans(call: ApiCall, make: Maker, way: Way) -> Tx:
    """Import in one transaction, and return it. The form has the digest of what was shown.

    Raises ChangedMeanwhileError if something else would change by now, RefusedError, CallerError, ShapeError.
    """
    check_importer(call.actor)
    make = made_before(call, make)
    with call.store.writing(call.actor, way) as tx:
        plans = carry_out(tx, call.actor, make(tx))
        if any(each.refused for each in plans):
            raise RefusedError
        require_unchanged(contents_of(plans), call.form.text("base"))
    return tx


def plan_to_json(plan: ImportPlan, segments: Mapping[str, SegmentSpec]) -> Json:
    """Return a plan for a page: the findings of the validation, and the flags that change, each before and after."""
    changing = [each for each in plan.flags if each.kind != SAME]
    flags = []
    for each in changing[:SHOWN]:
        before, after = beside(each.name, each.before, each.after, segments)
        flags.append({"name": each.name, "kind": each.kind, "before": before, "after": after})
    counts = Counter(each.kind for each in plan.flags)
    return {
        "project": plan.project,
        "environment": plan.environment,
        **plan.checks,
        "flags": flags,
        "more": len(changing) - len(flags),
        "counts": {kind: counts[kind] for kind in KINDS},
        "made": list(plan.made),
    }


STATES: Final = {True: "on", False: "off", None: "not in this environment"}
ABSENT: Final = "There is no such flag."
REORDERED: Final = "The strategies are in another order."
FACTS: Final = {
    "type": "type",
    "description": "description",
    "stale": "stale",
    "impressionData": "impression data",
    "archived": "archived",
}
"""Member of a state that describes the flag → what people call it. Such lines are shown only where they differ."""
DETAILS: Final = 3
"""The most differences that are listed where two sentences are the same."""


class Item(NamedTuple):
    """One thing about a flag: its kind, its words, its value as JSON, and whether it is shown where nothing differs."""

    kind: str
    words: str
    value: Any
    always: bool = False


def beside(flag: str, one: Json | None, other: Json | None, segments: Mapping[str, SegmentSpec]) -> tuple[list[Json], list[Json]]:
    """Return the lines of two states of a flag (`read_flag_states`); None is no flag.

    Each line has its `words`, whether it `differs`, and a `detail`: what differs although the two sentences are the same.
    """
    left = list(items_of(flag, one, segments))
    right = list(items_of(flag, other, segments))
    moved = is_reordered(one, other)
    return lines_of(left, right), lines_of(right, left, detailed=True) + [line(REORDERED, differs=True)] * moved


def is_reordered(one: Json | None, other: Json | None) -> bool:
    """Return whether two states have the same strategies in another order."""
    if one is None or other is None or one["strategies"] == other["strategies"]:
        return False
    left, right = (sorted(map(digest_of, each["strategies"])) for each in (one, other))
    return left == right


def items_of(flag: str, state: Json | None, segments: Mapping[str, SegmentSpec]) -> Iterator[Item]:
    """Yield what there is to say of a flag."""
    if state is None:
        yield Item("state", ABSENT, None, always=True)
        return
    yield Item("state", STATES[state["enabled"]], [state["enabled"]], always=True)
    for each in state["strategies"]:
        yield Item("strategy", whole_words(each, segments, flag), each, always=True)
    variants = state["variants"]
    yield Item("variants", f"variants: {words_of_variants(variants) or 'none'}", variants, always=bool(variants))
    for member, title in FACTS.items():
        if member in state:
            yield Item(member, f"{title}: {told(state[member])}", state[member])
    yield from (Item("tag", f"tag {each}", each) for each in state.get("tags", ()))
    yield from (Item("link", f"link {each['url']}", each) for each in state.get("links", ()))
    for each in state.get("parents", ()):
        yield Item("parent", f"needs that {dependency_words(parse_dependency(each, 'dependency'))}", each)


def told(value: object) -> str:
    """Return a value of FACTS as a text."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value) or "none"


def lines_of(own: Sequence[Item], others: Sequence[Item], *, detailed: bool = False) -> list[Json]:
    """Return the lines of a side. An item without an equal item on the other side differs."""
    rest = [(each.kind, each.value) for each in others]
    found: list[Json] = []
    for each in own:
        differs = (each.kind, each.value) not in rest
        if not differs:
            rest.remove((each.kind, each.value))
        if differs or each.always:
            detail = detail_of(each, others) if differs and detailed else ""
            found.append(line(each.words, differs=differs, detail=detail))
    return found


def detail_of(item: Item, others: Sequence[Item]) -> str:
    """Return how an item differs from one of the other side with the same words; empty without one."""
    same = next((each for each in others if each.kind == item.kind and each.words == item.words), None)
    if same is None:
        return ""
    found = list(islice(differences(item.kind, same.value, item.value), DETAILS + 1))
    return "; ".join(found[:DETAILS]) + ("; …" if len(found) > DETAILS else "")


def differences(place: str, one: Any, other: Any) -> Iterator[str]:
    """Yield how two JSON values differ, a sentence for each place."""
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys((*one, *other)):
            yield from differences(name, one.get(name), other.get(name))
    elif isinstance(one, list) and isinstance(other, list) and all(isinstance(each, str) for each in (*one, *other)):
        yield from (f"{place}: without {isolate(plain(each))}" for each in one if each not in other)
        yield from (f"{place}: with {isolate(plain(each))}" for each in other if each not in one)
        if sorted(one) == sorted(other):
            yield f"{place}: in another order"
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for before, after in zip(one, other, strict=True):
            yield from differences(place, before, after)
    else:
        yield f"{place}: {isolate(plain(to_json(one)))} → {isolate(plain(to_json(other)))}"


def line(words: str, *, differs: bool = False, detail: str = "") -> Json:
    return {"words": words, "differs": differs, "detail": detail}
