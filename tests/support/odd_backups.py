"""Backups with one odd value, and what a server has to answer after the restore of one (decision 0059)."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import insert, update

from flagsvc.core.errors import BackupError
from flagsvc.server.api.routes import ROUTES
from flagsvc.server.runtime import PAGE_ROUTES
from flagsvc.server.store import schema
from flagsvc.server.store.seed.apply import apply_seed, parse_seed
from flagsvc.server.store.store import Store
from support.backups import OTHERS, RICH, THEN, WHO, backup_of, remade, restored
from support.flagservers import BACKEND_SECRET, FRONTEND_SECRET, GIVEN, AppClient, merged

PAYLOAD = {"type": "json", "value": '{"a": [1]}'}
VARIANT = {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "userId", "payload": PAYLOAD}
MORE: dict[str, Any] = {
    "environments": [{"name": "odd", "type": "test", "sortOrder": 7}],
    "strategyTypes": [
        {"name": "office", "title": "Office", "parameters": [{"name": "floor", "type": "list", "required": True}]}
    ],
    "segments": [
        {
            "name": "office",
            "project": "shop",
            "constraints": [{"contextName": "appName", "operator": "STR_CONTAINS", "values": ["a"], "inverted": True}],
        }
    ],
    "features": [{"name": "rich", "project": "shop", "enabled": ["development", "production"], "stale": True}],
    "strategies": [
        {
            "feature": "rich",
            "environment": environment,
            "name": "flexibleRollout",
            "title": "Half",
            "parameters": {"rollout": "50", "stickiness": "default", "groupId": "rich"},
            "constraints": [
                {"contextName": "userId", "operator": "IN", "values": ["1", "2"], "caseInsensitive": False},
                {"contextName": "currentTime", "operator": "DATE_AFTER", "value": "2025-01-01T00:00:00Z"},
                {"contextName": "appName", "operator": "SEMVER_EQ", "value": "1.2.3"},
                {"contextName": "userId", "operator": "NUM_EQ", "value": "5"},
            ],
            "variants": [VARIANT],
            "segments": ["office"],
        }
        for environment in ("development", "production")
    ],
    "users": [{"name": "eve", "email": "eve@example.com", "rootRole": "viewer"}],
}
"""What a seed gives on top, so that every JSON column has every member."""
FILLED: dict[str, dict[str, Any]] = {
    "applications": {"description": "d", "url": "https://example.com", "color": "red", "icon": "web"},
    "application_instances": {"sdk_version": "a:1", "sdk_type": "backend", "started": THEN, "client_ip": "::1"},
    "projects": {"feature_limit": 100, "naming_example": "a-b", "naming_description": "words"},
    "feature_environments": {"variants": [VARIANT | {"overrides": [{"contextName": "userId", "values": ["1"]}]}]},
    "addons": {
        "parameters": {"url": "http://127.0.0.1:1/", "bodyTemplate": "{{event.type}}", "customHeaders": '{"X-A": "b"}'},
        "projects": ["shop"],
        "environments": ["production"],
    },
}
"""Columns that are filled besides, by table."""
DEEP: Any = json.loads("[" * 500 + "]" * 500)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, float("nan"), float("inf"), 2**31, 2**53 + 1, 2**62, -(2**63), 2**70, 10**400),
    *("", "x", "5", "*", ".", "a/b", "\0", "\ud800", "💡" * 300, "x" * 5000, "2025-01-01T00:00:00+00:00", "0001-01-01"),
    *([], [5], ["x"], [None], [[]], [{}], {}, {"x": 5}, {"name": None}, {"name": "x", "value": []}, DEEP, {"x": DEEP}),
)
SKIPPED = ("/ui/stream", "/ui/static/", "/docs/")
"""Routes that read nothing of the database, or never end."""
PLACES: Mapping[str, str] = {
    "featureName": "rich",
    "projectId": "shop",
    "environment": "production",
    "id": "1",
    "name": "production",
    "child": "Cart-2",
    "parent": "rich",
    "appName": "web",
    "contextField": "plan",
    "type": "squad",
    "value": "web",
}
NAMES = ["rich", "cart", "Cart-2"]
MORE_PATHS = (
    *("/ui/flags/Cart-2", "/ui/strategy-types/office", "/ui/tag-types/squad", "/ui/environments/odd"),
    *("/ui/flags?q=a", "/ui/try?environments=production&flags=rich", "/ui/compare?from=development&to=production"),
    *("/ui/segments/2", "/ui/people/2", "/api/admin/search/events?query=a", "/api/admin/strategies/office"),
    *("/api/admin/projects/shop/features/rich?variantEnvironments=true"),
)


class Case(NamedTuple):
    """A value that one member of one row gets: `path` leads to it, first the column."""

    line: int
    table: str
    path: tuple[str | int, ...]
    value: Any

    def __str__(self) -> str:
        shown = json.dumps(self.value)[:60]
        return f"{self.table}.{'.'.join(map(str, self.path))} = {shown} (line {self.line})"


def fill_more(store: Store) -> None:
    """Put something into every column of every table, and the tokens of GIVEN."""
    with store.writing(WHO) as tx:
        apply_seed(tx, parse_seed(merged(merged(RICH, GIVEN), MORE) | {"maintenance": False}))
        for name, rows in OTHERS.items():
            tx.db.execute(insert(schema.METADATA.tables[name]), rows)
        for name, values in FILLED.items():
            tx.db.execute(update(schema.METADATA.tables[name]).values(values))
        tx.record_event("feature-created", project="shop", feature="rich", data={"name": "rich"})
        tx.record_event(
            "strategy-order-changed",
            project="shop",
            feature="rich",
            environment="production",
            before={"strategyIds": ["a", "b"]},
            data={"strategyIds": ["b", "a"]},
        )


def places_in(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Yield the path to each value in a JSON value, itself first."""
    yield ()
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in members:
        yield from ((key, *path) for path in places_in(each))


def all_cases(lines: list[Any]) -> list[Case]:
    """Return every odd value at every place: of each column, and of each member of JSON once."""
    seen: set[tuple[Any, ...]] = set()
    found: list[Case] = []
    for number, line in enumerate(lines):
        for path in places_in(line["row"]) if "table" in line else ():
            kind = (line["table"], *("*" if isinstance(step, int) else step for step in path))
            if path and kind not in seen:
                seen.add(kind)
                found += [Case(number, line["table"], path, value) for value in ODD]
    return found


def sampled(cases: list[Case], each: int, random: Random) -> list[Case]:
    """Return some cases of each place."""
    places = [cases[start : start + len(ODD)] for start in range(0, len(cases), len(ODD))]
    return [case for place in places for case in random.sample(place, each)]


def backup_with(lines: list[Any], case: Case) -> io.BytesIO:
    """Return a backup with the value of a case."""
    row = deepcopy(lines[case.line])
    holder = row["row"]
    for step in case.path[:-1]:
        holder = holder[step]
    holder[case.path[-1]] = case.value
    return remade([*lines[: case.line], row, *lines[case.line + 1 :]])


def reading_paths(lines: list[Any]) -> list[str]:
    """Return a path or two for each route that reads."""
    rows = [each for each in lines if "table" in each]
    of = {name: [each["row"] for each in rows if each["table"] == name] for name in ("strategies", "events")}
    ids = [each["id"] for each in of["strategies"] if (each["feature"], each["environment"]) == ("rich", "production")]
    places = {**PLACES} | {"strategyId": ids[0], "groupId": of["events"][-1]["action"]}
    routes = [each.path for each in (*ROUTES, *PAGE_ROUTES) if each.method == "GET"]
    names = re.compile(r":(\w+)")
    found = [
        names.sub(lambda one: quote(places.get(one[1], "x")), path) for path in routes if not path.startswith(SKIPPED)
    ]
    return [*found, *MORE_PATHS, *(f"/ui/history/{each['id']}/undo" for each in of["events"])]


def faults_of(client: AppClient, paths: Sequence[str]) -> list[str]:
    """Return what a server answers with a 5xx: at some paths, to clients, and where it exports."""
    old, new = ({"unleash-client-spec": version} for version in ("4.0.0", "5.0.0"))
    answers = {path: client.get(path) for path in paths} | {
        "old SDKs": client.get("/api/client/features", token=BACKEND_SECRET, headers=old),
        "new SDKs": client.get("/api/client/features", token=BACKEND_SECRET, headers=new),
        "browsers": client.get("/api/frontend?userId=1&appName=a", token=FRONTEND_SECRET),
        "export": client.post("/api/admin/features-batch/export", {"environment": "production", "features": NAMES}),
    }
    return [f"{name}: {answer.status}" for name, answer in answers.items() if answer.status >= 500]


def outcome(client: AppClient, lines: list[Any], paths: Sequence[str], case: Case) -> str:
    """Restore the backup of a case, and return the reason why it is refused; empty if all works after it.

    Raises AssertionError where something does not.
    """
    store = client.server.store
    try:
        restored(store, backup_with(lines, case), replace=True)
    except BackupError as error:
        return str(error)
    assert faults_of(client, paths) == [], case
    restored(store, backup_of(store), replace=True)
    return ""
