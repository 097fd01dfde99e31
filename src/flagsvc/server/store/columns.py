"""The types of columns, for SQLite and PostgreSQL alike, and the names of keys and indexes."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import JSON, BigInteger, Column, DateTime, Dialect, ForeignKey, Integer, MetaData, String, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
METADATA = MetaData(naming_convention=NAMES)

Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""A JSON value; Python's None is SQL's NULL."""
Serial = BigInteger().with_variant(Integer, "sqlite")
"""An id that the database generates."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time in UTC: aware in Python, without a zone in SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the stored time with its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def reference(column: str, *, nullable: bool = False, primary_key: bool = False, cascade: bool = True) -> Column[str]:
    """Return a foreign key column to another table: `reference("features.name")` is the column `feature`."""
    table, _, _ = column.partition(".")
    name = {"strategy_types": "strategy_type"}.get(table, table.removesuffix("s"))
    foreign_key = ForeignKey(column, ondelete="CASCADE" if cascade else None, onupdate="CASCADE")
    return Column(name, String, foreign_key, nullable=nullable, primary_key=primary_key)
