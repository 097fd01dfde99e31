"""Migrates a database to this version's schema when a server starts.

When several servers start at the same time, the first one migrates and the others wait. All steps run in one transaction, so a
server that is killed leaves the database unchanged.
"""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, column, func, inspect, select, table

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.schema import METADATA

VERSION_TABLE = "flagsvc_schema"
SCRIPTS = Path(__file__).with_name("migrations")
MIGRATION_LOCK_KEY = 0x666C6173
"""The key of PostgreSQL's advisory lock for migrations."""
ALEMBIC_LOCK = threading.Lock()
"""Alembic's `op` and `context` are global, so only one thread may migrate."""


def migrate(engine: Engine) -> None:
    """Migrate the database; an empty one gets every table and the initial rows.

    Raises `DatabaseError` where a newer version made the database, or where it contains another program's tables.
    """
    with ALEMBIC_LOCK, engine.connect().execution_options(flagsvc_writing=True) as db, db.begin():
        if db.dialect.name == "postgresql":
            db.execute(select(func.pg_advisory_xact_lock(MIGRATION_LOCK_KEY)))
        config = alembic_config(db)
        steps = ScriptDirectory.from_config(config)
        newest = steps.get_current_head()
        version = _read_version(db)
        if version == newest:
            return
        _check_version(version, {step.revision for step in steps.walk_revisions()}, newest or "")
        command.upgrade(config, "head")


def require_current(engine: Engine) -> None:
    """Check that a database has this version's schema; it changes nothing. Raises `DatabaseError` for any other one."""
    with engine.connect() as db:
        steps = ScriptDirectory.from_config(alembic_config(db))
        newest = steps.get_current_head() or ""
        version = _read_version(db)
        if version == newest:
            return
        _check_version(version, {step.revision for step in steps.walk_revisions()}, newest)
    if version is None:
        raise DatabaseError("the database is empty: a start of `flagsvc server` creates its tables")
    raise DatabaseError(
        f"the database has the older schema `{version}`, and this version of flagsvc needs `{newest}`: a start of `flagsvc server` "
        "of this version migrates it"
    )


def alembic_config(db: Connection) -> Config:
    """Return Alembic's configuration for this package's migrations, on an open connection."""
    config = Config(attributes={"connection": db})
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config


def _read_version(db: Connection) -> str | None:
    """Return the schema version of the database; None for an empty one."""
    tables = set(inspect(db).get_table_names())
    if VERSION_TABLE in tables:
        return db.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()
    foreign = sorted(tables & set(METADATA.tables))
    if foreign:
        names = ", ".join(f"`{name}`" for name in foreign[:3])
        raise DatabaseError(
            f"the database holds tables that flagsvc did not make: {names}; give flagsvc one of its own"
        )
    return None


def _check_version(version: str | None, known: set[str], newest: str) -> None:
    if version is not None and version not in known:
        raise DatabaseError(
            f"the database has the schema `{version}`, and this version of flagsvc knows up to `{newest}`: "
            "a newer version made it, start that one"
        )
