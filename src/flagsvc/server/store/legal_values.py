"""Reads the legal values of context fields."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select

from flagsvc.server.store.schema import context_fields
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks


def read_legal_values(tx: Tx, names: Iterable[str]) -> dict[str, dict[str, None]]:
    """Return the legal values, in order, of the context fields of these names that have any. Looking one up takes no search."""
    found: dict[str, dict[str, None]] = {}
    for chunk in chunks(dict.fromkeys(names)):
        query = select(context_fields.c.name, context_fields.c.legal_values).where(context_fields.c.name.in_(chunk))
        for name, values in tx.db.execute(query):
            if values:
                found[name] = dict.fromkeys(each["value"] for each in values)
    return found
