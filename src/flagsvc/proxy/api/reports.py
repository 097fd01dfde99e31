"""How the proxy reads the report of an SDK: of a body without the right shape it says what is wrong. Compiled."""

from __future__ import annotations

from typing import Any, cast

from flagsvc.http.messages import invalid
from flagsvc.http.reports import METRICS, ReportedMetrics, read_toggles
from flagsvc.http.shapes.checking import check
from flagsvc.http.shapes.shape import Shape
from flagsvc.http.shapes.violation import ShapeError


def read(shape: Shape, value: object) -> Any:
    """Return a body coerced to its shape. Raises HttpError (400)."""
    try:
        return check(shape, value)
    except ShapeError as error:
        pointer, rule = error.problem
        raise invalid(pointer, None, rule) from None


def read_metrics(value: object, shape: Shape = METRICS) -> ReportedMetrics:
    """Return the counts of a metrics post by toggle. Raises HttpError (400) before anything is counted."""
    return read_toggles(cast("dict[str, Any]", read(shape, value)))
