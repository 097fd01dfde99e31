"""`…/features/:featureName/environments/:environment/strategies`: the strategies of a feature; and the check of a constraint."""

from __future__ import annotations

from functools import partial

from flagsvc.http.shapes import Array, ShapeError, check
from flagsvc.server.api.admin.features import ONE, TAG
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route, reading, writing
from flagsvc.server.shapes import feature_bodies as shapes
from flagsvc.server.shapes.strategies import CONSTRAINT, FEATURE_STRATEGY
from flagsvc.server.store.checks import Json, invalid
from flagsvc.server.store.constraints import check_constraint
from flagsvc.server.store.resources import strategies
from flagsvc.server.store.resources.strategies import StrategyPlace, read_legal_values
from flagsvc.server.store.store import Tx


def read_place(call: ApiCall) -> StrategyPlace:
    """Return the feature and the environment in the path."""
    return StrategyPlace(call.params["projectId"], call.params["featureName"], call.params["environment"])


def patch(tx: Tx, call: ApiCall) -> Json:
    """Change a strategy by a JSON Patch."""
    strategy = call.params["strategyId"]
    wanted = strategies.preview_patch(tx, strategy, call.body)
    try:
        checked = check(FEATURE_STRATEGY, wanted, "")
    except ShapeError as error:
        raise invalid(*error.details) from None
    assert isinstance(checked, dict)
    return strategies.change(tx, read_place(call), strategy, checked)


PATH = f"{ONE}/environments/:environment/strategies"
ONE_STRATEGY = f"{PATH}/:strategyId"


def validate(tx: Tx, call: ApiCall) -> None:
    """Check a constraint."""
    check_constraint(call.body, read_legal_values(tx, [call.body["contextName"]]))


route = partial(Route, tag=TAG)

ROUTES = (
    route(
        path=PATH,
        handler=reading(
            lambda tx, call: strategies.list_all(
                tx, call.params["featureName"], call.params["environment"], call.params["projectId"]
            )
        ),
        operation="getFeatureStrategies",
        summary="List the strategies of a feature in an environment",
        result=Array(FEATURE_STRATEGY),
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(lambda tx, call: strategies.create(tx, read_place(call), call.body)),
        operation="addFeatureStrategy",
        summary="Add a strategy",
        permission="CREATE_FEATURE_STRATEGY",
        body=shapes.CREATE_STRATEGY,
        result=FEATURE_STRATEGY,
    ),
    route(
        path=f"{PATH}/set-sort-order",
        method="POST",
        handler=writing(lambda tx, call: strategies.sort(tx, read_place(call), call.body)),
        operation="setStrategySortOrder",
        summary="Set the sort order of strategies",
        permission="UPDATE_FEATURE_STRATEGY",
        body=shapes.SORT_ORDER,
    ),
    route(
        path=ONE_STRATEGY,
        handler=reading(lambda tx, call: strategies.get(tx, call.params["strategyId"])),
        operation="getFeatureStrategy",
        summary="Show a strategy",
        result=FEATURE_STRATEGY,
    ),
    route(
        path=ONE_STRATEGY,
        method="PUT",
        handler=writing(lambda tx, call: strategies.change(tx, read_place(call), call.params["strategyId"], call.body)),
        operation="updateFeatureStrategy",
        summary="Change a strategy",
        description="Absent constraints, parameters and variants are removed.",
        permission="UPDATE_FEATURE_STRATEGY",
        body=shapes.UPDATE_STRATEGY,
        result=FEATURE_STRATEGY,
    ),
    route(
        path=ONE_STRATEGY,
        method="PATCH",
        handler=writing(patch),
        operation="patchFeatureStrategy",
        summary="Change parts of a strategy",
        permission="UPDATE_FEATURE_STRATEGY",
        body=shapes.PATCHES,
        result=FEATURE_STRATEGY,
    ),
    route(
        path=ONE_STRATEGY,
        method="DELETE",
        handler=writing(lambda tx, call: strategies.remove(tx, read_place(call), call.params["strategyId"])),
        operation="deleteFeatureStrategy",
        summary="Delete a strategy",
        permission="DELETE_FEATURE_STRATEGY",
    ),
    route(
        path="/api/admin/constraints/validate",
        method="POST",
        handler=reading(validate),
        reads=True,
        operation="validateConstraint",
        summary="Check a constraint",
        tag="Features",
        body=CONSTRAINT,
        status=204,
    ),
)
