"""Finds texts that databases cannot store: a NUL, and in JSON half a surrogate pair (import validation 4.4). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from flagsvc.server.store.batch.dataset import DATA_MEMBERS
from flagsvc.server.store.batch.server_facts import CheckedDataSet, ImportProblem

NUL, HALF_SURROGATE = re.compile("\0"), re.compile("[\ud800-\udfff]")
FLAG_MEMBERS = {
    "features": "name",
    "dependencies": "feature",
    "links": "feature",
    "tag_types": "",
    "context_fields": "",
    "segments": "",
}
"""List of a data set → the member with the name of its flag, empty without one; of other lists it is `featureName`."""
JSON_MEMBERS = (
    ("strategies", ("constraints", "parameters", "variants")),
    ("environments", ("variants",)),
    ("dependencies", ("dependencies",)),
)
"""List of a data set → the members that are stored as JSON."""


def text_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of texts that cannot be stored."""
    for field in DATA_MEMBERS:
        for each in getattr(checked.data, field):
            if contains(each, NUL):
                yield ImportProblem(
                    "text",
                    flag_of(field, each),
                    DATA_MEMBERS[field],
                    "a text holds a NUL character, which cannot be stored",
                )
    for field, members in JSON_MEMBERS if checked.facts.limited_storage else ():
        for each in getattr(checked.data, field):
            if any(contains(each.get(member), HALF_SURROGATE) for member in members):
                text = "a text holds half a surrogate pair (\\ud800 to \\udfff), which cannot be stored"
                yield ImportProblem("text", flag_of(field, each), DATA_MEMBERS[field], text)


def flag_of(field: str, entry: Any) -> str:
    """Return the name of an entry's flag."""
    return str(entry.get(FLAG_MEMBERS.get(field, "featureName"), ""))


def contains(value: Any, wanted: re.Pattern[str]) -> bool:
    """Return whether any text in a JSON value, keys included, matches."""
    if isinstance(value, str):
        return wanted.search(value) is not None
    if isinstance(value, dict):
        return any(contains(each, wanted) for pair in value.items() for each in pair)
    return isinstance(value, list) and any(contains(each, wanted) for each in value)
