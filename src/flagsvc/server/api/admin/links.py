"""`…/features/:featureName/link`: links of a feature to pages about it, as on the real server."""

from __future__ import annotations

from flagsvc.http.answers import Answer
from flagsvc.server.api.admin.features import ONE, TAG
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.shapes.batch import FEATURE_LINK
from flagsvc.server.store.resources import links

PERMISSION = "UPDATE_FEATURE"


def add(call: ApiCall) -> Answer:
    """Add a link to a feature."""
    with call.store.writing(call.actor) as tx:
        links.add(tx, call.params["projectId"], call.params["featureName"], call.body)
    return Answer(status=204)


def update(call: ApiCall) -> Answer:
    """Change a link of a feature."""
    with call.store.writing(call.actor) as tx:
        links.change(tx, call.params["projectId"], call.params["featureName"], call.params["linkId"], call.body)
    return Answer(status=204)


def remove(call: ApiCall) -> Answer:
    """Remove a link of a feature."""
    with call.store.writing(call.actor) as tx:
        links.remove(tx, call.params["projectId"], call.params["featureName"], call.params["linkId"])
    return Answer(status=204)


PATH = f"{ONE}/link"

ROUTES = (
    Route(
        path=PATH,
        method="POST",
        handler=add,
        operation="createFeatureLink",
        summary="Add a link to a feature",
        description="The URL is normalized; it must be one of a web page (http, https). A feature has at most 10 links.",
        tag=TAG,
        permission=PERMISSION,
        body=FEATURE_LINK,
        status=204,
    ),
    Route(
        path=f"{PATH}/:linkId",
        method="PUT",
        handler=update,
        operation="updateFeatureLink",
        summary="Change a link of a feature",
        description="An absent title stays unchanged.",
        tag=TAG,
        permission=PERMISSION,
        body=FEATURE_LINK,
        status=204,
    ),
    Route(
        path=f"{PATH}/:linkId",
        method="DELETE",
        handler=remove,
        operation="deleteFeatureLink",
        summary="Remove a link of a feature",
        tag=TAG,
        permission=PERMISSION,
        status=204,
    ),
)
