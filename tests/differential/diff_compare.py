"""What differs between two answers to one question, field by field.

Reduces a difference to a small document and request that still show it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from diff_fixed import volatile
from diff_pair import Pair, Reply
from diff_requests import Question, present

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


BUDGET = 200  # questions asked for one reproduction, some 30 ms each
KEPT = {
    *("features", "name", "enabled", "strategies", "weight", "contextName", "operator", "values", "feature", "id"),
    "groupId",
}
"""Keys that stay: without them the toggle would be malformed, which is another matter."""


@dataclass
class Shrinker:
    """Makes one difference smaller, as long as there are questions left to ask."""

    pair: Pair
    left: int = BUDGET

    def shrink(self, difference: Difference) -> Difference:
        """Return a difference of the same field and toggle on less of a document, or the one given."""
        if not difference.toggle:
            empty = {**difference.document, "features": []}
            return self._again(replace(difference, document=empty)) or difference
        small = self._only_what_matters(difference)
        small = self._as_named_post(small)
        small = self._without(small, lambda each: each.document, lambda each, part: replace(each, document=part))
        return self._without(small, lambda each: each.question.context, _with_context)

    def _again(self, difference: Difference) -> Difference | None:
        """Return what the proxies differ in now, if it is still the same thing."""
        if self.left <= 0:
            return None
        self.left -= 1
        self.pair.load(difference.document)
        replies = self.pair.ask(difference.question)
        found = compare(difference.document, difference.question, replies, difference.case)
        return next((each for each in found if (each.field, each.toggle) == (difference.field, difference.toggle)), None)

    def _only_what_matters(self, difference: Difference) -> Difference:
        features = difference.document["features"]
        wanted = {difference.toggle}
        for feature in [feature for feature in features if feature["name"] == difference.toggle]:
            wanted |= {parent["feature"] for parent in feature.get("dependencies") or []}
        kept = [feature for feature in features if feature["name"] in wanted]
        smaller = replace(difference, document={**difference.document, "features": kept})
        return self._again(smaller) or difference

    def _as_named_post(self, difference: Difference) -> Difference:
        if not difference.question.context:
            return difference
        return self._again(replace(difference, question=_named(difference.question, difference.toggle))) or difference

    def _without(
        self,
        difference: Difference,
        read: Callable[[Difference], Json],
        write: Callable[[Difference, Json], Difference],
    ) -> Difference:
        """Take away, one after the other, every part that the difference does not need."""
        smaller = True
        while smaller and self.left > 0:
            smaller = False
            for path in list(paths(read(difference))):
                found = self._again(write(difference, removed(read(difference), path)))
                if found:
                    difference, smaller = found, True
                    break
        return difference


def _with_context(difference: Difference, context: Json) -> Difference:
    question = replace(difference.question, context=context)
    return replace(difference, question=_named(question, difference.toggle) if question.named else question)


def _named(question: Question, name: str) -> Question:
    body = json.dumps({"toggles": [name], "context": question.context}, ensure_ascii=False).encode()
    return Question("POST", "", body, named=True, present=present(question.context), context=question.context, names=(name,))


def paths(content: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the path of every part of `content` that can be taken away, the large ones first."""
    keys: list[Any] = [key for key in content if key not in KEPT] if isinstance(content, dict) else list(range(len(content)))
    yield from ((*before, key) for key in keys)
    for key in content if isinstance(content, dict) else keys:
        if isinstance(content[key], (dict, list)):
            yield from paths(content[key], (*before, key))


def removed(content: Json, path: tuple[Any, ...]) -> Json:
    """Return a copy of `content` without the part at `path`."""
    result = copy.deepcopy(content)
    part: Any = result
    for key in path[:-1]:
        part = part[key]
    del part[path[-1]]
    return result


def reproduction(difference: Difference) -> str:
    """Return the difference with its document, as it is printed."""
    return f"{difference}\n  document: {json.dumps(difference.document, ensure_ascii=False)}"
