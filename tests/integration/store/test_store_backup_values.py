"""A restore takes what the server itself writes, and refuses every other value, or the server reads it without an error."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from random import Random
from typing import Any

import pytest

from flagsvc.core.errors import BackupError
from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.server.store.backup.lines import HEAVIEST, MIB, weight_of
from flagsvc.server.store.backup.restoring import check_backup
from flagsvc.server.store.backup.values import SHAPES
from flagsvc.server.store.schema import METADATA
from support import admin_calls, admin_more_calls
from support.backups import backup_of, lines_of, remade, restored, rows_of, with_value
from support.flagservers import AppClient, app_client
from support.odd_backups import all_cases, faults_of, fill_more, outcome, reading_paths, sampled

EACH = {"sqlite": 2, "postgresql": 1}
"""The odd values of each place in a usual run, by kind of database."""
PARTS = 8
"""A usual run asks so small a part of the routes after each restore."""

REASON = re.compile(
    r"line \d+ (of the backup: expected .* as `\w+.*` of the table|of the backup: the database|is no JSON)"
)


@pytest.fixture
def client(database_url: str) -> Iterator[AppClient]:
    """Give a server with something in every column."""
    with app_client(database_url, seeded=False) as client:
        fill_more(client.server.store)
        yield client


def test_every_json_column_has_a_shape() -> None:
    """The type of a column says nothing of its JSON, so a table of shapes does; and it names no column that is not there."""
    names = {f"{table.name}.{column.name}": column for table in METADATA.sorted_tables for column in table.c}
    json_columns = {name for name, column in names.items() if "JSON" in str(column.type)}
    assert json_columns - {"deliveries.sample", "state.value"} <= SHAPES.keys() <= names.keys()


def test_one_odd_value(client: AppClient) -> None:
    """Each is refused with its line and its column, or all that reads works, and another backup restores."""
    lines = lines_of(backup_of(client.server.store))
    paths = reading_paths(lines)
    refused = 0
    each = EACH[client.server.store.engine.dialect.name]
    for index, case in enumerate(sampled(all_cases(lines), each, Random(1))):
        reason = outcome(client, lines, paths[index % PARTS :: PARTS], case)
        assert not reason or REASON.search(reason), (case, reason)
        refused += bool(reason)
    assert refused > 100 * each


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
    rows = [row for part in (admin_calls, admin_more_calls) for row in rows_in(part)]
    with app_client(database_url, given=given) as client:
        codes = [
            client.ask(row.method, f"/api/admin{row.path}", row.body).status for row in rows if "{" not in row.path
        ]
        made = backup_of(client.server.store)
        assert len([code for code in codes if code < 300]) > 200
        assert restored(client.server.store, made, replace=True).notes == []
        assert rows_of(backup_of(client.server.store)) == rows_of(made)


def rows_in(part: Any) -> list[admin_calls.Row]:
    """Return the calls of all tables of a module."""
    tables = [each for each in vars(part).values() if isinstance(each, list)]
    return [row for table in tables for row in table if isinstance(row, admin_calls.Row)]


@pytest.mark.parametrize(
    ("table", "values", "reason"),
    [
        (
            "strategies",
            {"constraints": 5},
            r"line \d+ of the backup: expected a list as `constraints` of the table `strategies`",
        ),
        (
            "strategies",
            {"variants": [{"name": "a"}]},
            r"expected `weight` as `variants\[0\]` of the table `strategies`",
        ),
        ("strategies", {"parameters": []}, "expected an object of texts as `parameters` of the table `strategies`"),
        (
            "strategies",
            {"feature": "none"},
            "expected the key of a row of `features` as `feature` of the table `strategies`",
        ),
        (
            "segments",
            {"constraints": [{"contextName": "a", "operator": "IN", "values": 5}]},
            r"`constraints\[0\].values`",
        ),
        ("tokens", {"kind": "session"}, "expected one of admin, backend, client, frontend, personal as `kind`"),
        ("tokens", {"hash": "x"}, "expected a SHA-256 in hex as `hash`"),
        ("state", {"key": "changeRequests", "value": [{}]}, r"expected `project` as `value\[0\]` of the table `state`"),
        ("events", {"data": {"a": "\ud800"}}, "expected an object of at most 100 levels, without a NUL.* as `data`"),
        ("events", {"data": {"a": json.loads("[" * 100 + "]" * 100)}}, "expected an object of at most 100 levels"),
        ("features", {"stale": None}, "expected true or false as `stale`"),
    ],
)
def test_refused(client: AppClient, table: str, values: dict[str, Any], reason: str) -> None:
    """The reason names the line, the place and the table, and nothing has changed."""
    store = client.server.store
    before = rows_of(backup_of(store))
    with pytest.raises(BackupError, match=reason):
        restored(store, remade(with_value(table, **values)(lines_of(backup_of(store)))), replace=True)
    assert rows_of(backup_of(store)) == before


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


@pytest.mark.parametrize("table", ["feature_environments", "strategies"])
@pytest.mark.parametrize("variants", ODD_VARIANTS)
def test_variants_of_an_older_version(client: AppClient, table: str, variants: list[dict[str, object]]) -> None:
    """A backup with variants that this version refuses restores. Clients get the same variants, and all reads work."""
    store = client.server.store
    made = remade(with_value(table, variants=variants)(lines_of(backup_of(store))))
    notes = restored(store, made, replace=True).notes
    assert notes and all(note.endswith("odd values of the variants blue, green are mended") for note in notes)
    given, mended = (
        variants,
        next(each["row"]["variants"] for each in rows_of(backup_of(store)) if each["table"] == table),
    )
    assert [draw(given, number) for number in range(200)] == [draw(mended, number) for number in range(200)]
    lines = lines_of(backup_of(store))
    assert faults_of(client, reading_paths(lines)[::PARTS]) == []
    assert restored(store, backup_of(store), replace=True).notes == []


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


def test_a_webhook_of_an_older_version(client: AppClient) -> None:
    """A webhook that this version refuses comes back disabled, with a reason that shows no secret; all else as it was."""
    store = client.server.store
    parameters = {"url": "http://127.0.0.1:1/", "bodyTemplate": "{{#event}}", "authorization": "s3cret"}
    made = remade(with_value("addons", parameters=parameters)(lines_of(backup_of(store))))
    (note,) = restored(store, made, replace=True).notes
    assert "the webhook 1 is disabled now: " in note and "bodyTemplate" in note and "s3cret" not in note
    (row,) = [each["row"] for each in rows_of(backup_of(store)) if each["table"] == "addons"]
    assert (row["enabled"], row["parameters"]) == (False, parameters)


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
