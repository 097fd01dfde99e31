"""Rows as JSON, and JSON as columns: a member is a column whose name is in camelCase, and a time is a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Row

from flagsvc.server.store.checks import Json
from flagsvc.server.store.timestamps import format_time


@cache
def column_of(member: str) -> str:
    """Return the name of the column of a member: `created_at` for `createdAt`."""
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", member)


def shown(row: Row[Any], *members: str) -> Json:
    """Return these members of a row, in this order."""
    values = ((name, getattr(row, column_of(name))) for name in members)
    return {name: format_time(value) if isinstance(value, datetime) else value for name, value in values}


def columns_of(whole: Mapping[str, Any], members: Iterable[str]) -> Json:
    """Return the columns that these members set."""
    return {column_of(name): whole[name] for name in members}
