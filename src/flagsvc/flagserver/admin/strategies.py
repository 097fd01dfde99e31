"""`…/features/:featureName/environments/:environment/strategies`: when a feature is on in an environment."""

from __future__ import annotations

from flagsvc.flagserver.admin import shapes_features as shapes
from flagsvc.flagserver.admin.features import ONE, TAG
from flagsvc.flagserver.call import Answer, Call
from flagsvc.flagserver.route import Route
from flagsvc.flagstore import strategies
from flagsvc.flagstore.checks import invalid
from flagsvc.flagstore.strategies import Place
from flagsvc.shapes import Array, ShapeError, check
from flagsvc.shapes.strategies import FEATURE_STRATEGY


def place_of(call: Call) -> Place:
    """Return which feature in which environment a path names."""
    return Place(call.params["projectId"], call.params["featureName"], call.params["environment"])


def list_all(call: Call) -> Answer:
    """Answer the strategies of a feature in an environment."""
    with call.store.reading() as tx:
        return Answer(strategies.list_all(tx, call.params["featureName"], call.params["environment"]))


def create(call: Call) -> Answer:
    """Add a strategy."""
    with call.store.writing(call.actor) as tx:
        return Answer(strategies.create(tx, place_of(call), call.body))


def get(call: Call) -> Answer:
    """Answer a strategy."""
    with call.store.reading() as tx:
        return Answer(strategies.get(tx, call.params["strategyId"]))


def change(call: Call) -> Answer:
    """Change a strategy."""
    with call.store.writing(call.actor) as tx:
        return Answer(strategies.change(tx, place_of(call), call.params["strategyId"], call.body))


def patch(call: Call) -> Answer:
    """Change a strategy by a JSON Patch."""
    strategy = call.params["strategyId"]
    with call.store.writing(call.actor) as tx:
        wanted = strategies.patched(tx, strategy, call.body)
        try:
            checked = check(FEATURE_STRATEGY, wanted, "")
        except ShapeError as error:
            raise invalid(*error.details) from None
        assert isinstance(checked, dict)
        return Answer(strategies.change(tx, place_of(call), strategy, checked))


def remove(call: Call) -> Answer:
    """Take a strategy away."""
    with call.store.writing(call.actor) as tx:
        strategies.remove(tx, place_of(call), call.params["strategyId"])
    return Answer()


def sort(call: Call) -> Answer:
    """Give strategies another order."""
    with call.store.writing(call.actor) as tx:
        strategies.sort(tx, place_of(call), call.body)
    return Answer()


PATH = f"{ONE}/environments/:environment/strategies"
ONE_STRATEGY = f"{PATH}/:strategyId"

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
        summary="Give strategies another order",
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
        description="Constraints, parameters and variants that are absent are taken away.",
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
        summary="Take a strategy away",
        tag=TAG,
        permission="DELETE_FEATURE_STRATEGY",
    ),
)
