"""Rows as JSON, and JSON as columns: a member is a column whose name is in camelCase. A member with the end `At` is a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import Row

from flagsvc.server.store.checks import Json
from flagsvc.server.store.timestamps import format_time


@cache
def column_of(member: str) -> str:
    """Return the name of the column of a member: `created_at` for `createdAt`."""
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", member)


@cache
def _reader(members: Sequence[str]) -> tuple[Callable[[Row[Any]], Sequence[Any]], Sequence[str]]:
    """Return a function that reads the columns of members, and the members that are times."""
    first, *others = map(column_of, members)
    read = attrgetter(first, *others) if others else lambda row: (getattr(row, first),)
    return read, [name for name in members if name.endswith("At")]


def shown(row: Row[Any], *members: str) -> Json:
    """Return these members of a row, in this order."""
    read, times = _reader(members)
    found = dict(zip(members, read(row), strict=True))
    for name in times:
        found[name] = format_time(found[name])
    return found


def columns_of(whole: Mapping[str, Any], members: Iterable[str]) -> Json:
    """Return the columns that these members set."""
    return {column_of(name): whole[name] for name in members}
