"""Two states of a flag beside each other, in words, with what differs marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from flagsvc.engine.model import SegmentSpec
from flagsvc.engine.parse import parse_dependency
from flagsvc.http.shapes.text import to_json
from flagsvc.reasons.words import dependency_words, plain, whole_words, words_of_variants
from flagsvc.server.pages.edits import digest_of
from flagsvc.server.store.checks import Json

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


def beside(one: Json | None, other: Json | None, segments: Mapping[str, SegmentSpec]) -> tuple[list[Json], list[Json]]:
    """Return the lines of two states of a flag (`flag_states`); None is no flag.

    Each line has its `words`, whether it `differs`, and a `detail`: what differs although the two sentences are the same.
    """
    left = list(items_of(one, segments))
    right = list(items_of(other, segments))
    moved = is_reordered(one, other)
    return lines_of(left, right), lines_of(right, left, detailed=True) + [line(REORDERED, differs=True)] * moved


def is_reordered(one: Json | None, other: Json | None) -> bool:
    """Return whether two states have the same strategies in another order."""
    if one is None or other is None or one["strategies"] == other["strategies"]:
        return False
    left, right = (sorted(map(digest_of, each["strategies"])) for each in (one, other))
    return left == right


def items_of(state: Json | None, segments: Mapping[str, SegmentSpec]) -> Iterator[Item]:
    """Yield what there is to say of a flag."""
    if state is None:
        yield Item("state", ABSENT, None, always=True)
        return
    yield Item("state", STATES[state["enabled"]], [state["enabled"]], always=True)
    for each in state["strategies"]:
        yield Item("strategy", whole_words(each, segments), each, always=True)
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
    """Return the lines of a side. An item of which the other side has fewer differs."""
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
        yield from (f"{place}: without {plain(each)}" for each in one if each not in other)
        yield from (f"{place}: with {plain(each)}" for each in other if each not in one)
        if sorted(one) == sorted(other):
            yield f"{place}: in another order"
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for before, after in zip(one, other, strict=True):
            yield from differences(place, before, after)
    else:
        yield f"{place}: {plain(to_json(one))} → {plain(to_json(other))}"


def line(words: str, *, differs: bool = False, detail: str = "") -> Json:
    """Return a line."""
    return {"words": words, "differs": differs, "detail": detail}
