"""The order of strategies: a server's export omits it. The command requests it and writes it, so that an import restores it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flagsvc.cli.export import sort_strategies
from support.cli_helpers import Called, Flagsvc
from support.fake_admin import EMPTY, TOKEN, Answer, FakeAdmin


def strategy(number: int, flag: str = "checkout", **more: Any) -> dict[str, Any]:
    """Return a strategy of an export."""
    groups = {"groupId": f"g{number}", "rollout": "100"}
    return {"id": f"id-{number}", "name": "flexibleRollout", "featureName": flag, "parameters": groups} | more


EXPORTED = EMPTY | {
    "features": [
        {"name": "checkout", "project": "shop"},
        {"name": "a b/ü", "project": "shop"},
        {"name": "one", "project": "shop"},
    ],
    "featureStrategies": [
        strategy(2),
        strategy(0),
        strategy(1),
        strategy(8, "a b/ü"),
        strategy(7, "a b/ü"),
        strategy(9, "one"),
    ],
}
FLAGS = "/api/admin/projects/shop/features"
PLACES = {"checkout": [(0, 0), (1, 1), (2, 2)], "a%20b%2F%C3%BC": [(7, 3), (8, 3)]}
"""Flag, escaped for a path → numbers and sort orders of its strategies, in the order of the admin API."""
DOCUMENT = "/api/client/features"


def path_of(flag: str) -> str:
    """Return the path of the strategies of a flag."""
    return f"{FLAGS}/{flag}/environments/production/strategies"


@pytest.fixture
def run(tmp_path: Path, flagsvc: Flagsvc, admin: FakeAdmin) -> Flagsvc:
    """Return a function that exports a project of a fake server, whose export mixes the strategies of two flags."""
    admin.say("export", 200, EXPORTED)
    for flag, rows in PLACES.items():
        admin.answers[path_of(flag)] = Answer(200, [{"id": f"id-{n}", "sortOrder": order} for n, order in rows])

    def call(*arguments: str) -> Called:
        env = {"FLAGSVC_URL": admin.url, "FLAGSVC_ADMIN_TOKEN": TOKEN}
        return flagsvc("export", "--project", "shop", "--environment", "production", *arguments, env=env)

    return call


def written(called: Called) -> dict[str, list[tuple[str, Any]]]:
    """Return the strategies of a file by flag, each with its sort order."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for item in json.loads(called.out)["featureStrategies"]:
        found.setdefault(item["featureName"], []).append((item["id"], item.get("sortOrder")))
    return found


def test_the_order_is_written(run: Flagsvc, admin: FakeAdmin) -> None:
    """Strategies are written in order with a sort order. A flag with one strategy needs no request."""
    assert written(run()) == {
        "checkout": [("id-0", 0), ("id-1", 1), ("id-2", 2)],
        "a b/ü": [("id-7", 0), ("id-8", 1)],
        "one": [("id-9", 0)],
    }
    asked = [asked.path for asked in admin.asked if asked.path.endswith("/strategies")]
    assert sorted(asked) == sorted(map(path_of, PLACES))


def test_equal_places(run: Flagsvc, admin: FakeAdmin) -> None:
    """Strategies with equal sort orders get the order that SDKs receive, which differs from the order of the admin API."""
    sent = [{key: strategy(number)[key] for key in ("name", "parameters")} for number in (8, 7)]
    admin.answers[DOCUMENT] = Answer(200, {"features": [{"name": "a b/ü", "strategies": sent}]})
    assert written(run())["a b/ü"] == [("id-8", 0), ("id-7", 1)]
    [asked] = [asked for asked in admin.asked if asked.path.startswith(DOCUMENT)]
    assert asked.path == f"{DOCUMENT}?environment=production"


def test_what_may_not_be_read(run: Flagsvc, admin: FakeAdmin) -> None:
    """If the token may not read strategies, the file has no sort orders. One warning has the number of these flags."""
    for flag in PLACES:
        admin.answers[path_of(flag)] = Answer(403, {"message": "no"})
    called = run()
    assert written(called)["checkout"] == [("id-2", None), ("id-0", None), ("id-1", None)]
    assert called.err == (
        "flagsvc export: warning: the server does not tell the order of strategies of 2 flags, and the file does not hold it: "
        "the first strategy that matches decides the variant\n"
        "flagsvc export: 3 flags written\n"
    )


def test_odd_answers(run: Flagsvc, admin: FakeAdmin) -> None:
    """An invalid answer, or one without a newer strategy, has the same effect as a missing permission."""
    for odd in ({}, [1], [{"id": "id-0"}], [{"id": "id-0", "sortOrder": 1}], [{"id": "id-0", "sortOrder": "x"}]):  # type: ignore[var-annotated]
        admin.answers[path_of("checkout")] = Answer(200, odd)
        called = run()
        assert "of 1 flag," in called.err and written(called)["checkout"][0] == ("id-2", None), odd


def test_placed_disabled_and_alike() -> None:
    """With equal sort orders, strategies that SDKs do not receive come last, and equal strategies keep their order."""
    items = [strategy(1, disabled=True), strategy(0), strategy(0, id="twin"), strategy(2)]
    rows = [{"id": item["id"], "sortOrder": 5} for item in items]
    sent = [strategy(2), strategy(0), strategy(0)]
    assert [item["id"] for item in sort_strategies(items, rows, sent)] == ["id-2", "id-0", "twin", "id-1"]
