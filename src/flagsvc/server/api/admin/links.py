"""`…/features/:featureName/link`: links of a feature to pages about it, as on the real server."""

from __future__ import annotations

from flagsvc.server.api.admin.features import ONE, TAG
from flagsvc.server.api.route import Route, writing
from flagsvc.server.shapes.batch import FEATURE_LINK
from flagsvc.server.store.resources import links

PERMISSION = "UPDATE_FEATURE"


PATH = f"{ONE}/link"

ROUTES = (
    Route(
        path=PATH,
        method="POST",
        handler=writing(
            lambda tx, call: links.add(tx, call.params["projectId"], call.params["featureName"], call.body)
        ),
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
        handler=writing(
            lambda tx, call: links.change(
                tx, call.params["projectId"], call.params["featureName"], call.params["linkId"], call.body
            ),
        ),
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
        handler=writing(
            lambda tx, call: links.remove(
                tx, call.params["projectId"], call.params["featureName"], call.params["linkId"]
            ),
        ),
        operation="deleteFeatureLink",
        summary="Remove a link of a feature",
        tag=TAG,
        permission=PERMISSION,
        status=204,
    ),
)
