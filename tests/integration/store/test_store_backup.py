"""A backup has all rows as they were at one moment, and a restore of it, on either kind of database, is all or nothing."""

from __future__ import annotations

import gzip
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from sqlalchemy import select, text, update

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import BackupError, DatabaseError
from flagsvc.server.store import schema
from flagsvc.server.store.backup import lines
from flagsvc.server.store.backup.restoring import check_backup
from flagsvc.server.store.backup.tables import KEPT
from flagsvc.server.store.engines import make_engine
from flagsvc.server.store.keyring import Keyring
from flagsvc.server.store.migrate import VERSION_TABLE, upgrade
from flagsvc.server.store.schema import METADATA
from flagsvc.server.store.seed.once import create_first_token
from flagsvc.server.store.store import Store, open_any_store, open_existing_store, open_known_store, open_store
from flagsvc.testing import RecordingLog
from support.backups import (
    SECRET,
    WHO,
    any_text,
    backup_of,
    client_documents,
    fill,
    lines_of,
    remade,
    restored,
    rows_of,
    sign_in,
    with_header,
    with_last_event,
    with_value,
    without,
)
from support.databases import KINDS
from support.planting import plant

Open = Callable[..., Store]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Give a function that opens a database in one of several ways, and close it after the test."""
    with ExitStack() as stores:

        def open_(url: str, way: Callable[..., Store] = open_store) -> Store:
            store = way(url, SystemClock(), RecordingLog())
            stores.callback(store.close)
            return store

        yield open_


@pytest.fixture
def store(database_url: str, opened: Open) -> Store:
    """Give a database with something in every table."""
    store = opened(database_url)
    fill(store)
    return store


def everything(store: Store) -> dict[str, Any]:
    """Return every row of every table, and the version of the schema."""
    with store.reading() as tx:
        version = tx.db.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
        rows = {name: sorted(map(repr, tx.db.execute(select(each)))) for name, each in METADATA.tables.items()}
    return rows | {"version": version}


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.long) for each in (1, 2))])
def test_round_trip(seed: int, source: str, target: str, new_database: Callable[[str], str], opened: Open) -> None:
    """Restored into a database of either kind, a backup gives the same rows again, and clients get the same documents."""
    first, second = opened(new_database(source)), opened(new_database(target))
    fill(first, Random(seed))
    made = backup_of(first)
    restored(second, made)
    again = backup_of(second)
    assert rows_of(again) == rows_of(made)
    assert client_documents(second) == client_documents(first)
    before, after = lines_of(made)[0], lines_of(again)[0]
    assert after["revision"] == before["revision"] + 1
    assert after["sequences"] == before["sequences"] | {"events": before["sequences"]["events"] + 1}


def test_an_empty_database_takes_a_backup(sqlite_url: str, empty_url: str, opened: Open) -> None:
    """A database of either kind without a table gets the schema and the rows."""
    store = opened(sqlite_url)
    fill(store)
    made = backup_of(store)
    target = opened(empty_url, open_any_store)
    restored(target, made)
    assert rows_of(backup_of(opened(empty_url, open_existing_store))) == rows_of(made)


def test_what_a_backup_has(store: Store) -> None:
    """It has every table except KEPT, and no session, no link and no secret."""
    made = backup_of(store)
    rows = rows_of(made)
    assert {each["table"] for each in rows} == set(METADATA.tables) - KEPT
    assert {each["row"]["kind"] for each in rows if each["table"] == "tokens"} == {"personal", "backend"}
    assert SECRET.encode() not in gzip.decompress(made.getvalue())
    assert not store.engine.pool.checkedout()  # type: ignore[attr-defined]


def test_ids_that_were_given_out_do_not_come_back(store: Store, opened: Open, new_database: Callable[[str], str]) -> None:
    """A session that the backup leaves out had the last number of the tokens; the next token gets another one."""
    with store.reading() as tx:
        last = max(tx.db.execute(select(schema.tokens.c.id)).scalars())
    target = opened(new_database(store.engine.dialect.name))
    restored(target, backup_of(store))
    with target.writing(WHO) as tx:
        assert last not in tx.db.execute(select(schema.tokens.c.id)).scalars().all()
        sign_in(tx)
        assert min(tx.db.execute(select(schema.tokens.c.id).where(schema.tokens.c.id >= last)).scalars()) > last


def test_a_running_server_sees_a_restore(store: Store, database_url: str, opened: Open) -> None:
    """The revision grows beyond both, tokens of the backup work, and sessions end. The history says who restored what."""
    made = backup_of(store)
    with store.writing(WHO) as tx:
        tx.db.execute(update(schema.features).values(description="changed"))
        tx.db.execute(schema.tokens.delete())
        tx.db.execute(schema.used_answers.insert().values(hash="1" * 64, expires_at=tx.now))
    keyring = Keyring(store, SystemClock(), RecordingLog())
    revision = store.revision()
    with pytest.raises(BackupError, match="the database is in use, it has 3 features, 1 segments, 2 users"):
        restored(store, made)
    restored(opened(database_url, open_any_store), made, replace=True)
    assert store.revision() == revision + 1
    with store.reading() as tx:
        assert tx.db.execute(select(schema.used_answers.c.hash)).scalars().all() == ["0" * 64, "1" * 64]
    keyring.load()
    assert keyring.find(SECRET) is not None
    with store.reading() as tx:
        assert set(tx.db.execute(select(schema.features.c.description)).scalars()) != {"changed"}
        last = tx.db.execute(select(schema.events).order_by(schema.events.c.id.desc())).first()
        assert last is not None and (last.type, last.created_by, last.way) == ("backup-restored", WHO.name, "command")


def test_a_new_database_with_a_first_token_is_replaced(store: Store, opened: Open, new_database: Any) -> None:
    """After a plain first start nothing is lost, so no option is needed."""
    target = opened(new_database(store.engine.dialect.name))
    create_first_token(target)
    restored(target, backup_of(store))
    assert rows_of(backup_of(target)) == rows_of(backup_of(store))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"projects": [{"id": "shop"}]}, r"1 projects \(`shop`\)"),
        ({"environments": [{"name": "staging"}]}, r"1 environments \(`staging`\)"),
        ({"contextFields": [{"name": "plan"}]}, r"1 context_fields \(`plan`\)"),
        ({"projects": [{"id": "default", "description": "ours"}]}, r"1 projects \(`default`\)"),
    ],
    ids=["project", "environment", "field", "changed"],
)
def test_a_server_that_was_set_up_is_not_new(database_url: str, opened: Open, section: Any, message: str) -> None:
    """Without a flag too, what people made after a first start is not deleted unasked."""
    target = opened(database_url)
    made = backup_of(target)
    create_first_token(target)
    with target.writing(WHO) as tx:
        plant(tx, section)
    before = everything(target)
    with pytest.raises(BackupError, match=rf"the database is in use, it has .*{message}"):
        restored(target, made)
    assert everything(target) == before
    restored(target, made, replace=True)
    assert rows_of(backup_of(target)) == rows_of(made)


def test_a_backup_of_an_older_schema(empty_url: str, opened: Open, new_database: Any) -> None:
    """A database of an older version gives a backup; its restore migrates the rows, also where a newer schema was.

    An answer of a provider that was used there stays used.
    """
    engine = make_engine(empty_url)
    with engine.connect().execution_options(flagsvc_writing=True) as db, db.begin():
        upgrade(db, "0003")
        db.execute(
            text(
                "INSERT INTO events (type, created_at, created_by, data) "
                "VALUES ('segment-deleted', '2025-01-01 00:00:00', 'ada', '{\"name\": \"beta\"}')"
            )
        )
    engine.dispose()
    old = opened(empty_url, open_known_store)
    made = backup_of(old)
    assert lines_of(made)[0]["schema"] == "0003"
    target = opened(new_database(old.engine.dialect.name))
    fill(target)
    restored(target, made, replace=True)
    with target.reading() as tx:
        assert tx.db.execute(select(schema.used_answers.c.hash)).scalars().all() == ["0" * 64]
        event = tx.db.execute(select(schema.events).order_by(schema.events.c.id)).first()
        assert event is not None and (event.before, event.data, event.tags) == ({"name": "beta"}, None, [])
        assert tx.db.execute(select(schema.features)).first() is None
    restored(old, made)  # the old database itself takes it too, and is of this version then
    assert rows_of(backup_of(opened(empty_url, open_existing_store))) == rows_of(backup_of(target))


WRONG: list[tuple[Callable[[list[Any]], list[Any]], str]] = [
    (with_header(format="something"), "this is no backup of flagsvc"),
    (with_header(version=2), "the backup has the format 2, and this version of flagsvc reads 1"),
    (with_header(schema="9999"), "the backup has the schema `9999`, and this version of flagsvc knows up to"),
    (with_header(schema=None), "line 1 of the backup: `schema` is missing"),
    (with_header(sequences={"users": "x"}), "line 1 of the backup: `sequences` is missing"),
    (lambda lines: [*lines[:-1], {"table": "nothing", "row": {}}], "does not have: `nothing`"),
    (lambda lines: [*lines[:-1], {"table": "users", "row": {"id": 1}}], "columns are not those of the table `users`"),
    (lambda lines: [*lines[:-1], {"table": "users"}], "expected a row of a table"),
    (lambda lines: [*lines[:-1], lines[1]], "the database does not take it as a row of `addons`: .*addons"),
    (lambda lines: without("features", lines), "expected the key of a row of `features` as `(child|feature|parent)` of the table"),
    (with_value("users", created_at="soon"), "expected a time as `created_at` of the table `users`"),
    (with_value("users", created_at="0001-01-01T00:00:00+14:00"), "expected a time as `created_at`"),
    (with_value("users", id=2**70), "expected a whole number of at most 64 bits as `id` of the table `users`"),
    (with_last_event(2**63 - 1), "an id of the table `events` that leaves no room for more"),
    (with_value("users", id="1"), "expected a whole number"),
    (with_value("users", name={"a": 1}), "expected a text without a NUL and .* as `name` of the table `users`"),
    (with_value("users", name="\ud800"), "expected a text without a NUL and .* as `name`"),
    (with_value("users", root_role="god"), "expected one of admin, editor, viewer as `root_role`"),
    (with_value("project_roles", role="god"), "expected one of owner, member as `role`"),
    (with_value("features", stale=1), "expected true or false as `stale`"),
    (with_value("strategies", sort_order=10**400), "expected a number as `sort_order`"),
    (with_header(sequences={"users": 2**70}), "line 1 of the backup: `sequences` is missing, or is not understood"),
    (with_header(sequences={"nothing\x1b": 1}), r"`sequences` has a table without numbers: `nothing\\x1b`"),
    (with_header(revision=2**70), "line 1 of the backup: `revision` is missing, or is not understood"),
    (with_header(created="\x1b[2J"), "line 1 of the backup: `created` is missing, or is not understood"),
    (with_header(schema="\x1b", program="\x1b"), r"the schema `\\x1b`, .* with flagsvc \\x1b, which"),
    (with_value("strategies", constraints=5), r"line \d+ of the backup: expected a list as `constraints` of the table"),
    (with_value("strategies", variants=[{"name": "a"}]), r"expected `weight` as `variants\[0\]` of the table `strategies`"),
    (with_value("strategies", parameters=[]), "expected an object of texts as `parameters` of the table `strategies`"),
    (with_value("segments", constraints=[{"contextName": "a", "operator": "IN", "values": 5}]), r"`constraints\[0\].values`"),
    (with_value("tokens", kind="session"), "expected one of admin, backend, client, frontend, personal as `kind`"),
    (with_value("tokens", hash="x"), "expected a SHA-256 in hex as `hash`"),
    (with_value("state", key="changeRequests", value=[{}]), r"expected `project` as `value\[0\]` of the table `state`"),
    (with_value("events", data={"a": "\ud800"}), "expected an object of at most 100 levels, without a NUL.* as `data`"),
    (with_value("events", data={"a": json.loads("[" * 100 + "]" * 100)}), "expected an object of at most 100 levels"),
]


@pytest.mark.one_database
def test_a_wrong_backup_changes_nothing(store: Store) -> None:
    """A backup whose digest fits, but that is of a newer version or does not make sense, is refused with a reason."""
    before = everything(store)
    for change, message in WRONG:
        made = remade(change(lines_of(backup_of(store))))
        with pytest.raises(BackupError, match=message):
            restored(store, made, replace=True)
        assert everything(store) == before


@pytest.mark.one_database
def test_a_time_without_a_zone_is_in_utc(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time zone of the machine that restores changes no time."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        made = remade(with_value("users", created_at="2025-06-15T12:00:00")(lines_of(backup_of(store))))
        restored(store, made, replace=True)
    finally:
        monkeypatch.undo()
        time.tzset()
    with store.reading() as tx:
        found = set(tx.db.execute(select(schema.users.c.created_at)).scalars())
    assert found == {datetime(2025, 6, 15, 12, tzinfo=UTC)}


@pytest.mark.one_database
def test_a_row_that_no_restore_takes_is_not_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of the longest length is written and read; a longer line is refused by both."""
    whole = gzip.decompress(backup_of(store).getvalue()).splitlines(keepends=True)
    longest = max(map(len, whole))
    monkeypatch.setattr(lines, "LONGEST", longest)
    made = backup_of(store)
    restored(store, made, replace=True)
    monkeypatch.setattr(lines, "LONGEST", longest - 1)
    with pytest.raises(BackupError, match=r"a row of `.*` has more than 0 MiB, the most that a backup takes"):
        backup_of(store)
    with pytest.raises(BackupError, match=r"line [0-9]+ has more than 0 MiB"):
        check_backup(made)


@pytest.mark.one_database
def test_a_damaged_backup_is_refused(store: Store) -> None:
    """Cut off anywhere, or with lines changed, added or left out, a backup is not accepted.

    A backup with a flipped bit is refused, except for the few bits of the compression that mean nothing.
    """
    whole = backup_of(store).getvalue()
    content = gzip.decompress(whole)
    lines = content.splitlines(keepends=True)
    random = Random(1)
    cut = [whole[: random.randrange(len(whole))] for _ in range(40)]
    shorter = [gzip.compress(b"".join(lines[: random.randrange(len(lines))])) for _ in range(10)]
    at = content.index(b'"cart"')
    other = [content[:at] + b'"card"' + content[at + 6 :], content + lines[1], b"", b"[]\n", content[:-1]]
    for damaged in [*cut, *shorter, *map(gzip.compress, other), whole + whole, b"", b"{}"]:
        with pytest.raises(BackupError):
            check_backup(io.BytesIO(damaged))
    random = Random(2)
    for at in random.sample(range(10, len(whole)), 100):
        damaged = whole[:at] + bytes([whole[at] ^ 1 << random.randrange(8)]) + whole[at + 1 :]
        try:
            check_backup(io.BytesIO(damaged))
        except BackupError:
            continue
        assert gzip.decompress(damaged) == gzip.decompress(whole)


def test_a_database_of_a_newer_version_or_another_program(store: Store, database_url: str, opened: Open) -> None:
    """Neither a backup of it is written, nor is one restored into it."""
    with store.writing(None) as tx:
        tx.db.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    for way in (open_known_store, open_any_store):
        with pytest.raises(DatabaseError, match="a newer version made it"):
            opened(database_url, way)


def test_a_backup_while_others_write(store: Store, opened: Open, new_database: Any) -> None:
    """Writers change pairs of flags together all the time; in each backup both are the same, and it can be restored."""
    with store.writing(None) as tx:
        state = {"project": "default", "type": "release", "created_at": tx.now}
        rows = [{"name": f"pair-{side}-{n}", "position": n} | state for side in "ab" for n in range(200)]
        tx.db.execute(schema.features.insert(), rows)
    stopped = threading.Event()
    written: list[int] = []

    def write(seed: int) -> None:
        random = Random(seed)
        while not stopped.is_set():
            with store.writing(WHO) as tx:
                word = f"{seed} {len(written)} {any_text(random)}"
                for side in "ab":
                    here = schema.features.c.name.like(f"pair-{side}-%")
                    tx.db.execute(update(schema.features).where(here).values(description=word))
                    tx.record_event("feature-updated", feature=f"pair-{side}-0", data={"description": word})
            written.append(seed)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for each in threads:
        each.start()
    try:
        backups: list[io.BytesIO] = []
        while len(backups) < 8 or len(written) < 30:
            backups.append(backup_of(store))
    finally:
        stopped.set()
        for each in threads:
            each.join()
    seen = [{row["row"]["description"] for row in rows_of(made) if "pair-" in row["row"].get("name", "")} for made in backups]
    assert {len(words) for words in seen} == {1}
    assert len(set(map(str, seen))) > 1
    target = opened(new_database(store.engine.dialect.name))
    for made in (backups[0], backups[-1]):
        restored(target, made, replace=True)
        assert rows_of(backup_of(target)) == rows_of(made)
