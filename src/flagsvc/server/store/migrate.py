"""Migrates a database to this version's schema when a server starts, or to that of a backup when one is restored.

When several servers start at the same time, the first one migrates and the others wait. All steps run in one transaction, so a
server that is killed leaves the database unchanged.
"""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, column, func, inspect, select, table
from sqlalchemy.exc import SQLAlchemyError

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.connections import READING, WRITING
from flagsvc.server.store.schema import METADATA
from flagsvc.server.store.writability import describe_database_error, find_obstacle

if TYPE_CHECKING:
    from alembic.config import Config

VERSION_TABLE = "flagsvc_schema"
SCRIPTS = Path(__file__).with_name("migrations")
STEPS = SCRIPTS / "versions"
"""The modules of the steps. The name of each begins with its version, four digits."""
MIGRATION_LOCK_KEY = 0x666C6173
"""The key of PostgreSQL's advisory lock for migrations."""
ALEMBIC_LOCK = threading.Lock()
"""Alembic's `op` and `context` are global, so only one thread may migrate."""
NEWEST = "head"
"""What Alembic calls the newest version."""


def migrate(engine: Engine) -> None:
    """Migrate the database; an empty one gets every table and the initial rows.

    A database with the newest schema is only read, so it need not take changes. Raises `DatabaseError` for an older schema where
    the database takes no changes, for a database of a newer version, and for a database with another program's tables.
    """
    newest = known_versions()[0]
    with engine.connect().execution_options(**{READING: True}) as db, db.begin():
        found = read_known_version(db)
    if found == newest:
        return
    try:
        with engine.connect().execution_options(**{WRITING: True}) as db, db.begin():
            wait_for_migrations(db)
            if read_known_version(db) != newest:
                upgrade(db, NEWEST)
    except SQLAlchemyError as error:
        obstacle = find_obstacle(error)
        if obstacle is None:
            raise
        has = "is empty" if found is None else f"has the older schema `{found}`"
        raise DatabaseError(
            f"the database {has}, this version of flagsvc needs `{newest}`, and the database cannot be written: {obstacle.why} "
            f"({describe_database_error(error)}); {obstacle.remedy}"
        ) from error


def wait_for_migrations(db: Connection) -> None:
    """Wait for the migrations of other servers. On SQLite the transaction has already waited when it began."""
    if db.dialect.name == "postgresql":
        db.execute(select(func.pg_advisory_xact_lock(MIGRATION_LOCK_KEY)))


def upgrade(db: Connection, version: str) -> None:
    """Migrate a database to a version of the schema, or to the `NEWEST` one, in the caller's transaction."""
    from alembic import command  # which most starts do not need

    with ALEMBIC_LOCK:
        command.upgrade(alembic_config(db), version)


def alembic_config(db: Connection | None = None) -> Config:
    """Return Alembic's configuration for this package's migrations; to run them it needs an open connection."""
    from alembic.config import Config

    config = Config(attributes={"connection": db})
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config


@cache
def known_versions() -> tuple[str, ...]:
    """Return the versions of the schema that this program knows, the newest one first."""
    return tuple(sorted((path.name[:4] for path in STEPS.glob("[0-9]*.py")), reverse=True))


def require_current(engine: Engine) -> None:
    """Check that a database has this version's schema; it changes nothing. Raises `DatabaseError` for any other one."""
    require_known(engine)
    with engine.connect() as db:
        version = read_known_version(db)
    newest = known_versions()[0]
    if version != newest:
        raise DatabaseError(
            f"the database has the older schema `{version}`, and this version of flagsvc needs `{newest}`: a start of "
            "`flagsvc server` of this version migrates it"
        )


def require_known(engine: Engine) -> None:
    """Check that a database has this version's schema or an older one. Raises `DatabaseError`, also for an empty one."""
    with engine.connect() as db:
        if read_known_version(db) is None:
            raise DatabaseError("the database is empty: a start of `flagsvc server` creates its tables")


def require_ours(engine: Engine) -> None:
    """Check that a database is empty or has a schema that this version knows. Raises `DatabaseError`."""
    with engine.connect() as db:
        read_known_version(db)


def read_known_version(db: Connection) -> str | None:
    """Return the schema version of the database; None for an empty one.

    Raises `DatabaseError` where a newer version made the database, or where it contains another program's tables.
    """
    version = _read_version(db)
    known = known_versions()
    if version is not None and version not in known:
        raise DatabaseError(
            f"the database has the schema `{version}`, and this version of flagsvc knows up to `{known[0]}`: "
            "a newer version made it, start that one"
        )
    return version


def _read_version(db: Connection) -> str | None:
    tables = set(inspect(db).get_table_names())
    if VERSION_TABLE in tables:
        return db.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()
    foreign = sorted(tables & set(METADATA.tables))
    if foreign:
        names = ", ".join(f"`{name}`" for name in foreign[:3])
        raise DatabaseError(f"the database holds tables that flagsvc did not make: {names}; give flagsvc one of its own")
    return None
