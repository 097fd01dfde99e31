"""Reduces a difference to a small document and request that still show it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from diff_compare import Difference, compare
from diff_pair import Pair
from diff_requests import Question, present

Json = dict[str, Any]
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
        found = compare(difference.document, difference.question, replies, difference.case).differences
        return next(
            (each for each in found if (each.field, each.toggle) == (difference.field, difference.toggle)), None
        )

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
    return Question(
        "POST", "", body, named=True, present=present(question.context), context=question.context, names=(name,)
    )


def paths(content: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the path of every part of `content` that can be taken away, the large ones first."""
    keys: list[Any] = (
        [key for key in content if key not in KEPT] if isinstance(content, dict) else list(range(len(content)))
    )
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
