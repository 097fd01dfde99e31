"""PostgreSQL as companies run it: poolers, odd settings, roles with few rights, and connections that end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import insert, select, text

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import DatabaseError, UnwritableError
from flagsvc.server.store.postgresql import COPIED, is_pooled
from flagsvc.server.store.schema import events, users
from flagsvc.server.store.store import Store, open_store
from flagsvc.server.store.writability import FULL, RIGHTS, STANDBY
from flagsvc.testing import FakeClock, RecordingLog
from support.databases import SESSION, TRANSACTION, Pooler, fresh_database, pgbouncer
from support.waiting import wait_until

NAME = "Zoë 🚩"
ODD_SETTINGS = {
    "datestyle": "'German, DMY'",
    "timezone": "'Asia/Kathmandu'",
    "default_transaction_isolation": "serializable",
    "extra_float_digits": "-3",
    "standard_conforming_strings": "off",
    "row_security": "on",
    "client_encoding": "'LATIN1'",
    "bytea_output": "'escape'",
}


@pytest.fixture(params=[TRANSACTION, SESSION])
def pooler(request: pytest.FixtureRequest, postgresql_cluster: str) -> Iterator[Pooler]:
    """Give a pooler in each mode."""
    with pgbouncer(postgresql_cluster, request.param) as made:
        yield made


def execute(url: str, *statements: str) -> None:
    """Execute statements on a database, as its administrator."""
    with psycopg.connect(url, autocommit=True) as db:
        for statement in statements:
            db.execute(statement.encode())


def opened(url: str, listen: str | None = None, log: RecordingLog | None = None) -> closing[Store]:
    """Open a database until the block ends."""
    return closing(open_store(url, SystemClock(), log or RecordingLog(), listen))


def write(store: Store, name: str = NAME) -> None:
    """Write a user."""
    with store.writing(None) as tx:
        tx.db.execute(insert(users).values(name=name, root_role="admin", created_at=tx.now))


def names(store: Store) -> list[str]:
    """Return the names of all users."""
    with store.reading() as tx:
        return list(tx.db.execute(select(users.c.name)).scalars())


def word(store: Store) -> str:
    """Return the word for what keeps changes out; empty if they are taken."""
    obstacle = store.writability.obstacle
    return "" if obstacle is None else obstacle.word


@contextmanager
def heard(store: Store) -> Iterator[list[int]]:
    """Give the revisions that a store notices."""
    revisions: list[int] = []
    store.watch(revisions.append)
    wait_until(lambda: revisions)
    yield revisions


def test_changes_go_through_a_pooler(pooler: Pooler, postgresql_url: str) -> None:
    """A hundred changes of two servers are all there, and each server notices the changes of the other server."""
    url = pooler.database(postgresql_url)
    with opened(url) as one, opened(url) as two, heard(one) as revisions:
        for number in range(50):
            write(one, f"one {number}")
            write(two, f"two {number}")
        last = two.revision()
        wait_until(lambda: last in revisions)
        assert len(names(one)) == len(names(two)) == 100


STORED = datetime(2026, 1, 2, tzinfo=UTC)
ODD_TEXTS = ("", "\\N", "tab\there", "two\nlines\r\n", "back\\slash \\t \\.", NAME, "'\"", "x" * 100_000)


def test_many_rows_are_the_same_rows(postgresql_url: str) -> None:
    """What is written by one statement for many rows is what a statement for each row writes: odd texts, null, JSON, booleans."""
    data = [{"text": each, "list": [None, True, 1.5, each]} for each in ODD_TEXTS] + [None]
    with opened(postgresql_url) as store:
        with store.writing(None) as tx:
            plain = {"created_at": tx.now, "root_role": "admin"}
            rows = [{"name": f"{n} {data[n % len(data)]}", "type": "x", "before": data[n % len(data)]} for n in range(COPIED)]
            for each in rows:
                tx.db.execute(insert(users).values(**plain, name=each["name"], email=None))
            tx.db.execute(insert(users), [plain | {"name": f"many {each['name']}", "email": None} for each in rows])
            said = {"created_at": tx.now, "created_by": "one", "tags": []}
            for each in rows:
                tx.db.execute(insert(events).values(**said, type=each["name"], before=each["before"]))
            tx.db.execute(insert(events), [said | {"type": f"many {each['name']}", "before": each["before"]} for each in rows])
        found = names(store)
        with store.reading() as tx:
            query = select(events.c.type, events.c.before, events.c.created_at, events.c.data).order_by(events.c.id)
            stored = [tuple(row) for row in tx.db.execute(query)]
    assert found[COPIED:] == [f"many {each}" for each in found[:COPIED]]
    assert stored[COPIED:] == [(f"many {kind}", *rest) for kind, *rest in stored[:COPIED]]
    assert [before for _, before, *_ in stored[:COPIED]] == [each["before"] for each in rows]


def test_a_row_of_many_that_is_refused(postgresql_url: str) -> None:
    """A key that exists twice makes all of the rows fail, with the error that a single row has, and nothing of them is stored."""
    with opened(postgresql_url) as store:
        write(store)
        rows = [{"id": n % COPIED + 9, "name": str(n), "created_at": STORED, "root_role": "admin"} for n in range(COPIED + 1)]
        with pytest.raises(DatabaseError, match="UniqueViolation"), store.writing(None) as tx:
            tx.db.execute(insert(users), rows)
        assert names(store) == [NAME]


def test_a_pooler_is_found_out(pooler: Pooler, postgresql_url: str) -> None:
    """A session behind a pooler says so, and a direct one does not."""
    with psycopg.connect(pooler.database(postgresql_url), autocommit=True) as db:
        assert is_pooled(db)
    with psycopg.connect(postgresql_url, autocommit=True) as db:
        assert not is_pooled(db)


def test_a_url_past_the_pooler_hears_at_once(pooler: Pooler, postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a URL to listen at, notifications arrive: no poll is waited for."""
    monkeypatch.setattr("flagsvc.server.store.revision_listener.READ_S", 1e6)
    url = pooler.database(postgresql_url)
    with opened(url, postgresql_url) as one, opened(url) as two, heard(one) as revisions:
        write(two)
        last = two.revision()
        wait_until(lambda: last in revisions)


def test_another_database_is_not_listened_to(postgresql_cluster: str, postgresql_url: str) -> None:
    """A URL to listen at that leads to another database is an error in the log, and no revision of it counts."""
    log = RecordingLog()
    with fresh_database(postgresql_cluster) as other, opened(other) as stranger:
        write(stranger)
        with opened(postgresql_url, other, log) as store:
            seen: list[int] = []
            store.watch(seen.append)
            wait_until(lambda: any("another database" in str(line) for line in log.lines))
            assert not seen


def test_two_schemas_of_a_database_are_two_stores(postgresql_url: str) -> None:
    """Servers with different schemas share nothing: a higher revision of the other hides no change."""
    execute(postgresql_url, "CREATE SCHEMA a", "CREATE SCHEMA b")
    with opened(f"{postgresql_url}?schema=a") as one, opened(f"{postgresql_url}?schema=b") as two, heard(one) as revisions:
        for number in range(5):
            write(two, str(number))
        with opened(f"{postgresql_url}?schema=a") as again:
            write(again)
            last = again.revision()
        wait_until(lambda: last in revisions)
        assert names(one) == [NAME] and max(revisions) == last < two.revision()


def test_a_schema_that_comes_later_takes_nothing_over(postgresql_url: str) -> None:
    """The tables stay where they are, also when an earlier schema of the search path is created."""
    with opened(postgresql_url) as store:
        write(store)
    execute(postgresql_url, "CREATE SCHEMA postgres")
    with opened(postgresql_url) as store:
        assert names(store) == [NAME]


def test_settings_do_not_leak_in(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the database and of the environment change neither times, numbers, texts nor the isolation."""
    now = 1_767_225_600.25
    name = postgresql_url.rpartition("/")[2]
    execute(postgresql_url, *(f"ALTER DATABASE {name} SET {key} = {value}" for key, value in ODD_SETTINGS.items()))
    monkeypatch.setenv("PGDATESTYLE", "SQL, DMY")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("PGOPTIONS", "-c timezone=America/Caracas -c lock_timeout=1")
    with closing(open_store(postgresql_url, FakeClock(now), RecordingLog())) as store:
        write(store)
        with store.reading() as tx:
            row = tx.db.execute(select(users.c.name, users.c.created_at)).one()
            shown = {each: tx.db.execute(text(f"SHOW {each}")).scalar() for each in ("lock_timeout", "transaction_isolation")}
            third = tx.db.execute(text("SELECT 1::float8 / 3")).scalar()
        with store.recording() as tx:
            written = tx.db.execute(text("SHOW transaction_isolation")).scalar()
    assert (row.name, row.created_at.timestamp(), third) == (NAME, now, 1 / 3)
    assert (shown, written) == ({"lock_timeout": "30s", "transaction_isolation": "repeatable read"}, "read committed")


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ALTER DATABASE {} SET search_path = ''", "the search path `.*` of the database names no schema that exists"),
        ("ALTER DATABASE {} SET search_path = nowhere", "the search path `nowhere` of the database names no schema"),
    ],
)
def test_a_search_path_without_a_schema_is_said(postgresql_url: str, statement: str, why: str) -> None:
    """The start refuses with a sentence, and not with an error of the first statement; `schema` in the URL is a way out."""
    execute(postgresql_url, statement.format(postgresql_url.rpartition("/")[2]))
    with pytest.raises(DatabaseError, match=why):
        open_store(postgresql_url, SystemClock(), RecordingLog())
    with opened(f"{postgresql_url}?schema=public") as store:
        write(store)
        assert names(store) == [NAME]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_other_encodings_are_refused(postgresql_cluster: str, encoding: str) -> None:
    """A database that cannot keep every text is refused with a sentence."""
    made = f"flags_{encoding.lower()}"
    execute(postgresql_cluster, f"CREATE DATABASE {made} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        with pytest.raises(DatabaseError, match=f"the database has the encoding {encoding}, which cannot keep every text"):
            open_store(f"{postgresql_cluster.rpartition('/')[0]}/{made}", SystemClock(), RecordingLog())
    finally:
        execute(postgresql_cluster, f"DROP DATABASE {made} WITH (FORCE)")


def test_a_role_without_the_right_to_create(postgresql_cluster: str, postgresql_url: str) -> None:
    """A role that may only read and write rows runs the server on tables that are there, and is told what it lacks before."""
    role = f"role_of_{postgresql_url.rpartition('/')[2]}"
    execute(postgresql_url, f"CREATE ROLE {role} LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    mine = postgresql_url.replace("postgres@", f"{role}@")
    try:
        with pytest.raises(DatabaseError, match="permission denied for schema public"):
            open_store(mine, SystemClock(), RecordingLog())
        with opened(postgresql_url):
            pass
        rights = (("SELECT, INSERT, UPDATE, DELETE", "TABLES"), ("USAGE, SELECT, UPDATE", "SEQUENCES"))
        execute(postgresql_url, *(f"GRANT {what} ON ALL {kind} IN SCHEMA public TO {role}" for what, kind in rights))
        with opened(mine) as store:
            write(store)
            assert names(store) == [NAME]
    finally:
        execute(postgresql_url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_read_only_database_is_read(postgresql_url: str) -> None:
    """Reads go on where the database takes no changes; a change is an error, and works as soon as the database takes it."""
    name = postgresql_url.rpartition("/")[2]
    with opened(postgresql_url) as store:
        write(store)
        execute(postgresql_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        store.engine.dispose()
        with pytest.raises(DatabaseError, match="cannot be written: it is a standby, or takes no changes"):
            write(store)
        assert names(store) == [NAME]
        with opened(postgresql_url) as other:
            assert names(other) == [NAME]
            other.probe(commit=True)
            assert word(other) == STANDBY.word
            execute(postgresql_url, "BEGIN READ WRITE", f"ALTER DATABASE {name} SET default_transaction_read_only = off", "COMMIT")
            other.probe(commit=True)
            assert word(other) == ""
            write(other, "second")  # the probe has closed the connections that were read-only
        with pytest.raises(DatabaseError, match="cannot be written: it is a standby, or takes no changes"):
            write(store)  # nobody has probed: this connection is the last of its kind, and the next one is new
        write(store, "third")
        assert names(store) == [NAME, "second", "third"]


def test_a_role_that_may_only_read(postgresql_url: str) -> None:
    """A role without the right to change a table reads, is told what it lacks, and writes once it has the right."""
    role = f"reader_of_{postgresql_url.rpartition('/')[2]}"
    mine = postgresql_url.replace("postgres@", f"{role}@")
    with opened(postgresql_url) as store:
        write(store)
    execute(postgresql_url, f"CREATE ROLE {role} LOGIN", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    try:
        with opened(mine) as store:
            for commit in (False, True):
                store.probe(commit=commit)
                assert word(store) == RIGHTS.word
            with pytest.raises(UnwritableError, match="its role has no right to change every table"):
                write(store, "refused")
            assert names(store) == [NAME]
            most = "INSERT, UPDATE, DELETE"
            execute(postgresql_url, f"GRANT {most} ON ALL TABLES IN SCHEMA public TO {role}", f"REVOKE INSERT ON users FROM {role}")
            store.probe(commit=True)
            assert word(store) == RIGHTS.word, "one table is enough"
            execute(postgresql_url, f"GRANT INSERT ON users TO {role}", f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}")
            store.probe(commit=True)
            assert word(store) == ""
            write(store, "second")
    finally:
        execute(postgresql_url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def fail_with(store: Store, state: str) -> None:
    """Make a change that fails with a code of PostgreSQL."""
    with store.writing(None) as tx:
        tx.db.execute(text(f"DO $$ BEGIN RAISE SQLSTATE '{state}'; END $$"))


def test_a_full_disk_of_the_server(postgresql_url: str) -> None:
    """PostgreSQL's error for a full disk is a refusal with a reason; any other error is none."""
    with opened(postgresql_url) as store:
        for state, why in (("53200", "the database failed"), ("53100", "the database cannot be written: the disk is full")):
            with pytest.raises(DatabaseError, match=why):
                fail_with(store, state)
        assert word(store) == FULL.word
        store.probe(commit=True)
        assert word(store) == ""


def change_without(store: Store, outage: Callable[[bool], None]) -> None:
    """Begin a change, and go on with it when the server is away."""
    with store.writing(None) as tx:
        tx.db.execute(insert(users).values(name=NAME, root_role="admin", created_at=tx.now))
        outage(True)
        tx.db.execute(select(users.c.name))


def test_a_failover_in_mid_transaction(postgresql_url: str, outage: Callable[[bool], None]) -> None:
    """A transaction whose server goes away changes nothing and raises; the next one works as soon as there is a server."""
    with opened(postgresql_url) as store:
        before = store.revision()
        with pytest.raises(DatabaseError):
            change_without(store, outage)
        outage(False)
        assert (names(store), store.revision()) == ([], before)
        write(store)
        assert (names(store), store.revision()) == ([NAME], before + 1)
