"""Databases for tests: SQLite files always, PostgreSQL where it is installed.

`tests/conftest.py` makes these fixtures known to all tests. `database_url` runs a test on both kinds, on a database that is up to
date and otherwise new; `empty_url` does so on a database without a table. `sqlite_url` and `postgresql_url` are of one kind.
On PostgreSQL, `database_url` leads through PgBouncer in transaction mode, so that nothing depends on a session.

Nothing is migrated for each test. An SQLite file is a copy of the file that was migrated for the run. A PostgreSQL database is used
again: every row that a test left is deleted, and every row of a new database is restored.
"""

from __future__ import annotations

import functools
import itertools
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from support import processes
from support.needs import program
from support.processes import Program, answers_tcp, database_user, free_port, running, scratch
from support.waiting import wait_until

SETTINGS = """
[databases]
* = host=127.0.0.1 port={postgresql}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
admin_users = postgres
pool_mode = {mode}
max_client_conn = 1000
"""
TRANSACTION, SESSION = "transaction", "session"


@dataclass(frozen=True)
class Pooler:
    """A running PgBouncer. `url` leads through it to the cluster's maintenance database."""

    url: str
    program: Program

    def database(self, url: str) -> str:
        """Return the URL behind the pooler of a database of the cluster."""
        return f"{self.url.rpartition('/')[0]}/{url.rpartition('/')[2]}"


@contextmanager
def pgbouncer(cluster: str, mode: str = TRANSACTION) -> Iterator[Pooler]:
    command, port, user = program("pgbouncer", "/usr/sbin/pgbouncer"), free_port(), database_user()
    with scratch(user) as folder:
        (folder / "users").write_text('"postgres" ""\n"flags" ""\n')
        text = SETTINGS.format(postgresql=urlsplit(cluster).port, port=port, folder=folder, mode=mode)
        (folder / "pgbouncer.ini").write_text(text)
        for name in ("users", "pgbouncer.ini"):
            if user:
                shutil.chown(folder / name, user)
        line = [command, folder / "pgbouncer.ini"]
        with running("pgbouncer", line, env={}, folder=folder, user=user, stop=signal.SIGINT) as found:
            found.wait(lambda: answers_tcp(port), "ready", 30)
            yield Pooler(f"postgres://postgres@127.0.0.1:{port}/postgres", found)


KINDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.programs))
NUMBERS = itertools.count(1)
PAGE = 8192
"""Bytes of a table's page. A table that has grown beyond one is truncated, so that rows stay in the order they are written in."""

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
SEQUENCES = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'"
SHAPE = "SELECT count(*), max(oid), sum(relnatts) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
"""What no test may change in a database that is used again: its tables, their columns and indexes."""
OTHERS_GO = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
"""Ends the connections that a test left; gives no row when they are gone. PostgreSQL's own wait looks every 0.1 seconds only."""
GROWN = f"""
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > {PAGE}
"""


@pytest.fixture(scope="session")
def postgresql_cluster() -> Iterator[str]:
    """Run PostgreSQL once for the run; give the URL of its maintenance database."""
    with processes.postgresql() as url:
        yield url


@contextmanager
def fresh_database(cluster: str) -> Iterator[str]:
    """Make an empty database in a cluster, give its URL, and remove it with all its connections afterwards."""
    name = f"flags_{next(NUMBERS)}"
    administer(cluster, "CREATE DATABASE {}", name)
    try:
        yield f"{cluster.rpartition('/')[0]}/{name}"
    finally:
        administer(cluster, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def administer(cluster: str, statement: str, name: str) -> None:
    """Run a statement on a database that is named in it."""
    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(name)))


@dataclass
class Reusable:
    """A database that is up to date, and what makes it new again."""

    name: str
    url: str
    shape: tuple[object, ...]
    renewal: str

    def renew(self) -> bool:
        """Restore the rows of a new database. Returns False if the tables have changed."""
        with psycopg.connect(self.url, autocommit=True) as db:
            wait_until(lambda: not db.execute(OTHERS_GO).fetchall())
            if db.execute(SHAPE).fetchone() != self.shape:
                return False
            for (table,) in db.execute(GROWN).fetchall():
                db.execute(sql.SQL("TRUNCATE {} CASCADE").format(sql.Identifier(table)))
            db.execute(self.renewal.encode())
        return True


@dataclass
class Pool:
    """The reusable databases of a cluster behind a pooler, as many as tests need at once."""

    cluster: str
    pooler: Pooler
    free: list[Reusable] = field(default_factory=list)

    @contextmanager
    def database(self) -> Iterator[str]:
        """Give the URL of a database that is up to date and otherwise new."""
        database = self.free.pop() if self.free else self._make()
        try:
            yield self.pooler.database(database.url)
        finally:
            if database.renew():
                self.free.append(database)
            else:
                administer(self.cluster, "DROP DATABASE IF EXISTS {} WITH (FORCE)", database.name)

    def _make(self) -> Reusable:
        name = f"flags_{next(NUMBERS)}"
        administer(self.cluster, "CREATE DATABASE {}", name)
        url = f"{self.cluster.rpartition('/')[0]}/{name}"
        migrated(url)
        with psycopg.connect(url, autocommit=True) as db:
            shape = db.execute(SHAPE).fetchone()
            assert shape is not None
            return Reusable(name, url, shape, renewal(db))


def renewal(db: psycopg.Connection) -> str:
    """Keep the rows of a new database in a schema of their own; return the statements that bring exactly these back."""
    tables = [f'"{name}"' for (name,) in db.execute(TABLES).fetchall()]
    db.execute("CREATE SCHEMA pristine")
    for table in tables:
        db.execute(f"CREATE TABLE pristine.{table} AS SELECT * FROM {table}".encode())
    sequences = [f'"{name}"' for (name,) in db.execute(SEQUENCES).fetchall()]
    counted = [db.execute(f"SELECT last_value, is_called FROM {name}".encode()).fetchone() or () for name in sequences]
    return ";".join(
        [
            "BEGIN",
            "SET LOCAL session_replication_role = replica",  # no foreign key is looked at
            *(f"DELETE FROM {table}" for table in tables),
            *(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM pristine.{table}" for table in tables),
            *(f"SELECT setval('{name}', {value}, {called})" for name, (value, called) in zip(sequences, counted, strict=True)),
            "COMMIT",
        ]
    )


class SharedStatements(dict[Any, Any]):
    """Compiled statements of all engines of this process: each test opens an engine, which would compile every statement again."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((key[0].name, *key[1:]), value)


@functools.cache
def share_statements() -> None:
    """Have all engines of a kind of database share their compiled statements from now on."""
    from sqlalchemy import Connection, Engine, event  # not above: most processes of a run open no database

    statements = SharedStatements()

    @event.listens_for(Engine, "engine_connect")
    def on_connect(db: Connection) -> None:
        db.execution_options(compiled_cache=statements)


def migrated(database: str) -> None:
    from flagsvc.server.store.engines import make_engine
    from flagsvc.server.store.migrate import migrate  # not above: this file is read before the sources are on the path

    share_statements()
    engine = make_engine(database)
    try:
        migrate(engine)
    finally:
        engine.dispose()


@pytest.fixture(scope="session")
def postgresql_pool(postgresql_cluster: str) -> Iterator[Pool]:
    """Give the databases of the cluster that are used again and again."""
    with pgbouncer(postgresql_cluster) as pooler:
        yield Pool(postgresql_cluster, pooler)


@functools.cache
def new_file() -> bytes:
    """Return an SQLite database that is up to date and otherwise new. To make it takes 0.3 CPU seconds."""
    with scratch() as folder:
        migrated(str(folder / "flags.db"))
        return (folder / "flags.db").read_bytes()


@pytest.fixture
def postgresql_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the URL of an empty PostgreSQL database. Skips the test if PostgreSQL is not installed."""
    with fresh_database(request.getfixturevalue("postgresql_cluster")) as url:
        yield url


@pytest.fixture
def sqlite_url(new_database: Callable[[str], str]) -> str:
    """Give the URL of an SQLite file that is up to date and otherwise new."""
    return new_database("sqlite")


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, new_database: Callable[[str], str]) -> str:
    """Give the URL of a database that is up to date and otherwise new, once of each kind."""
    return new_database(request.param)


@pytest.fixture(scope="module", params=KINDS)
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give a database of each kind that all tests of a module share."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('shared') / 'flags.db'}"
    else:
        with fresh_database(request.getfixturevalue("postgresql_cluster")) as url:
            yield url


@pytest.fixture(params=KINDS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty database, once of each kind; the SQLite file does not exist yet."""
    return f"sqlite:///{tmp_path / 'flags.db'}" if request.param == "sqlite" else request.getfixturevalue("postgresql_url")


@pytest.fixture
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Give a function that makes a database of a kind, `sqlite` or `postgresql`: up to date, otherwise new."""
    with ExitStack() as made:

        def make(kind: str) -> str:
            if kind == "postgresql":
                pool: Pool = request.getfixturevalue("postgresql_pool")
                return made.enter_context(pool.database())
            path = tmp_path / f"flags-{next(NUMBERS)}.db"
            path.write_bytes(new_file())
            return f"sqlite:///{path}"

        yield make


@pytest.fixture
def outage(postgresql_cluster: str, postgresql_url: str) -> Iterator[Callable[[bool], None]]:
    """Give a function that takes a PostgreSQL database away from its clients, and back."""
    name = postgresql_url.rpartition("/")[2]

    def switch(away: bool) -> None:
        allowed = "false" if away else "true"
        administer(postgresql_cluster, f"ALTER DATABASE {{}} WITH ALLOW_CONNECTIONS {allowed}", name)
        if away:
            with psycopg.connect(postgresql_cluster, autocommit=True) as db:
                db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))

    yield switch
    switch(False)
