"""The environment of Alembic's migrations: the connection and the transaction that `flagsvc.server.store.migrate` opened."""

from __future__ import annotations

from alembic import context

from flagsvc.server.store.migrate import VERSION_TABLE
from flagsvc.server.store.schema import METADATA

# all steps stand in the one transaction of the caller, on SQLite too: its DDL is transactional where the driver does not interfere
context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
