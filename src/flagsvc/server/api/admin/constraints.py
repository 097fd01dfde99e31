"""`/api/admin/constraints/validate`: checks a constraint."""

from __future__ import annotations

from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.shapes.strategies import CONSTRAINT
from flagsvc.server.store.constraints import check_constraint
from flagsvc.server.store.legal_values import read_legal_values


def validate(call: ApiCall) -> ApiAnswer:
    """Check a constraint."""
    with call.store.reading() as tx:
        check_constraint(call.body, read_legal_values(tx, [call.body["contextName"]]))
    return ApiAnswer()


ROUTES = (
    Route(
        path="/api/admin/constraints/validate",
        method="POST",
        handler=validate,
        reads=True,
        operation="validateConstraint",
        summary="Check a constraint",
        tag="Features",
        body=CONSTRAINT,
        status=204,
    ),
)
