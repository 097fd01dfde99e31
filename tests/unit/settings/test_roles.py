"""Groups and the roles that they give: how they are written, and what is refused."""

from __future__ import annotations

import pytest

from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.roles import GROUP_ROLES


def test_a_refused_role_says_which_there_are() -> None:
    """A text with commas is several pairs, so a distinguished name needs JSON."""
    with pytest.raises(RefusedError, match="a role is admin, editor, viewer, owner:PROJECT or member:PROJECT"):
        GROUP_ROLES.parse("a = admin, cn=b,a=admin")


def test_they_are_shown_as_they_are_written() -> None:
    """The text gives the same pairs again."""
    assert GROUP_ROLES.show((("a", "admin"), ("b", "member:shop"))) == "a=admin, b=member:shop"


@pytest.mark.parametrize("group", ["CN=Flag Admins,OU=Groups,DC=corp", "{x", 'a"b\\,', "\u00fc,"])
def test_a_group_with_a_comma_is_shown_as_json(group: str) -> None:
    """The text gives the same pairs again also there."""
    pairs = ((group, "admin"), ("b", "viewer"), (group, "member:shop"))
    assert set(GROUP_ROLES.parse(GROUP_ROLES.show(pairs))) == set(pairs)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("CN=Flag Admins,OU=Groups,DC=corp=admin", "a group with a comma needs JSON"),
        ("Flag Admins,devs=editor", "a group with a comma needs JSON"),
        ('{"a": "admin"', r"it begins with `\{` and is not JSON: .*at line 1, column"),
        ('{"a": "admin", "a": "viewer"}', "a group comes twice: give it a list of roles"),
        ('{"a": "boss"}', "a role is admin, editor"),
    ],
)
def test_what_is_wrong_is_said(value: str, problem: str) -> None:
    """The message names the form that takes any group, and the place in JSON."""
    with pytest.raises(RefusedError, match=problem):
        GROUP_ROLES.parse(value)
