"""Groups and the roles that they give: how they are written, and what is refused."""

from __future__ import annotations

import pytest

from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.roles import GROUP_ROLES, GroupRoles


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a=admin", (("a", "admin"),)),
        ("a = admin, cn=b,a=admin", None),
        ("cn=devs=editor\nb=member:shop", (("cn=devs", "editor"), ("b", "member:shop"))),
        (
            {"a,b": "viewer", "c": ["owner:shop", "member:x"]},
            (("a,b", "viewer"), ("c", "owner:shop"), ("c", "member:x")),
        ),
        ([("a", "admin"), ["b", "viewer"], "a=admin"], (("a", "admin"), ("b", "viewer"))),
        ([], ()),
    ],
)
def test_pairs(value: object, expected: GroupRoles | None) -> None:
    """A pair is split at its last equals sign, so that a group may be a distinguished name. The result is read unchanged."""
    if expected is None:
        with pytest.raises(RefusedError, match="a role is admin, editor, viewer, owner:PROJECT or member:PROJECT"):
            GROUP_ROLES.parse(value)
        return
    assert GROUP_ROLES.parse(value) == expected == GROUP_ROLES.parse(expected)


@pytest.mark.parametrize(
    "value", ["a", "=admin", "a=", "a=boss", "a=owner", "a=owner:", "a=admin:x", [5], [("a",)], 5, {"a": 5}]
)
def test_no_pairs(value: object) -> None:
    """A pair without group or with another role is refused."""
    with pytest.raises(RefusedError):
        GROUP_ROLES.parse(value)


def test_they_are_shown_as_they_are_written() -> None:
    """The text gives the same pairs again."""
    assert GROUP_ROLES.show((("a", "admin"), ("b", "member:shop"))) == "a=admin, b=member:shop"
