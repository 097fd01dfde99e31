"""The admin API of the real server and of ours, call by call: the same statuses and bodies (the admin API's features, strategies,
environments and projects; import validation 5; 6.3).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import RemoteDisconnected
from typing import Any

import psycopg
import pytest

from flagsvc.server.api.admin import dependencies, environments, feature_environments, features, projects, search, strategies
from flagsvc.server.api.pipeline import Router
from flagsvc.server.api.routes import ROUTES
from support import admin_calls as some
from support import processes
from support.flagservers import ADMIN_SECRET, app_client
from support.server_pair import filled

PARTS = (
    some.CREATING,
    some.CHANGING,
    some.STRATEGIES,
    some.SWITCHING,
    some.VARIANTS,
    some.DEPENDING,
    some.ARCHIVING,
    some.CHECKING,
    some.PLACES,
    some.LISTS,
)
ROWS = tuple(itertools.chain(*PARTS))
MODULES = (dependencies, environments, feature_environments, features, projects, search, strategies)
OURS = {
    *("createEnvironment", "removeEnvironment", "updateEnvironment", "validateEnvironmentName"),
    *("createProject", "deleteProject", "updateProject", "updateProjectEnterpriseSettings", "validateProject"),
}
"""Operations that the open-source edition does not have (decision 0024)."""
LINKS = {"createFeatureLink", "updateFeatureLink", "deleteFeatureLink", "addFavoriteFeature", "removeFavoriteFeature"}
"""Operations that `admin_call_rows_tags.py` compares."""
GIVEN: dict[str, Any] = {
    "projects": [
        {
            "id": "named",
            "name": "Named",
            "environments": ["development"],
            "featureNaming": {"pattern": "a.*", "example": "abc", "description": "some words"},
        },
        {"id": "small", "name": "Small", "environments": [], "featureLimit": 1},
        {"id": "gone", "name": "Gone", "environments": [], "archived": True},
    ]
}
REAL = (
    "insert into projects (id, name, archived_at) values "
    "('named', 'Named', null), ('small', 'Small', null), ('gone', 'Gone', now())",
    "insert into project_environments (project_id, environment_name) values ('named', 'development')",
    "insert into project_settings (project, default_stickiness, project_mode, feature_limit, feature_naming_pattern, "
    "feature_naming_example, feature_naming_description) values "
    "('named', 'default', 'open', null, 'a.*', 'abc', 'some words'), ('small', 'default', 'open', 1, null, null, null)",
)
"""The same projects on the real server, which makes none over its API."""
IGNORED = frozenset(
    {
        *("id", "createdAt", "archivedAt", "updatedAt", "enteredStageAt"),  # different by nature
        *("createdBy", "collaborators"),  # it gives every admin token one name, and names pictures on another host
        *("lifecycle", "onboardingStatus", "stats"),  # ours has none
        *("health", "technicalDebt"),  # it counts them once in a while
        "apiTokenCount",  # the two were not given the same tokens
        "projectApiTokenCount",
    }
)
"""Members of answers that are not compared."""
UNSORTED = ("features", "featureTypeCounts")
"""Lists whose order is the database's."""


def comparable(value: Any, key: str = "") -> Any:
    """Return a JSON value without the parts that are not compared."""
    if isinstance(value, dict):
        return {name: comparable(held, name) for name, held in value.items() if name not in IGNORED}
    if not isinstance(value, list):
        return value
    held = [comparable(each) for each in value]
    if key in UNSORTED and all(isinstance(each, dict) for each in held):
        return sorted(held, key=lambda each: str(each.get("name", each.get("type"))))
    return held


Ask = Callable[[str, str, Any], processes.Answer]


def seen(ask: Ask, rows: Iterable[some.Row], kept: dict[str, str]) -> list[tuple[str, int, Any]]:
    """Return a server's answers to each call: the call, the status, and the compared part of the body."""
    found = []
    for row in rows:
        answer = ask(row.method, filled(row.path, kept), filled(row.body, kept))
        body: Any = answer.json() if answer.body else None
        if row.keep:
            kept[row.keep] = (body[0] if isinstance(body, list) else body)["id"]
        call = f"{row.method} {row.path} {row.body!r}"
        ids = {text: name for name, text in kept.items()}
        found.append((call, answer.status, named(comparable(body), ids)))
    return found


def named(value: Any, ids: dict[str, str]) -> Any:
    """Return a value in which an id, or a text that holds it, shows its name."""
    if isinstance(value, list):
        return [named(each, ids) for each in value]
    if isinstance(value, dict):
        return {name: named(each, ids) for name, each in value.items()}
    for text, name in ids.items() if isinstance(value, str) else ():
        value = value.replace(text, name)
    return value


@contextmanager
def real() -> Iterator[Ask]:
    """Run the real server with the same projects as ours."""
    with processes.postgresql() as database, processes.unleash_server(database) as server:
        with psycopg.connect(database, autocommit=True) as connection:
            for statement in REAL:
                connection.execute(statement)
        yield asking(lambda method, path, body, headers: processes.ask(
            f"{server.url}/admin{path}", method=method, headers=headers | {"Authorization": processes.ADMIN_TOKEN}, body=body
        ))  # fmt: skip


def asking(send: Callable[[str, str, Any, dict[str, str]], processes.Answer]) -> Ask:
    """Return what sends a call; a change says that it is JSON, with a body or without."""

    def ask(method: str, path: str, body: Any) -> processes.Answer:
        return send(method, path, body, {"Content-Type": "application/json"} if method in ("POST", "PUT") else {})

    return ask


@pytest.fixture(scope="module")
def expected() -> list[tuple[str, int, Any]]:
    """Return the real server's answers to all calls.

    The real server once dropped a connection without an answer. Then all calls are made again, on a new one.
    """
    try:
        with real() as ask:
            return seen(ask, ROWS, {})
    except RemoteDisconnected:
        with real() as ask:
            return seen(ask, ROWS, {})


def agree(row: some.Row, ours: tuple[str, int, Any], theirs: tuple[str, int, Any]) -> bool:
    """Return whether our server answered a call as the real one, or differed as the row says."""
    if not row.why:
        return ours == theirs
    return (ours[1], theirs[1]) == (row.ours or theirs[1], theirs[1]) and theirs[1] != row.ours


def test_it_answers_as_the_real_server(expected: list[tuple[str, int, Any]], database_url: str) -> None:
    """Status and body are the same, call by call, but for what differs on purpose."""
    with app_client(database_url, given=GIVEN) as client:
        ask = asking(
            lambda method, path, body, headers: client.ask(method, f"/api/admin{path}", body, token=ADMIN_SECRET, headers=headers)
        )
        found = seen(ask, ROWS, {})
    pairs = zip(ROWS, found, expected, strict=True)
    different = [(ours, theirs) for row, ours, theirs in pairs if not agree(row, ours, theirs)]
    assert not different, f"{len(different)} of {len(ROWS)}: {different[:3]}"


def test_every_route_is_compared() -> None:
    """Each route of the features, strategies, environments and projects is called."""
    router = Router(ROUTES)
    called = {router.matches(f"/api/admin{row.path.partition('?')[0]}")[row.method].route for row in ROWS}
    every = {route.operation for module in MODULES for route in module.ROUTES}
    assert every - OURS - LINKS <= {route.operation for route in called}
