"""What the search of a list of flags understands, and what it says of the rest."""

from __future__ import annotations

import pytest

from flagsvc.server.pages.flag_search import FILTERS, read_query, read_search
from flagsvc.server.store.errors import CallerError

READ: list[tuple[dict[str, str], list[str], list[tuple[str, str]]]] = [
    ({}, [], []),
    ({"q": "new  checkout"}, ["new", "checkout"], []),
    ({"q": 'new Type:release tag:"team:web shop"'}, ["new"], [("type", "release"), ("tag", "team:web shop")]),
    ({"q": 'state:archived "type:release" "two words'}, ["type:release", "two words"], [("state", "archived")]),
    ({"q": "type:", "unused": "30"}, [], [("unused", "30")]),
    ({"type": "release", "q": "type:experiment"}, [], [("type", "release"), ("type", "experiment")]),
]
"""Address → the words, and the filters."""


@pytest.mark.parametrize(("given", "words", "filters"), READ)
def test_what_is_typed(given: dict[str, str], words: list[str], filters: list[tuple[str, str]]) -> None:
    """Words and filters are told apart. Quotes keep blanks together, and make a word of what looks like a filter."""
    found = read_query(given)
    assert (found.words, [(each.name, each.value) for each in found.filters], found.problems) == (words, filters, [])


PROBLEMS = {
    "team:web": "There is no filter team. There are project:shop, type:release, state:stale, tag:simple:web, unused:30. "
    'In quotes it is a word: "team:web".',
    "type:relese": "The filter type is one of release, experiment, operational, kill-switch, permission, not relese.",
    "state:old": "The filter state is one of active, stale, archived, not old.",
    "tag:web": "The filter tag takes a type and a value, such as simple:web, not web.",
    "unused:x": "The filter unused takes a number of days, such as 30, not x.",
    "unused:0": "The filter unused takes a number of days, such as 30, not 0.",
    " ".join(f"w{number}" for number in range(51)): "A search has at most 50 words.",
}
"""What is typed → what the list says of it."""


@pytest.mark.parametrize("typed", PROBLEMS)
def test_what_means_nothing(typed: str) -> None:
    """Such a text is no filter. The sentence lists the filters."""
    found = read_query({"q": typed})
    assert found.problems == [PROBLEMS[typed]] and not found.filters


def test_each_filter_is_removed_alone() -> None:
    """The address without a filter keeps the other filters and all other text. The words name the filter."""
    found = read_query({"q": "new type:release unused:30", "project": "shop", "sort": "type"}).filters
    assert [(each.words, each.without) for each in found] == [
        ("project: shop", "q=new+type%3Arelease+unused%3A30&sort=type"),
        ("type: release", "q=new+unused%3A30&project=shop&sort=type"),
        ("unused for 30 days", "q=new+type%3Arelease&project=shop&sort=type"),
    ]


def test_the_search_of_the_store() -> None:
    """Values of a filter are alternatives, but for tags. An unknown order is that of names."""
    typed = "a b type:release type:experiment tag:x:1 tag:y:2 state:archived state:stale unused:7 unused:30"
    found = read_search({"q": typed, "sort": "-createdAt"}, 3)
    assert found.filters == {"type": "IS_ANY_OF:release,experiment", "state": "IS_ANY_OF:stale", "tag": "INCLUDE_ALL_OF:x:1,y:2"}
    assert (found.words, found.all_words, found.archived, found.unseen_days) == (["a", "b"], True, True, 30)
    assert (found.sort_by, found.descending, found.offset, found.limit) == ("createdAt", True, 100, 50)
    assert read_search({"sort": "nothing"}, 1).sort_by == "name" and FILTERS.keys() >= found.filters.keys()


def test_a_text_that_is_too_long() -> None:
    """It is refused, as in every search: comparing takes as many steps for each stored character."""
    with pytest.raises(CallerError) as refused:
        read_query({"q": "x" * 1001})
    assert "1000 characters" in refused.value.details[0]["message"]
