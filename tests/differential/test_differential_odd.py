"""Documents with one odd value: ours serves what the engine of the npm reference proxy serves, and fails on nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import odd_campaign
import pytest
from odd_campaign import NO_FLAG, Answer, Difference, Exclusion
from odd_documents import BASE, document, with_value

NAMES = ("features[]", "features[].name")


def payload(found: Difference) -> bool:
    """The payloads differ, and nothing else."""
    both = isinstance(found.reference, Answer) and isinstance(found.ours, Answer)
    return both and found.reference._replace(payload=None) == found.ours._replace(payload=None)


def variant_name(found: Difference) -> bool:
    """The reference gives a variant a name that is no text, and ours gives its text, or an empty one."""
    if not isinstance(found.reference, Answer) or not isinstance(found.ours, Answer):
        return False
    odd = found.reference.variant
    text = "" if odd is None or isinstance(odd, (list, dict)) else found.ours.variant
    same = found.ours._replace(variant=odd, payload=None) == found.reference._replace(payload=None)
    return not isinstance(odd, str) and found.ours.variant == text and same


def nameless(found: Difference) -> bool:
    """Ours does not serve what has no name."""
    return found.ours == NO_FLAG and found.odd.place() in NAMES


def no_variant(found: Difference) -> bool:
    """An item of the variants is a false value that is not null."""
    return found.odd.place().endswith(".variants[]") and found.odd.value in ("zero", "false", "an empty text")


def blank_stickiness(found: Difference) -> bool:
    """A stickiness is a list whose text is empty."""
    blank = found.odd.value in ("an empty list", "a list of null")
    return blank and found.odd.place().endswith(".stickiness")


def pattern(found: Difference) -> bool:
    """A pattern is no text."""
    holder: Any = found.odd.document
    for each in found.odd.path[:-1]:
        holder = holder[each]
    is_value = found.odd.place().endswith(".constraints[].value")
    return is_value and holder["operator"] == "REGEX" and not isinstance(holder.get("value"), str)


EXCLUSIONS = (
    Exclusion(
        "a payload is an object of type and value, both text",
        "the specification's payload is always that, or not there; the reference passes on what the document has",
        payload, ("features", 4, "variants", 0, "payload"), "a text"
    ),
    Exclusion(
        "the name of a variant is a text",
        "the specification's variant always has one; the reference passes on what the document has, or leaves the name out",
        variant_name, ("features", 4, "variants", 0, "name"), "a number"
    ),
    Exclusion(
        "what has no name is no flag",
        "no SDK can ask for it; the reference lists it under a name such as `undefined`",
        nameless, ("features", 0, "name"), "null"
    ),
    Exclusion(
        "a variant that is zero, false or an empty text is none",
        "the others are drawn by their weights; the reference gives everyone the first of them",
        no_variant, ("features", 4, "variants", 0), "zero"
    ),
    Exclusion(
        "a stickiness that is an empty list is the default",
        "the reference looks for a property with an empty name, which a context does not have",
        blank_stickiness, ("features", 3, "strategies", 0, "parameters", "stickiness"), "an empty list"
    ),
    Exclusion(
        "a pattern is a text",
        "another value matches nothing; the reference remembers patterns by their texts, so the answer depends on earlier ones",
        pattern, ("features", 24, "strategies", 0, "constraints", 0, "value"), "a list of null"
    ),
)  # fmt: skip


USUAL, MANY = 150, 10_000
Record = Callable[[str, object], None]


def check(seed: str, count: int, record_property: Record) -> None:
    """Compare so many documents, most of which have an odd value that is named."""
    figures = odd_campaign.run([document(seed, number) for number in range(count)], EXCLUSIONS)
    record_property("summary", str(dict(figures.counts)))
    if figures.differences:
        pytest.fail(figures.explain(), pytrace=False)
    assert figures.counts[odd_campaign.COMPARED] > 150 * count and figures.counts[odd_campaign.ODD] > count / 4


def test_an_odd_value_is_served_as_by_the_reference(record_property: Record) -> None:
    """Every flag has the same state, variant and payload in each context where the reference answers, but for the exclusions."""
    check("continuous", USUAL, record_property)


@pytest.mark.long
def test_many_odd_values(record_property: Record) -> None:
    """The same with ten thousand documents."""
    check("long", MANY, record_property)


@pytest.mark.parametrize("row", EXCLUSIONS, ids=lambda row: row.name.replace(" ", "-"))
def test_each_exclusion_still_occurs(row: Exclusion) -> None:
    """An exclusion that does not occur any more must be removed from the table."""
    odd = with_value(copy.deepcopy(BASE), row.path, row.value)
    assert odd_campaign.run([odd], [row]).counts[row.name]


def test_only_what_has_no_name_is_left_out() -> None:
    """Of 100 documents no flag with a name is left out, and each that is odd is named with the path of the value."""
    for number in range(100):
        odd = document("names", number)
        for problem in odd_campaign.compile_both(odd.document).problems:
            assert problem.served or odd.place() in ("features[]", "features[].name", "segments[]", "segments[].id"), odd
            assert problem.path.startswith(("features[", "segments["))
