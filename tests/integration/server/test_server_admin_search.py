"""The search on the admin API (the real server's /api/admin/search/features)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from flagsvc.server.store.resources.usage import UsageCount, add_counts
from flagsvc.testing import FakeClock
from support.databases import KINDS, fresh_database
from support.flagservers import VIEWER_SECRET, AppClient, app_client

NOW = datetime(2026, 3, 4, 12, 34, 56, 789_000, tzinfo=UTC)
URL = "/api/admin/search/features"
FEATURES = "/api/admin/projects/default/features"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "other", "name": "O"}],
    "segments": [{"name": "beta"}],
    "features": [
        {"name": "delta", "type": "experiment"},
        {"name": "alpha", "description": "The FIRST letter"},
        {"name": "charlie", "project": "other", "stale": True},
        {"name": "bravo"},
        {"name": "old", "archived": True},
    ],
    "strategies": [{"feature": "bravo", "environment": "production", "name": "default", "segments": ["beta"]}],
}


@pytest.fixture(scope="module", params=KINDS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppClient]:
    """Give a server with a few features at 12:34:56, on each kind of database."""
    with ExitStack() as parts:
        url = str(tmp_path_factory.mktemp("search") / "flags.db")
        if request.param == "postgresql":
            url = parts.enter_context(fresh_database(request.getfixturevalue("postgresql_cluster")))
        yield prepared(parts.enter_context(app_client(url, given=GIVEN, clock=FakeClock(NOW.timestamp()))))


def prepared(client: AppClient) -> AppClient:
    """Return a server after some calls."""
    client.post(FEATURES, {"name": "echo", "tags": [{"type": "simple", "value": "team"}]})
    client.post(f"{FEATURES}/echo/dependencies", {"feature": "alpha"})
    with client.server.store.recording() as tx:
        add_counts(tx, [UsageCount("bravo", "app", "production", NOW, 3, 4, {})])
    return client


def names(client: AppClient, query: str) -> list[str]:
    """Return the names of what is found."""
    answer = client.get(f"{URL}?{query}", token=VIEWER_SECRET)
    assert answer.status == 200, answer.body
    return [each["name"] for each in answer.json()["features"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["delta", "alpha", "charlie", "bravo", "echo"]),
        ("query=LPH,first", ["alpha"]),
        ("query=first%20letter", ["alpha"]),
        ("query=simple:te", ["echo"]),
        ("query=%25", []),
        ("query=,%20,", ["delta", "alpha", "charlie", "bravo", "echo"]),
        ("project=IS:other", ["charlie"]),
        ("project=IS_NOT:other&sortBy=name", ["alpha", "bravo", "delta", "echo"]),
        ("project=IS_ANY_OF:other,%20default&type=IS:experiment", ["delta"]),
        ("type=IS_NONE_OF:experiment,release", []),
        ("state=IS:stale", ["charlie"]),
        ("state=IS:nonsense", []),
        ("createdBy=IS:1", ["echo"]),
        ("createdBy=IS:x", []),
        ("createdBy=IS:--5", []),
        ("createdBy=IS:%C2%B2", []),
        ("createdBy=IS_ANY_OF:-5,1,x,1", ["echo"]),
        ("createdBy=IS_NOT:x&sortBy=name&limit=1", ["alpha"]),
        ("state=IS_ANY_OF:stale,active&sortBy=name&limit=1", ["alpha"]),
        ("state=IS_NOT:stale&sortBy=name&limit=1", ["alpha"]),
        ("tag=INCLUDE_ANY_OF:simple:other,simple:team", ["echo"]),
        ("tag=EXCLUDE_IF_ANY_OF:simple:other,simple:team&sortBy=name&limit=1", ["alpha"]),
        ("segment=INCLUDE_ALL_OF:beta,gamma", []),
        ("tag=INCLUDE:simple:team", ["echo"]),
        ("tag=INCLUDE_ALL_OF:simple:team,simple:other", []),
        ("tag=EXCLUDE_ALL:simple:team,simple:other&sortBy=name&limit=1", ["alpha"]),
        ("tag=DO_NOT_INCLUDE:simple:team&project=IS:default&sortBy=name", ["alpha", "bravo", "delta"]),
        ("segment=INCLUDE_ANY_OF:beta,gamma", ["bravo"]),
        ("archived=IS:true", ["old"]),
        ("sortBy=name&sortOrder=desc&limit=2&offset=1", ["delta", "charlie"]),
        ("sortBy=nonsense&limit=1", ["delta"]),
        ("limit=0&offset=-5&sortBy=name", ["alpha", "bravo", "charlie", "delta", "echo"]),
        ("offset=99999999999999999999999&limit=1", ["delta"]),
    ],
)
def test_searching(client: AppClient, query: str, found: list[str]) -> None:
    """Filters narrow the result, words widen it; without a sort order the oldest feature comes first."""
    assert names(client, query) == found


@pytest.mark.parametrize("query", ["project=other", "tag=INCLUDE:x", "archived=true", "sortOrder=up", "segment=x"])
def test_filters_of_no_known_form(client: AppClient, query: str) -> None:
    """The error names the parameter."""
    answer = client.get(f"{URL}?{query}")
    assert (answer.status, answer.json()["name"]) == (400, "BadDataError")
    assert query.partition("=")[0] in answer.json()["details"][0]["path"]


def test_a_filter_that_fits_in_many_ways(client: AppClient) -> None:
    """The time of the answer grows only with the filter's length."""
    started = time.process_time()
    for name, text in (("tag", "INCLUDE:a:b" + ",a:b" * 1500), ("project", "IS:" + ",a" * 1500)):
        assert client.get(f"{URL}?{name}={quote(text)}%0A%0A").status == 400
    assert time.process_time() - started < 5
    assert client.get(f"{URL}?tag={'a' * 16_400}").status == 414


@pytest.mark.parametrize(("name", "operator", "most"), [("query", "", 50), ("type", "IS:", 100), ("tag", "INCLUDE:", 100)])
def test_more_than_a_search_may_hold(client: AppClient, name: str, operator: str, most: int) -> None:
    """Many words and values are accepted, too many are refused with the parameter's name; repeated ones count once."""
    many = [f"a:{number}" for number in range(most)]
    assert names(client, f"{name}={operator}{','.join(many * 2)}") == []
    answer = client.get(f"{URL}?{name}={operator}{','.join(many)},a:x")
    expected = {"message": f'"{name}" must contain less than or equal to {most} items.'}
    assert (answer.status, answer.json()["details"]) == (400, [expected])


def test_what_is_shown(client: AppClient) -> None:
    """A result shows what lists show, and the project, relatives, segments and counts; the total covers all pages."""
    answer = client.get(f"{URL}?limit=1&sortBy=name&project=IS:default").json()
    assert answer["total"] == 4
    assert answer["features"][0]["dependencyType"] == "parent"
    bravo, echo = client.get(f"{URL}?sortBy=name&offset=1&limit=1").json()["features"][0], names(client, "query=echo")
    assert echo == ["echo"]
    assert (bravo["project"], bravo["segments"], bravo["dependencyType"]) == ("default", ["beta"], None)
    production = bravo["environments"][1]
    assert (production["yes"], production["no"], production["hasEnabledStrategies"]) == (3, 4, True)
    shown = client.get(f"{FEATURES}/bravo").json()["environments"][1]
    assert (shown["yes"], shown["no"]) == (3, 4)
    assert bravo["lastSeenAt"] is not None
