"""Users of a move: which are created, which exist, and which are not moved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.target import Target
from flagsvc.cli.moving.users import PATH, UserPlan, plan_users
from support.fake_admin import Answer, FakeAdmin, fake_admin

ROLES = [{"id": 1, "name": "Admin"}, {"id": 2, "name": "Editor"}, {"id": 9, "name": "Own"}]
USERS = [
    {"id": 1, "username": "admin", "rootRole": 1},
    {"id": 2, "username": "anna", "email": "anna@example.com", "name": "Anna", "rootRole": 2, "seenAt": "x"},
    {"id": 3, "email": "Bo@example.com", "rootRole": 2},
    {"id": 4, "username": "carl", "rootRole": 9},
]


@pytest.fixture
def two() -> Iterator[tuple[FakeAdmin, FakeAdmin]]:
    """Give two servers, the first of which has users."""
    with ExitStack() as opened:
        first, second = (opened.enter_context(fake_admin()) for _ in range(2))
        first.answers[PATH] = Answer(200, {"users": USERS, "rootRoles": ROLES})
        yield first, second


def asked(two: tuple[FakeAdmin, FakeAdmin]) -> UserPlan:
    """Return the plan for the users of the first server on the second."""
    with ExitStack() as opened:
        first, second = (opened.enter_context(AdminClient(Target(server.url))) for server in two)
        return plan_users(first, second)


def test_who_is_made(two: tuple[FakeAdmin, FakeAdmin]) -> None:
    """Missing users get the root role of the same name, and no mail is sent. A user whose role is missing is not moved."""
    there: dict[str, Any] = {"users": [{"username": "Admin"}, {"email": "bo@EXAMPLE.com"}]}
    two[1].answers[PATH] = Answer(200, there | {"rootRoles": [{"id": 5, "name": "Editor"}]})
    made, left = asked(two)
    body = {"username": "anna", "email": "anna@example.com", "name": "Anna", "rootRole": 5, "sendEmail": False}
    assert [(step.name, step.requests[0].body) for step in made] == [("anna", body)] and left == ["carl"]


def test_a_server_without_users(two: tuple[FakeAdmin, FakeAdmin]) -> None:
    """If the target does not list users, no user is moved. If the source does not list users, the users are unknown."""
    assert asked(two) == ((), ["admin", "anna", "Bo@example.com", "carl"])
    assert asked((two[1], two[0])) == ((), None)
