"""The naming pattern of a project, as it is told when one feature is created (import validation, 4.1 rule 5 and 6.3, 1)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import Row

from flagsvc.flagstore.batch.patterns import compile_pattern

compiled = lru_cache(maxsize=64)(compile_pattern)


def pattern_problem(project: Row[Any], name: str) -> str | None:
    """Return what the wire says of a name that does not match the pattern of a project; None where all is well."""
    if not project.naming_pattern or compiled(project.naming_pattern)(name):
        return None
    text = f'The feature flag name "{name}" does not match the project\'s naming pattern: "{project.naming_pattern}".'
    if project.naming_example:
        text += f' Here\'s an example of a name that does match the pattern: "{project.naming_example}"."'
    if project.naming_description:
        text += f' The pattern\'s description is: "{project.naming_description}"'
    return text
