"""Runs the steps of migrations with Alembic. A start imports this only where there is something to migrate."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

SCRIPTS = Path(__file__).with_name("migrations")
ALEMBIC_LOCK = threading.Lock()
"""Alembic's `op` and `context` are global, so only one thread may migrate."""


def do_steps(db: Connection, version: str) -> None:
    """Migrate a database to a version of the schema, or to `head`, in the caller's transaction."""
    with ALEMBIC_LOCK:
        command.upgrade(alembic_config(db), version)


def alembic_config(db: Connection | None = None) -> Config:
    """Return Alembic's configuration for this package's migrations; to run them it needs an open connection."""
    config = Config(attributes={"connection": db})
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config
