"""Databases for tests: SQLite files always, PostgreSQL where it is installed. One cluster for a run, a fresh database for a test.

`tests/conftest.py` makes these fixtures known to all tests: `database_url` runs a test on both kinds, `postgresql_url` and
`sqlite_url` on one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from support import processes

KINDS = ("sqlite", "postgresql")
NUMBERS = itertools.count(1)


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


@pytest.fixture
def postgresql_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the URL of an empty PostgreSQL database; the test is skipped where PostgreSQL is not installed."""
    with fresh_database(request.getfixturevalue("postgresql_cluster")) as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Give the URL of an SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'flags.db'}"


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of an empty database, once of each kind."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Give a function that makes an empty database of a kind, `sqlite` or `postgresql`, as often as it is called."""
    with ExitStack() as made:

        def make(kind: str) -> str:
            if kind == "sqlite":
                return f"sqlite:///{tmp_path / f'flags-{next(NUMBERS)}.db'}"
            return made.enter_context(fresh_database(request.getfixturevalue("postgresql_cluster")))

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
