"""Spans of statements, within work that is traced: the kind of a statement alone, never its text or its values (decision 0037)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import ExceptionContext

from flagsvc.core.tracing import CLIENT, Span, child

OPERATIONS = frozenset(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH"))
OTHER = "OTHER"
"""The kind of any other statement."""
SPAN = "flagsvc_span"
"""The attribute of SQLAlchemy's context of a statement that has its span."""


def operation_of(statement: str) -> str:
    """Return the first word of a statement, if it is one of a few."""
    word = statement.lstrip()[:6].partition(" ")[0].upper()
    return word if word in OPERATIONS else OTHER


def trace_statements(engine: Engine) -> None:
    """Make a span of each statement that an engine runs within the present span."""
    system = engine.dialect.name

    def begin(db: Connection, cursor: Any, statement: str, parameters: Any, context: Any, *_: object) -> None:
        operation = operation_of(statement)
        span = child(f"{operation} {system}", CLIENT)
        if span is not None:
            span.attributes = {"db.system.name": system, "db.operation.name": operation}
            setattr(context, SPAN, span)

    def end(db: Connection, cursor: Any, statement: str, parameters: Any, context: Any, *_: object) -> None:
        span: Span | None = getattr(context, SPAN, None)
        if span is not None:
            span.end()

    def fail(context: ExceptionContext) -> None:
        span: Span | None = getattr(context.execution_context, SPAN, None)
        if span is not None:
            span.error = type(context.original_exception).__name__
            span.end()

    event.listen(engine, "before_cursor_execute", begin)
    event.listen(engine, "after_cursor_execute", end)
    event.listen(engine, "handle_error", fail)
