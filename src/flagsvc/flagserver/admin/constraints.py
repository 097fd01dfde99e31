"""`/api/admin/constraints/validate`: a constraint checked before it is used."""

from __future__ import annotations

from flagsvc.flagserver.call import Answer, Call
from flagsvc.flagserver.route import Route
from flagsvc.flagstore.constraints import check_constraint
from flagsvc.flagstore.legal_values import legal_values
from flagsvc.shapes.strategies import CONSTRAINT


def validate(call: Call) -> Answer:
    """Check a constraint."""
    with call.store.reading() as tx:
        check_constraint(call.body, legal_values(tx, [call.body["contextName"]]))
    return Answer()


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
