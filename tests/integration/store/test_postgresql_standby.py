"""A real PostgreSQL standby: a server reads from it, takes changes once promoted, and outlives the primary (decision 0023)."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from sqlalchemy import insert, select

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import UnwritableError
from flagsvc.server.store.schema import users
from flagsvc.server.store.store import Store, open_store
from flagsvc.server.store.writability import NOT_WRITTEN, STANDBY
from flagsvc.testing import RecordingLog
from support.databases import migrated
from support.flagservers import BACKEND_SECRET, OurFlagServer, our_flag_server
from support.processes import (
    Answer,
    Program,
    ask,
    cluster,
    database_user,
    free_port,
    make_cluster,
    postgres_program,
    running,
    scratch,
)
from support.waiting import wait_until

pytestmark = pytest.mark.programs
LOG: dict[str, Any] = {"JSON_LOGGER": "true", "LOG_LEVEL": "info"}
AGAIN = "the database can be written again"
STANDBY_NAME = "standby"
"""The name that the primary knows the standby by."""
REPLAYED = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"


@dataclass(frozen=True)
class Pair:
    """A primary and its standby: their ports, and the program of the primary."""

    ports: tuple[int, int]
    primary: Program

    def url(self, *places: int) -> str:
        """Return the URL of the primary (0), of the standby (1), or of both in this order."""
        hosts = ",".join(f"127.0.0.1:{self.ports[place]}" for place in places)
        return f"postgres://postgres@{hosts}/postgres"

    def ask(self, place: int, statement: str, *values: object) -> object:
        """Return the first value that a statement gives."""
        with psycopg.connect(self.url(place), autocommit=True) as db:
            row = db.execute(statement.encode(), values or None).fetchone()
            return None if row is None else row[0]

    def catch_up(self) -> None:
        """Wait until the standby has all that the primary has."""
        position = self.ask(0, "SELECT pg_current_wal_lsn()::text")
        wait_until(lambda: self.ask(1, REPLAYED, position), 30)

    def make_synchronous(self) -> None:
        """Let each commit of the primary wait until the standby has it."""
        with psycopg.connect(self.url(0), autocommit=True) as db:
            db.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY_NAME}'".encode())
            db.execute("SELECT pg_reload_conf()")
        wait_until(lambda: self.ask(0, "SELECT sync_state FROM pg_stat_replication") == "sync", 30)

    def promote(self) -> None:
        """Make the standby a primary."""
        assert self.ask(1, "SELECT pg_promote(true, 60)")


@contextmanager
def primary_and_standby() -> Iterator[Pair]:
    """Run a primary and its standby until the block ends. Skips without PostgreSQL's programs."""
    backup, user = postgres_program("pg_basebackup"), database_user()
    ports = (free_port(), free_port())
    with scratch(user) as folder:
        make_cluster(folder, "primary")
        with cluster(folder, "primary", ports[0]) as primary:
            place = ["-h", "127.0.0.1", "-p", ports[0], "-U", "postgres"]
            copy = [backup, *place, "-D", folder / STANDBY_NAME, "--checkpoint=fast", "--no-sync", "--write-recovery-conf"]
            with running("pg_basebackup", copy, env={}, folder=folder, user=user) as program:
                assert program.process.wait(60) == 0, program.output()
            source = f"primary_conninfo=host=127.0.0.1 port={ports[0]} user=postgres application_name={STANDBY_NAME}"
            with cluster(folder, STANDBY_NAME, ports[1], source):
                yield Pair(ports, primary)


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Give a primary with a database that is up to date, and its standby."""
    with primary_and_standby() as made:
        migrated(made.url(0))
        made.catch_up()
        yield made


def opened(url: str) -> closing[Store]:
    """Open a database until the block ends."""
    return closing(open_store(url, SystemClock(), RecordingLog()))


def write(store: Store, name: str) -> None:
    """Write a user."""
    with store.writing(None) as tx:
        tx.db.execute(insert(users).values(name=name, root_role="admin", created_at=tx.now))


def names(store: Store) -> list[str]:
    """Return the names of all users."""
    with store.reading() as tx:
        return list(tx.db.execute(select(users.c.name)).scalars())


def create(server: OurFlagServer, name: str) -> Answer:
    """Ask to make a flag."""
    return server.ask("POST", "/admin/projects/default/features", {"name": name})


def flags(server: OurFlagServer) -> set[str]:
    """Return the flags that SDKs get."""
    answer = server.ask("GET", "/client/features", token=BACKEND_SECRET)
    assert answer.status == 200
    return {each["name"] for each in answer.json()["features"]}


def said(server: OurFlagServer, message: str) -> list[dict[str, object]]:
    """Return the lines of the log with a message."""
    lines = (json.loads(line) for line in server.program.output().splitlines())
    return [line for line in lines if line["message"] == message]


def test_a_server_on_a_standby(pair: Pair) -> None:
    """It says so at the start, serves flags and changes of the primary, refuses changes, and takes them after the promotion."""
    with our_flag_server(database=pair.url(0)) as primary:
        assert create(primary, "first").status == 201
        pair.catch_up()
        with our_flag_server(database=pair.url(1), seeded=False, **LOG) as server:
            (told,) = said(server, NOT_WRITTEN)
            assert told["reason"] == STANDBY.why
            assert ask(f"{server.root}/ready").json() == {"health": "GOOD", "writable": False, "reason": "read-only"}
            assert flags(server) == {"first"}
            for number in range(5):
                answer = create(server, f"refused-{number}")
                assert (answer.status, answer.json()["name"]) == (503, "DatabaseUnwritableError")
                assert STANDBY.why in answer.json()["message"]
            assert create(primary, "second").status == 201
            wait_until(lambda: flags(server) == {"first", "second"}, 30)
            pair.promote()
            wait_until(lambda: ask(f"{server.root}/ready").json() == {"health": "GOOD"}, 30)
            assert create(server, "third").status == 201
            assert flags(server) == {"first", "second", "third"}
            assert (len(said(server, NOT_WRITTEN)), len(said(server, AGAIN))) == (1, 1)
            assert "Traceback" not in server.program.output() and not said(server, "an unexpected error")
            assert not said(server, "changes of other servers are not noticed")


def test_a_failover_in_the_middle_of_changes(pair: Pair) -> None:
    """With two hosts and a synchronous standby, each acknowledged change is there after the primary died, and changes go on.

    Without `synchronous_standby_names` PostgreSQL acknowledges commits that the standby does not have yet.
    """
    pair.make_synchronous()
    with our_flag_server(database=pair.url(0, 1), **LOG) as server:
        acknowledged: list[str] = []
        ended = threading.Event()

        def change() -> None:
            number = 0
            while not ended.is_set():
                number += 1
                if create(server, f"flag-{number}").status == 201:
                    acknowledged.append(f"flag-{number}")

        writer = threading.Thread(target=change)
        writer.start()
        try:
            wait_until(lambda: len(acknowledged) >= 10, 30)
            pair.primary.stop(signal.SIGQUIT)
            before = len(acknowledged)
            pair.promote()
            wait_until(lambda: len(acknowledged) >= before + 10, 60, lambda: server.program.output())
        finally:
            ended.set()
            writer.join()
        stored = {each["name"] for each in server.admin("/projects/default/features")["features"]}
        assert set(acknowledged) <= stored
        wait_until(lambda: set(acknowledged) <= flags(server), 30)
        wait_until(lambda: ask(f"{server.root}/ready").json() == {"health": "GOOD"}, 30)
        assert "Traceback" not in server.program.output() and not said(server, "an unexpected error")


def test_a_standby_is_a_reader_for_a_store(pair: Pair) -> None:
    """A change is refused with a reason, and reads keep their connections; the first host that takes changes can be asked for."""
    with opened(pair.url(0)) as primary:
        write(primary, "first")
    pair.catch_up()
    with opened(pair.url(1)) as store:
        with pytest.raises(UnwritableError, match="it is a standby"):
            write(store, "refused")
        assert names(store) == ["first"]
    with opened(pair.url(1, 0) + "?target_session_attrs=read-write") as store:
        write(store, "second")
        assert names(store) == ["first", "second"]
