"""Archives, revives and deletes features (the real server's archive endpoints)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flagsvc.server.api.admin.features import PROJECT
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.errors import forbidden
from flagsvc.server.api.route import Handler, Route
from flagsvc.server.shapes import feature_bodies as shapes
from flagsvc.server.store.resources import feature_archive
from flagsvc.server.store.resources.features import find
from flagsvc.server.store.store import Tx


def handle_features(act: Callable[[Tx, str, Sequence[str]], None]) -> Handler:
    """Return a handler that calls `act` for the features in the body."""

    def handler(call: ApiCall) -> ApiAnswer:
        with call.store.writing(call.actor) as tx:
            act(tx, call.params["projectId"], call.body["features"])
        return ApiAnswer()

    return handler


def handle_feature(act: Callable[[Tx, str], None], permission: str) -> Handler:
    """Return a handler that calls `act` for the feature in the path; it checks the permission in the feature's project."""

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
    """Answer how archiving features would affect dependencies."""
    with call.store.reading() as tx:
        return ApiAnswer(feature_archive.validate_archiving(tx, call.body["features"]))


TAG = "Archive"

ROUTES = (
    Route(
        path=f"{PROJECT}/archive",
        method="POST",
        handler=handle_features(feature_archive.archive_all),
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
        summary="Show how archiving features would affect dependencies",
        tag=TAG,
        permission="DELETE_FEATURE",
        body=shapes.BATCH,
        result=shapes.ARCHIVING,
    ),
    Route(
        path=f"{PROJECT}/revive",
        method="POST",
        handler=handle_features(feature_archive.revive_all),
        operation="reviveFeatures",
        summary="Revive archived features",
        tag=TAG,
        permission="UPDATE_FEATURE",
        body=shapes.BATCH,
    ),
    Route(
        path=f"{PROJECT}/delete",
        method="POST",
        handler=handle_features(feature_archive.remove_all),
        operation="deleteFeatures",
        summary="Delete archived features permanently",
        tag=TAG,
        permission="DELETE_FEATURE",
        body=shapes.BATCH,
    ),
    Route(
        path="/api/admin/archive/revive/:featureName",
        method="POST",
        handler=handle_feature(feature_archive.revive, "UPDATE_FEATURE"),
        operation="reviveFeature",
        summary="Revive an archived feature",
        description="Needs the permission UPDATE_FEATURE in the feature's project.",
        tag=TAG,
    ),
    Route(
        path="/api/admin/archive/:featureName",
        method="DELETE",
        handler=handle_feature(feature_archive.remove, "DELETE_FEATURE"),
        operation="deleteFeature",
        summary="Delete an archived feature permanently",
        description="Needs the permission DELETE_FEATURE in the feature's project.",
        tag=TAG,
    ),
)
