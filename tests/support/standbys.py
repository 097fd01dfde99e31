"""A PostgreSQL primary with a hot standby, on loopback and in temporary folders, and its fail-over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from support.processes import (
    Program,
    cluster,
    database_user,
    free_port,
    make_cluster,
    postgres_program,
    running,
    scratch,
)
from support.waiting import wait_until

STANDBY = "standby"
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
            db.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'".encode())
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
            copy = [backup, *place, "-D", folder / STANDBY, "--checkpoint=fast", "--no-sync", "--write-recovery-conf"]
            with running("pg_basebackup", copy, env={}, folder=folder, user=user) as program:
                assert program.process.wait(60) == 0, program.output()
            source = f"primary_conninfo=host=127.0.0.1 port={ports[0]} user=postgres application_name={STANDBY}"
            with cluster(folder, STANDBY, ports[1], source):
                yield Pair(ports, primary)
