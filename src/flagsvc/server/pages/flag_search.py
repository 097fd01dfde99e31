"""What the search of a list of flags understands: words, and filters, typed as `type:release` or in the address.

`checkout type:release tag:team:web unused:30` finds the flags with the word that fit all filters. Several projects, types or states
are alternatives. What stands in quotes is a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple
from urllib.parse import urlencode

from flagsvc.pages.forms import read_whole
from flagsvc.server.api.admin.features import TYPES
from flagsvc.server.store.resources.feature_search import FeatureSearch
from flagsvc.server.store.texts import MAX_WORDS, check_searched

PAGE_SIZE: Final = 50
TOKEN: Final = re.compile(r'[^\s"]+(?:"[^"]*"?)?|"[^"]*"?')
MOST_DAYS: Final = 36_500
QUERY, SORT = "q", "sort"
ARCHIVED: Final = "archived"
SORTS: Final = {
    "name": "name",
    "-name": "name, from z to a",
    "-createdAt": "newest first",
    "-lastSeenAt": "last used first",
    "lastSeenAt": "longest unused first",
    "type": "type",
    "project": "project",
}
"""Order → what people call it."""


class FilterRow(NamedTuple):
    """A filter: an example of its value, the operator of the store's search, and what finds the problem of a value."""

    example: str
    operator: str
    problem: Callable[[str], str]


def one_of(*known: str) -> Callable[[str], str]:
    """Return a function that says why a value is unknown. It returns an empty text for a known value."""
    return lambda value: "" if value in known else f"is one of {', '.join(known)}, not {value}"


def days_problem(value: str) -> str:
    days = read_whole(value) or 0
    return "" if 0 < days <= MOST_DAYS else f"takes a number of days, such as 30, not {value}"


FILTERS: Final[Mapping[str, FilterRow]] = {
    "project": FilterRow("shop", "IS_ANY_OF", lambda value: ""),
    "type": FilterRow("release", "IS_ANY_OF", one_of(*(identity for identity, *_ in TYPES))),
    "state": FilterRow("stale", "IS_ANY_OF", one_of("active", "stale", ARCHIVED)),
    "tag": FilterRow(
        "simple:web",
        "INCLUDE_ALL_OF",
        lambda value: "" if ":" in value else f"takes a type and a value, such as simple:web, not {value}",
    ),
    "unused": FilterRow("30", "", days_problem),
}
ADDRESS: Final = (QUERY, *FILTERS, SORT)
"""What the address of a list may have besides the number of the page."""


class Filter(NamedTuple):
    """A filter that is on; `without` is the address of the list without it."""

    name: str
    value: str
    without: str

    @property
    def words(self) -> str:
        return f"unused for {self.value} days" if self.name == "unused" else f"{self.name}: {self.value}"


class Query(NamedTuple):
    """What a search asks for, and what of it means nothing."""

    words: list[str]
    filters: list[Filter]
    problems: list[str]


def read_query(given: Mapping[str, str]) -> Query:
    """Return what an address asks for: by its filters, and by what is typed. Raises CallerError (400) for a too long text."""
    check_searched(given.get(QUERY, ""), "query")
    found = Query([], [], [])
    for name in FILTERS:
        if name in given:
            rest = {other: value for other, value in given.items() if other != name}
            _take(found, Filter(name, given[name], urlencode(rest)))
    tokens = TOKEN.findall(given.get(QUERY, ""))
    for at, token in enumerate(tokens):
        name, colon, value = token.partition(":")
        if not colon or '"' in name:
            found.words.append(token.replace('"', ""))
        else:
            typed = " ".join([*tokens[:at], *tokens[at + 1 :]])
            _take(found, Filter(name.lower(), value.replace('"', ""), urlencode({**given, QUERY: typed})))
    if len(found.words) > MAX_WORDS:
        found.problems.append(f"A search has at most {MAX_WORDS} words.")
        del found.words[MAX_WORDS:]
    return found


def _take(found: Query, wanted: Filter) -> None:
    """Add a filter, or its problem. A filter without a value, as while somebody types, is neither."""
    row = FILTERS.get(wanted.name)
    if row is None:
        known = ", ".join([f"{name}:{each.example}" for name, each in FILTERS.items()])
        text = f'"{wanted.name}:{wanted.value}"'
        found.problems.append(f"There is no filter {wanted.name}. There are {known}. In quotes it is a word: {text}.")
    elif wanted.value and (problem := row.problem(wanted.value)):
        found.problems.append(f"The filter {wanted.name} {problem}.")
    elif wanted.value:
        found.filters.append(wanted)


def read_search(given: Mapping[str, str], number: int) -> FeatureSearch:
    """Return the search for an address. `number` counts pages from 1."""
    query = read_query(given)
    values = {name: [each.value for each in query.filters if each.name == name] for name in FILTERS}
    states = [each for each in values["state"] if each != ARCHIVED]
    sort = given[SORT] if given.get(SORT) in SORTS else "name"
    return FeatureSearch(
        words=query.words,
        all_words=True,
        filters=dict(_store_filters({**values, "state": states})),
        archived=ARCHIVED in values["state"],
        unseen_days=max(map(int, values["unused"]), default=0),
        sort_by=sort.removeprefix("-"),
        descending=sort.startswith("-"),
        offset=(number - 1) * PAGE_SIZE,
        limit=PAGE_SIZE,
    )


def read_active_search(given: Mapping[str, str], number: int) -> FeatureSearch:
    """Return the search for an address of a page that has active flags only."""
    return replace(read_search(given, number), archived=False)


def _store_filters(values: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    for name, row in FILTERS.items():
        if row.operator and values[name]:
            yield name, f"{row.operator}:{','.join(values[name])}"
