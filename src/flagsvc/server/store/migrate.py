"""Bringing a database to the shape this version knows, at the start of a server.

Several servers may start at once: the first migrates, the others wait and find the work done. All steps stand in one
transaction, so a server that is killed leaves the database as it was.
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
MIGRATORS = 0x666C6173
"""The key of the advisory lock that a migrating server takes on PostgreSQL."""
ALEMBIC = threading.Lock()
"""Alembic's `op` and `context` belong to the whole process: one thread at a time."""


def migrate(engine: Engine) -> None:
    """Bring the database up to date; an empty one gets every table and what every new database holds.

    Raises `DatabaseError` where a newer version made the database, or where it holds tables of another program.
    """
    with ALEMBIC, engine.connect().execution_options(flagsvc_writing=True) as db, db.begin():
        if db.dialect.name == "postgresql":
            db.execute(select(func.pg_advisory_xact_lock(MIGRATORS)))
        config = alembic_config(db)
        steps = ScriptDirectory.from_config(config)
        newest = steps.get_current_head()
        version = _version(db)
        if version == newest:
            return
        _check(version, {step.revision for step in steps.walk_revisions()}, newest or "")
        command.upgrade(config, "head")


def alembic_config(db: Connection) -> Config:
    """Return Alembic's configuration for the steps of this package, on an open connection."""
    config = Config(attributes={"connection": db})
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config


def _version(db: Connection) -> str | None:
    """Return the version of the database; None for an empty one."""
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


def _check(version: str | None, known: set[str], newest: str) -> None:
    if version is not None and version not in known:
        raise DatabaseError(
            f"the database has the schema `{version}`, and this version of flagsvc knows up to `{newest}`: "
            "a newer version made it, start that one"
        )
