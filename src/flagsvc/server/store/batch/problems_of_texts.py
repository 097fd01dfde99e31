"""Texts that databases cannot hold: a NUL, and in JSON half a surrogate pair (import validation 4.4). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from flagsvc.server.store.batch.dataset import LISTS
from flagsvc.server.store.batch.facts import CheckedDataSet, ImportProblem

NUL, HALF = re.compile("\0"), re.compile("[\ud800-\udfff]")
OWNERS = {
    "features": "name",
    "dependencies": "feature",
    "links": "feature",
    "tag_types": "",
    "context_fields": "",
    "segments": "",
}
"""List of a data set → the member that names its flag, empty where none does; of the others it is `featureName`."""
IN_JSON = (
    ("strategies", ("constraints", "parameters", "variants")),
    ("environments", ("variants",)),
    ("dependencies", ("dependencies",)),
)
"""List of a data set → the members that are stored as JSON."""


def text_problems(look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give the texts that cannot be stored."""
    for field in LISTS:
        for each in getattr(look.data, field):
            if holds(each, NUL):
                yield ImportProblem(
                    "text", owner(field, each), LISTS[field], "a text holds a NUL character, which cannot be stored"
                )
    for field, members in IN_JSON if look.facts.narrow else ():
        for each in getattr(look.data, field):
            if any(holds(each.get(member), HALF) for member in members):
                text = "a text holds half a surrogate pair (\\ud800 to \\udfff), which cannot be stored"
                yield ImportProblem("text", owner(field, each), LISTS[field], text)


def owner(field: str, entry: Any) -> str:
    """Return the name of the flag that an entry is about."""
    return str(entry.get(OWNERS.get(field, "featureName"), ""))


def holds(value: Any, wanted: re.Pattern[str]) -> bool:
    """Return whether any text in a JSON value holds what is wanted."""
    if isinstance(value, str):
        return wanted.search(value) is not None
    if isinstance(value, dict):
        return any(holds(each, wanted) for pair in value.items() for each in pair)
    return isinstance(value, list) and any(holds(each, wanted) for each in value)
