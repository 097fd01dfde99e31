"""Documents with one odd value: ours serves what the engine of the npm reference proxy serves, and fails on nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable

import odd_campaign
import pytest
from odd_campaign import Exclusion
from odd_documents import BASE, document, with_value
from odd_exclusions import EXCLUSIONS

USUAL, MANY = 150, 10_000
Record = Callable[[str, object], None]


def check(seed: str, count: int, record_property: Record) -> None:
    """Compare so many documents, most of which have an odd value that is named."""
    figures = odd_campaign.run([document(seed, number) for number in range(count)], EXCLUSIONS)
    record_property("summary", figures.line())
    if figures.differences:
        pytest.fail(figures.explain(), pytrace=False)
    assert figures.answers > 150 * count and figures.odd > count / 4


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
    assert odd_campaign.run([odd], [row]).excluded[row.name]


def test_only_what_has_no_name_is_left_out() -> None:
    """Of 100 documents no flag with a name is left out, and each that is odd is named with the path of the value."""
    for number in range(100):
        odd = document("names", number)
        for problem in odd_campaign.compile_both(odd.document).problems:
            assert problem.served or odd.place() in ("features[]", "features[].name", "segments[]", "segments[].id"), (
                odd
            )
            assert problem.path.startswith(("features[", "segments["))
