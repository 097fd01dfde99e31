"""Archived features: put away several at once, taken out again, deleted for good (the real server's archive endpoints)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flagsvc.server.api.admin import shapes_features as shapes
from flagsvc.server.api.admin.features import PROJECT
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.errors import forbidden
from flagsvc.server.api.route import Handler, Route
from flagsvc.server.store.nouns import feature_life
from flagsvc.server.store.nouns.features import find
from flagsvc.server.store.store import Tx


def several(act: Callable[[Tx, str, Sequence[str]], None]) -> Handler:
    """Return the handler that does something with the features that the body names."""

    def handler(call: ApiCall) -> ApiAnswer:
        with call.store.writing(call.actor) as tx:
            act(tx, call.params["projectId"], call.body["features"])
        return ApiAnswer()

    return handler


def one(act: Callable[[Tx, str], None], permission: str) -> Handler:
    """Return the handler that does something with a feature whose project the path does not tell."""

    def handler(call: ApiCall) -> ApiAnswer:
        name = call.params["featureName"]
        with call.store.writing(call.actor) as tx:
            row = find(tx, name)
            if not call.actor.may(permission, None if row is None else row.project):
                raise forbidden((permission,))
            act(tx, name)
        return ApiAnswer()

    return handler


def validate(call: ApiCall) -> ApiAnswer:
    """Answer what archiving features would do to dependencies."""
    with call.store.reading() as tx:
        return ApiAnswer(feature_life.validate_archiving(tx, call.body["features"]))


TAG = "Archive"

ROUTES = (
    Route(
        path=f"{PROJECT}/archive",
        method="POST",
        handler=several(feature_life.archive_all),
        operation="archiveFeatures",
        summary="Archive features",
        tag=TAG,
        permission="DELETE_FEATURE",
        body=shapes.BATCH,
        status=202,
    ),
    Route(
        path=f"{PROJECT}/archive/validate",
        method="POST",
        handler=validate,
        reads=True,
        operation="validateArchiveFeatures",
        summary="Show what archiving features would do to dependencies",
        tag=TAG,
        permission="DELETE_FEATURE",
        body=shapes.BATCH,
        result=shapes.ARCHIVING,
    ),
    Route(
        path=f"{PROJECT}/revive",
        method="POST",
        handler=several(feature_life.revive_all),
        operation="reviveFeatures",
        summary="Take archived features out again",
        tag=TAG,
        permission="UPDATE_FEATURE",
        body=shapes.BATCH,
    ),
    Route(
        path=f"{PROJECT}/delete",
        method="POST",
        handler=several(feature_life.remove_all),
        operation="deleteFeatures",
        summary="Delete archived features for good",
        tag=TAG,
        permission="DELETE_FEATURE",
        body=shapes.BATCH,
    ),
    Route(
        path="/api/admin/archive/revive/:featureName",
        method="POST",
        handler=one(feature_life.revive, "UPDATE_FEATURE"),
        operation="reviveFeature",
        summary="Take an archived feature out again",
        description="Needs the permission UPDATE_FEATURE in the feature's project.",
        tag=TAG,
    ),
    Route(
        path="/api/admin/archive/:featureName",
        method="DELETE",
        handler=one(feature_life.remove, "DELETE_FEATURE"),
        operation="deleteFeature",
        summary="Delete an archived feature for good",
        description="Needs the permission DELETE_FEATURE in the feature's project.",
        tag=TAG,
    ),
)
