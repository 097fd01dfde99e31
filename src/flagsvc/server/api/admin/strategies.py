"""`…/features/:featureName/environments/:environment/strategies`: the strategies of a feature; and the check of a constraint."""

from __future__ import annotations

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Array, ShapeError, check
from flagsvc.server.api.admin.features import ONE, TAG
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.shapes import feature_bodies as shapes
from flagsvc.server.shapes.strategies import CONSTRAINT, FEATURE_STRATEGY
from flagsvc.server.store.checks import invalid
from flagsvc.server.store.constraints import check_constraint
from flagsvc.server.store.legal_values import read_legal_values
from flagsvc.server.store.resources import strategies
from flagsvc.server.store.resources.strategies import StrategyPlace


def read_place(call: ApiCall) -> StrategyPlace:
    """Return the feature and the environment in the path."""
    return StrategyPlace(call.params["projectId"], call.params["featureName"], call.params["environment"])


def list_all(call: ApiCall) -> Answer:
    """Answer the strategies of a feature in an environment."""
    with call.store.reading() as tx:
        return Answer(strategies.list_all(tx, call.params["featureName"], call.params["environment"]))


def create(call: ApiCall) -> Answer:
    """Add a strategy."""
    with call.store.writing(call.actor) as tx:
        return Answer(strategies.create(tx, read_place(call), call.body))


def get(call: ApiCall) -> Answer:
    """Answer a strategy."""
    with call.store.reading() as tx:
        return Answer(strategies.get(tx, call.params["strategyId"]))


def change(call: ApiCall) -> Answer:
    """Change a strategy."""
    with call.store.writing(call.actor) as tx:
        return Answer(strategies.change(tx, read_place(call), call.params["strategyId"], call.body))


def patch(call: ApiCall) -> Answer:
    """Change a strategy by a JSON Patch."""
    strategy = call.params["strategyId"]
    with call.store.writing(call.actor) as tx:
        wanted = strategies.preview_patch(tx, strategy, call.body)
        try:
            checked = check(FEATURE_STRATEGY, wanted, "")
        except ShapeError as error:
            raise invalid(*error.details) from None
        assert isinstance(checked, dict)
        return Answer(strategies.change(tx, read_place(call), strategy, checked))


def remove(call: ApiCall) -> Answer:
    """Delete a strategy."""
    with call.store.writing(call.actor) as tx:
        strategies.remove(tx, read_place(call), call.params["strategyId"])
    return Answer()


def sort(call: ApiCall) -> Answer:
    """Set the sort order of strategies."""
    with call.store.writing(call.actor) as tx:
        strategies.sort(tx, read_place(call), call.body)
    return Answer()


PATH = f"{ONE}/environments/:environment/strategies"
ONE_STRATEGY = f"{PATH}/:strategyId"


def validate(call: ApiCall) -> Answer:
    """Check a constraint."""
    with call.store.reading() as tx:
        check_constraint(call.body, read_legal_values(tx, [call.body["contextName"]]))
    return Answer()


ROUTES = (
    Route(
        path=PATH,
        handler=list_all,
        operation="getFeatureStrategies",
        summary="List the strategies of a feature in an environment",
        tag=TAG,
        result=Array(FEATURE_STRATEGY),
    ),
    Route(
        path=PATH,
        method="POST",
        handler=create,
        operation="addFeatureStrategy",
        summary="Add a strategy",
        tag=TAG,
        permission="CREATE_FEATURE_STRATEGY",
        body=shapes.CREATE_STRATEGY,
        result=FEATURE_STRATEGY,
    ),
    Route(
        path=f"{PATH}/set-sort-order",
        method="POST",
        handler=sort,
        operation="setStrategySortOrder",
        summary="Set the sort order of strategies",
        tag=TAG,
        permission="UPDATE_FEATURE_STRATEGY",
        body=shapes.SORT_ORDER,
    ),
    Route(
        path=ONE_STRATEGY,
        handler=get,
        operation="getFeatureStrategy",
        summary="Show a strategy",
        tag=TAG,
        result=FEATURE_STRATEGY,
    ),
    Route(
        path=ONE_STRATEGY,
        method="PUT",
        handler=change,
        operation="updateFeatureStrategy",
        summary="Change a strategy",
        description="Absent constraints, parameters and variants are removed.",
        tag=TAG,
        permission="UPDATE_FEATURE_STRATEGY",
        body=shapes.UPDATE_STRATEGY,
        result=FEATURE_STRATEGY,
    ),
    Route(
        path=ONE_STRATEGY,
        method="PATCH",
        handler=patch,
        operation="patchFeatureStrategy",
        summary="Change parts of a strategy",
        tag=TAG,
        permission="UPDATE_FEATURE_STRATEGY",
        body=shapes.PATCHES,
        result=FEATURE_STRATEGY,
    ),
    Route(
        path=ONE_STRATEGY,
        method="DELETE",
        handler=remove,
        operation="deleteFeatureStrategy",
        summary="Delete a strategy",
        tag=TAG,
        permission="DELETE_FEATURE_STRATEGY",
    ),
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
