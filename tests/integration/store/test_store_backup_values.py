"""A restore takes what the server itself writes, and refuses every other value, or the server reads it without an error."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from hashlib import sha256
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from sqlalchemy import insert, update

from flagsvc.core.errors import BackupError
from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.server.api.routes import ROUTES
from flagsvc.server.application import PAGE_ROUTES
from flagsvc.server.store import schema
from flagsvc.server.store.backup.lines import HEAVIEST, MIB, weight_of
from flagsvc.server.store.backup.restoring import check_backup
from flagsvc.server.store.backup.values import SHAPES
from flagsvc.server.store.schema import METADATA
from flagsvc.server.store.store import Store
from support import admin_calls
from support.backups import OTHERS, RICH, THEN, WHO, backup_of, lines_of, remade, restored, rows_of, with_value
from support.flagservers import BACKEND_SECRET, FRONTEND_SECRET, GIVEN, AppClient, app_client, merged
from support.planting import plant
from support.same_inputs import thinned

PAYLOAD = {"type": "json", "value": '{"a": [1]}'}
VARIANT = {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "userId", "payload": PAYLOAD}
MORE: dict[str, Any] = {
    "environments": [{"name": "odd", "type": "test", "sortOrder": 7}],
    "strategyTypes": [{"name": "office", "title": "Office", "parameters": [{"name": "floor", "type": "list", "required": True}]}],
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
        plant(tx, merged(merged(RICH, GIVEN), MORE) | {"maintenance": False})
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


def sampled(cases: list[Case], random: Random) -> list[Case]:
    """Return a case of each place."""
    places = [cases[start : start + len(ODD)] for start in range(0, len(cases), len(ODD))]
    return [random.choice(place) for place in places]


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
    found = [names.sub(lambda one: quote(places.get(one[1], "x")), path) for path in routes if not path.startswith(SKIPPED)]
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


EVERY = {"sqlite": 3, "postgresql": 12}
"""A usual run tries one odd value of each so many places, by kind of database."""
PARTS = 8
"""A usual run asks so small a part of the routes after each restore."""

REASON = re.compile(r"line \d+ (of the backup: expected .* as `\w+.*` of the table|of the backup: the database|is no JSON)")


@pytest.fixture
def client(database_url: str) -> Iterator[AppClient]:
    """Give a server with something in every column."""
    with app_client(database_url, seeded=False) as client:
        fill_more(client.server.store)
        yield client


def test_every_json_column_has_a_shape() -> None:
    """The type of a column says nothing of its JSON, so a table of shapes does; and it names only columns that exist."""
    names = {f"{table.name}.{column.name}": column for table in METADATA.sorted_tables for column in table.c}
    json_columns = {name for name, column in names.items() if "JSON" in str(column.type)}
    assert json_columns - {"deliveries.sample", "state.value"} <= SHAPES.keys() <= names.keys()


def test_one_odd_value(client: AppClient) -> None:
    """Each is refused with its line and its column, or all that reads works, and another backup restores."""
    lines = lines_of(backup_of(client.server.store))
    paths = reading_paths(lines)
    refused = 0
    every = EVERY[client.server.store.engine.dialect.name]
    cases = thinned(sampled(all_cases(lines), Random(1))[::every])
    for index, case in enumerate(cases):
        reason = outcome(client, lines, paths[index % PARTS :: PARTS], case)
        assert not reason or REASON.search(reason), (case, reason)
        refused += bool(reason)
    assert refused > len(cases) / 3


@pytest.mark.long
def test_every_odd_value(client: AppClient) -> None:
    """The same with all of them, and every route."""
    lines = lines_of(backup_of(client.server.store))
    paths = reading_paths(lines)
    for case in all_cases(lines):
        outcome(client, lines, paths, case)


def test_what_the_admin_api_writes(database_url: str) -> None:
    """After hundreds of calls, many of them refused, the rows of a backup come back as they were."""
    given = {"projects": [{"id": "named"}, {"id": "small", "featureLimit": 1}, {"id": "gone", "archived": True}]}
    rows = rows_in(admin_calls)
    with app_client(database_url, given=given) as client:
        codes = [client.ask(row.method, f"/api/admin{row.path}", row.body).status for row in rows if "{" not in row.path]
        made = backup_of(client.server.store)
        assert len([code for code in codes if code < 300]) > 200
        assert restored(client.server.store, made, replace=True).notes == []
        assert rows_of(backup_of(client.server.store)) == rows_of(made)


def rows_in(part: Any) -> list[admin_calls.Row]:
    """Return the calls of all tables of a module."""
    tables = [each for each in vars(part).values() if isinstance(each, list)]
    return [row for table in tables for row in table if isinstance(row, admin_calls.Row)]


def variant(name: str, weight: object, **more: object) -> dict[str, object]:
    """Return a variant."""
    return {"name": name, "weight": weight, "stickiness": "userId"} | more


ODD_VARIANTS = [
    [variant("blue", 500.5), variant("green", 499.5)],
    [variant("blue", 500, payload={"type": "number", "value": 7}), variant("green", 500, payload={"a": 1})],
    [variant("blue", 500, payload={}), variant("green", 500, payload={"type": "json", "value": {"a": [1]}})],
    [variant("blue", 900, overrides=[{"contextName": "userId", "values": [5, "7", None]}]), variant("green", 100)],
    [variant("blue", 900, overrides=[{"contextName": "userId", "values": "7"}]), variant("green", 100)],
    [variant("blue", 900, overrides=[{"contextName": "userId", "values": [5]}]), variant("green", 100)],
]
"""Variants that earlier versions took from seeds or by PATCH."""


@pytest.mark.one_database
@pytest.mark.parametrize("table", ["feature_environments", "strategies"])
def test_variants_of_an_older_version(client: AppClient, table: str) -> None:
    """A backup with variants that this version refuses restores. Clients get the same variants, and all reads work."""
    store = client.server.store
    lines = lines_of(backup_of(store))
    for variants in ODD_VARIANTS:
        notes = restored(store, remade(with_value(table, variants=variants)(lines)), replace=True).notes
        assert notes and all(note.endswith("odd values of the variants blue, green are mended") for note in notes)
        mended = next(each["row"]["variants"] for each in rows_of(backup_of(store)) if each["table"] == table)
        assert [draw(variants, number) for number in range(200)] == [draw(mended, number) for number in range(200)]
        assert faults_of(client, reading_paths(lines_of(backup_of(store)))[::PARTS]) == []
        assert restored(store, backup_of(store), replace=True).notes == []


@pytest.mark.one_database
def test_a_payload_that_is_none(client: AppClient) -> None:
    """A variant without a payload does not get one."""
    store = client.server.store
    mixed = [variant("blue", 500, payload=None), variant("green", 500, payload=5), variant("red", 0, payload={})]
    restored(store, remade(with_value("strategies", variants=mixed)(lines_of(backup_of(store)))), replace=True)
    mended = next(each["row"]["variants"] for each in rows_of(backup_of(store)) if each["table"] == "strategies")
    assert [each.get("payload") for each in mended] == [None, None, {"type": "string", "value": ""}]


def draw(variants: list[dict[str, object]], number: int) -> object:
    """Return what an evaluation says of a flag with these variants."""
    flag = {"name": "f", "enabled": True, "strategies": [], "variants": variants}
    made = compile_document({"version": 2, "features": [flag]}, CompileOptions()).snapshot
    answer = json.loads(made.all(Context(user_id=str(number))))["toggles"][0]["variant"]
    return answer["name"], (answer.get("payload") or {}).get("value", "")


@pytest.mark.one_database
def test_a_webhook_of_an_older_version(client: AppClient) -> None:
    """A webhook that this version refuses comes back disabled, with a reason that shows no secret; all else as it was."""
    store = client.server.store
    parameters = {"url": "http://127.0.0.1:1/", "bodyTemplate": "{{#event}}", "authorization": "s3cret"}
    made = remade(with_value("addons", parameters=parameters)(lines_of(backup_of(store))))
    (note,) = restored(store, made, replace=True).notes
    assert "the webhook 1 is disabled now: " in note and "bodyTemplate" in note and "s3cret" not in note
    (row,) = [each["row"] for each in rows_of(backup_of(store)) if each["table"] == "addons"]
    assert (row["enabled"], row["parameters"]) == (False, parameters)


@pytest.mark.one_database
def test_a_line_of_many_values(client: AppClient) -> None:
    """A small file that unpacks to a line of many lists is refused before most of it is unpacked, and before it is read."""
    lines = gzip.decompress(backup_of(client.server.store).getvalue()).splitlines(keepends=True)
    lists = b"[]," * (60 * MIB)
    row = b'{"table":"events","row":{"data":[' + lists + b"[]]}}\n"
    last = json.dumps({"lines": 2, "sha256": sha256(lines[0] + row).hexdigest()}).encode() + b"\n"
    made = io.BytesIO(gzip.compress(lines[0] + row + last, 1))
    with pytest.raises(BackupError, match=f"line 2 takes more than {HEAVIEST // MIB} MiB of memory"):
        check_backup(made)
    assert made.tell() < len(made.getvalue()) / 4


@pytest.mark.one_database
def test_deep_nesting(client: AppClient) -> None:
    """A line that is nested too deeply to be read is refused."""
    lines = gzip.decompress(backup_of(client.server.store).getvalue()).splitlines(keepends=True)
    row = b'{"table":"events","row":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    with pytest.raises(BackupError, match="line 2 is no JSON object"):
        check_backup(io.BytesIO(gzip.compress(lines[0] + row)))


def test_the_weight_of_real_rows() -> None:
    """A segment with a million users, before and after a change, is far below the bound."""
    side = {"constraints": [{"contextName": "userId", "operator": "IN", "values": [f"{n:09}" for n in range(10**6)]}]}
    assert weight_of(json.dumps({"before": side, "data": side}).encode()) < HEAVIEST / 4
