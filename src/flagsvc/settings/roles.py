"""The kind of value that gives roles to groups.

As in `kinds.py`, a parser knows no option and no source, and reads its own results unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from flagsvc.settings.kinds import Kind, RefusedError, as_text, parse_text, read_json, repeated_keys, split

ROOT_ROLES = ("admin", "editor", "viewer")
"""The roles for the whole server, the strongest first."""
PROJECT_ROLES = ("owner", "member")
NONE = "none"
"""The role of people whose groups give none: they are refused."""

WITH_COMMAS = 'a group with a comma needs JSON: {"cn=devs,dc=example": "editor"}'

GroupRoles: TypeAlias = tuple[tuple[str, str], ...]
"""Pairs of a group and a role: one of ROOT_ROLES, or one of PROJECT_ROLES with a colon and a project behind it."""


def parse_group_roles(value: object) -> GroupRoles:
    """Return pairs of group and role, from `group=role` texts cut at their last equals sign, pairs or a mapping.

    A text may be a JSON object instead, for groups with commas.
    """
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _from_json(value)
    items = _from_mapping(value) if isinstance(value, Mapping) else split(value)
    return tuple(dict.fromkeys(_pair(item) for item in items))


def _from_json(text: str) -> object:
    """Return the object of a text in JSON."""
    try:
        found = read_json(text)
    except ValueError as error:
        raise RefusedError(f"it begins with `{{` and is not JSON: {error}") from None
    if any(repeated_keys(found)):
        raise RefusedError("a group comes twice: give it a list of roles")
    return found


def _from_mapping(value: Mapping[object, object]) -> Iterable[object]:
    """Yield the pairs of a mapping, whose values are a role or several."""
    for group, roles in value.items():
        for role in split(roles):
            yield group, role


def _pair(item: object) -> tuple[str, str]:
    pair = item.rpartition("=")[::2] if isinstance(item, str) else item
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise RefusedError(f"a group and a role have an equals sign between them; {WITH_COMMAS}")
    group, role = parse_text(pair[0]), parse_text(pair[1])
    if not group or not is_role(role):
        raise RefusedError(f"a role is {', '.join(ROOT_ROLES)}, owner:PROJECT or member:PROJECT; {WITH_COMMAS}")
    return group, role


def is_role(role: str) -> bool:
    """Return whether a text is a role for the whole server, or one in a project."""
    name, colon, project = role.partition(":")
    return bool(name in PROJECT_ROLES and project) if colon else name in ROOT_ROLES


def show_group_roles(pairs: GroupRoles) -> str:
    """Return pairs as the text that gives them again."""
    if any("," in group or "{" in group for group, _ in pairs):
        import json  # most processes have no option in JSON

        groups: dict[str, list[str]] = {}
        for group, role in pairs:
            groups.setdefault(group, []).append(role)
        return json.dumps(groups, ensure_ascii=False)
    return as_text(tuple(f"{group}={role}" for group, role in pairs))


GROUP_ROLES = Kind(
    "pairs such as flag-admins=admin,shop-team=member:shop, or a JSON object of them",
    "PAIRS",
    parse_group_roles,
    show=show_group_roles,
)
