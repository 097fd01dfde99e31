"""The statements of traced work are spans: their kind, never their text or values."""

from __future__ import annotations

from random import Random

import pytest
from sqlalchemy import literal, select, text

from flagsvc.core.errors import DatabaseError
from flagsvc.core.tracing import Tracer, running
from flagsvc.server.store.store import Store
from flagsvc.server.store.traced_statements import operation_of, trace_statements


def test_the_statements_of_a_transaction(store: Store) -> None:
    """Each statement within traced work has a span within the span of its transaction. A failed statement has the kind of its
    failure.

    Without a present span there is none.
    """
    tracer = Tracer(Random(1), 1.0, follows_parent=True, room=100, batch=100, on_batch=lambda: None)
    trace_statements(store.engine)
    with store.reading() as tx:
        tx.db.execute(select(literal("marked")))
    assert tracer.take() == []
    with running(tracer.begin("work")), store.reading() as tx:
        tx.db.execute(select(literal("marked")))
    system = store.engine.dialect.name
    statement, transaction, work = tracer.take()[-3:]
    assert (statement.name, statement.parent, transaction.parent) == (f"SELECT {system}", transaction.id, work.id)
    assert statement.attributes == {"db.system.name": system, "db.operation.name": "SELECT"} and not statement.error

    def fail() -> None:
        with running(tracer.begin("work")), store.reading() as tx:
            tx.db.execute(text("SELECT marked FROM nowhere"))

    with pytest.raises(DatabaseError):
        fail()
    failed = next(span for span in tracer.take() if span.name == f"SELECT {system}")
    assert failed.error and "marked" not in str(vars(failed))


@pytest.mark.parametrize(
    ("statement", "operation"),
    [(" select 1", "SELECT"), ("INSERT INTO a", "INSERT"), ("WITH a AS", "WITH"), ("PRAGMA x", "OTHER"), ("", "OTHER")],
)
def test_the_kind_of_a_statement(statement: str, operation: str) -> None:
    """The kind is one of a few words."""
    assert operation_of(statement) == operation
