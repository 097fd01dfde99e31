"""`…/features/:featureName/environments/:environment/strategies`: the strategies of a feature; and the check of a constraint."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from flagsvc.http.shapes import Array, ShapeError, check
from flagsvc.server.api.admin.features import ONE, TAG
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Act, Route, by_path, reading, writing
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


def at_place(function: Callable[..., Any]) -> Act:
    """Return what calls a function of the store with the place of the path, and the strategy and the body if there are any."""

    def act(tx: Tx, call: ApiCall) -> Any:
        strategy = [call.params["strategyId"]] if "strategyId" in call.params else []
        return function(tx, read_place(call), *strategy, *([] if call.body is None else [call.body]))

    return act


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
        handler=reading(by_path(strategies.list_all, "featureName", "environment", "projectId")),
        operation="getFeatureStrategies",
        summary="List the strategies of a feature in an environment",
        result=Array(FEATURE_STRATEGY),
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(at_place(strategies.create)),
        operation="addFeatureStrategy",
        summary="Add a strategy",
        permission="CREATE_FEATURE_STRATEGY",
        body=shapes.CREATE_STRATEGY,
        result=FEATURE_STRATEGY,
    ),
    route(
        path=f"{PATH}/set-sort-order",
        method="POST",
        handler=writing(at_place(strategies.sort)),
        operation="setStrategySortOrder",
        summary="Set the sort order of strategies",
        permission="UPDATE_FEATURE_STRATEGY",
        body=shapes.SORT_ORDER,
    ),
    route(
        path=ONE_STRATEGY,
        handler=reading(by_path(strategies.get, "strategyId")),
        operation="getFeatureStrategy",
        summary="Show a strategy",
        result=FEATURE_STRATEGY,
    ),
    route(
        path=ONE_STRATEGY,
        method="PUT",
        handler=writing(at_place(strategies.change)),
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
        handler=writing(at_place(strategies.remove)),
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
