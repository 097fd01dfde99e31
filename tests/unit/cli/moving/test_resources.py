"""The resources that flags use: which of them a move creates, changes or leaves alone on the target server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.target import Target
from flagsvc.cli.moving.resources import KINDS, PATH, AdminRequest, MoveStep, UserPlan, plan_steps, plan_users
from support.fake_admin import Answer, FakeAdmin, fake_admin

KIND = {kind.title: kind for kind in KINDS}
PROJECTS = {"shop": "default"}


def found(title: str, there: list[Any], here: list[Any]) -> list[MoveStep]:
    """Return the steps that give `here` the resources of `there`."""
    return list(plan_steps(KIND[title], there, here, PROJECTS))


HOURS = {"name": "opening hours", "editable": True, "description": "d", "parameters": [{"name": "from", "type": "string"}]}


def test_strategy_types() -> None:
    """Custom strategy types are created, changed, and marked as deprecated. Built-in types are skipped."""
    assert found("strategy type", [HOURS | {"editable": False}], []) == []
    body = {name: HOURS[name] for name in ("name", "description", "parameters")}
    [made] = found("strategy type", [HOURS], [])
    assert made == ("strategy type", "opening hours", "new", (AdminRequest("POST", "/api/admin/strategies", body),))
    [changed] = found("strategy type", [HOURS], [HOURS | {"parameters": [], "deprecated": False}])
    where = "/api/admin/strategies/opening%20hours"
    assert changed.requests == (AdminRequest("PUT", where, {"description": "d", "parameters": HOURS["parameters"]}),)
    old = HOURS | {"deprecated": True}
    [marked] = found("strategy type", [old], [HOURS])
    assert marked.requests == (AdminRequest("POST", f"{where}/deprecate"),)
    assert found("strategy type", [old], [old]) == found("strategy type", [HOURS], [old]) == []


def test_context_fields() -> None:
    """An existing context field gets the missing legal values, and keeps everything else."""
    there = {"name": "region", "description": "theirs", "legalValues": [{"value": "eu", "description": "x"}, {"value": "us"}]}
    own = {"name": "region", "description": "own", "stickiness": True, "legalValues": [{"value": "eu"}, {"value": "au"}]}
    [step] = found("context field", [there], [own])
    values = [{"value": "eu"}, {"value": "au"}, {"value": "us"}]
    body = {"description": "own", "stickiness": True, "legalValues": values}
    assert step.requests == (AdminRequest("PUT", "/api/admin/context/region", body),)
    assert found("context field", [there | {"legalValues": []}], [own]) == []


def test_tag_types() -> None:
    """A missing tag type is created. An existing one does not change."""
    team = {"name": "team", "description": "d", "icon": "T", "color": None}
    [step] = found("tag type", [team], [{"name": "simple"}])
    assert step.requests[0].body == {"name": "team", "description": "d", "icon": "T"}
    assert found("tag type", [team], [{"name": "team", "icon": "other"}]) == []


BETA = {"id": 7, "name": "beta", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]}


def test_segments() -> None:
    """Segments are matched by name and written with the target's id. Default values are no change; a removed project is one."""
    [step] = found("segment", [BETA], [{"id": 7, "name": "other"}])
    body = {"name": "beta", "constraints": BETA["constraints"]}
    assert step.requests == (AdminRequest("POST", "/api/admin/segments", body),)
    [step] = found("segment", [BETA], [{"id": 3, "name": "beta", "constraints": [], "description": ""}])
    assert step == ("segment", "beta", "changed", (AdminRequest("PUT", "/api/admin/segments/3", body),))
    filled = [BETA["constraints"][0] | {"inverted": False, "caseInsensitive": False, "value": None}]  # type: ignore[index]
    assert found("segment", [BETA], [{"id": 3, "name": "beta", "constraints": filled, "description": ""}]) == []
    [step] = found("segment", [BETA], [BETA | {"project": "default"}])
    assert step.requests[0].body == {"name": "beta", "constraints": BETA["constraints"], "project": None}


@pytest.mark.parametrize("title", ["strategy type", "segment"])
@pytest.mark.parametrize("empty", [{}, {"description": None}, {"description": ""}])
def test_removed_description(title: str, empty: dict[str, Any]) -> None:
    """A description that only the target has is set to empty: a server keeps omitted fields, so each run would repeat it."""
    thing = {"id": 3, "name": "beta", "parameters": [], "constraints": []}
    [step] = found(title, [thing | empty], [thing | {"description": "old"}])
    assert step.kind == "changed" and (step.requests[0].body or {})["description"] == ""
    assert found(title, [thing | empty], [thing | (step.requests[0].body or {})]) == []
    assert found(title, [thing | {"description": "new"}], [thing | {"description": "new"}]) == []


@pytest.mark.parametrize(("project", "becomes"), [("shop", "default"), (None, None), ("", None)])
def test_projects(project: str | None, becomes: str | None) -> None:
    """A segment's project is replaced by the project's new name. A segment of a project that is not moved is skipped."""
    [step] = found("segment", [BETA | {"project": project}, BETA | {"name": "x", "project": "other"}], [])
    assert step.requests[0].body is not None and step.requests[0].body.get("project") == becomes


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
