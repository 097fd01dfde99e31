"""What differs between two answers to one question, field by field."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from diff_fixed import volatile
from diff_pair import Reply
from diff_requests import Question

Json = dict[str, Any]
ABSENT = "(absent)"


@dataclass(frozen=True)
class Difference:
    """One thing in which two answers differ.

    `field` is `status`, `order`, `toggle` (in one list, not in the other), or a field of a toggle or its variant with dots.
    `case` names the targeted case that asked, empty for the random ones.
    """

    field: str
    toggle: str
    reference: Any
    ours: Any
    question: Question
    document: Json
    case: str = ""

    def __str__(self) -> str:
        """Return the difference as two lines."""
        of = f" of `{self.toggle}`" if self.toggle else ""
        said = f"the reference says {json.dumps(self.reference)}, we say {json.dumps(self.ours)}"
        return f"{self.field}{of}: {said}\n  {self.question}"


def compare(document: Json, question: Question, replies: tuple[Reply, Reply], case: str = "") -> list[Difference]:
    """Return what differs between the reference's and our answer to `question` on `document`."""
    reference, ours = replies

    def difference(field: str, toggle: str, left: object, right: object) -> Difference:
        return Difference(field, toggle, left, right, question=question, document=document, case=case)

    if reference.status != ours.status:
        return [difference("status", "", reference.status, ours.status)]
    if reference.status != 200 or not question.evaluates:
        return []
    shaky = volatile(document, question.present, named=question.named)
    left, right = reference.toggles(), ours.toggles()
    states, variants = shaky.states, shaky.variants
    kept = [[toggle for toggle in side if toggle["name"] not in states] for side in (left, right)]
    return [difference(*each) for each in lists(*kept, variants)]  # type: ignore[arg-type, call-arg]


def lists(left: list[Json], right: list[Json], shaky: frozenset[str]) -> list[tuple[str, str, Any, Any]]:
    """Return the differences between two lists of toggles; of the `shaky` ones the variants are not looked at."""
    names = [[toggle["name"] for toggle in side] for side in (left, right)]
    if names[0] != names[1]:
        return [*_membership(*names), *_matched(left, right, shaky)]
    return [found for pair in zip(left, right, strict=True) if pair[0] != pair[1] for found in toggles(*pair, shaky)]


def _membership(left: list[str], right: list[str]) -> list[tuple[str, str, Any, Any]]:
    only = [
        *((name, True, False) for name in left if name not in right),
        *((name, False, True) for name in right if name not in left),
    ]
    if only:
        return [("toggle", name, here, there) for name, here, there in only]
    return [("order", "", left, right)]


def _matched(left: list[Json], right: list[Json], shaky: frozenset[str]) -> list[tuple[str, str, Any, Any]]:
    ours = {toggle["name"]: toggle for toggle in right}
    pairs = [(toggle, ours[toggle["name"]]) for toggle in left if toggle["name"] in ours]
    return [found for pair in pairs for found in toggles(*pair, shaky)]


def toggles(left: Json, right: Json, shaky: frozenset[str]) -> list[tuple[str, str, Any, Any]]:
    """Return the differences between two answers about one toggle."""
    name = left["name"]
    found = [(field, name, *values) for field, *values in fields(left, right, "") if field != "variant"]
    if name not in shaky:
        found += [(field, name, *values) for field, *values in fields(left["variant"], right["variant"], "variant.")]
    return found


def fields(left: Json, right: Json, prefix: str) -> list[tuple[str, Any, Any]]:
    """Return the fields in which two objects differ: name, one value, the other."""
    names = [*left, *(name for name in right if name not in left)]
    pairs = [(prefix + name, left.get(name, ABSENT), right.get(name, ABSENT)) for name in names]
    return [each for each in pairs if type(each[1]) is not type(each[2]) or each[1] != each[2]]


def reproduction(difference: Difference) -> str:
    """Return the difference with what of its document decides about the toggle."""
    features = difference.document["features"]
    found = [feature for feature in features if feature["name"] == difference.toggle]
    parents = {parent["feature"] for feature in found for parent in feature.get("dependencies") or []}
    kept = [feature for feature in features if feature in found or feature["name"] in parents]
    return f"{difference}\n  document: {json.dumps({**difference.document, 'features': kept}, ensure_ascii=False)}"
