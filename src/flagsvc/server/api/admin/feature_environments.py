"""`…/features/:featureName/environments/:environment`: the state and the variants of a feature in an environment."""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.http.answers import Answer
from flagsvc.http.route import Parameter
from flagsvc.server.api.admin.features import ONE, PROJECT, TAG, TRUE
from flagsvc.server.api.admin.strategies import read_place
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Handler, Route
from flagsvc.server.shapes import feature_bodies as shapes
from flagsvc.server.shapes.features import FEATURE_ENVIRONMENT
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources import feature_environments

ACTIVATE = Parameter("shouldActivateDisabledStrategies", "`true`: enable disabled strategies.")
VARIANTS_PERMISSION = "UPDATE_FEATURE_ENVIRONMENT_VARIANTS"


def get(call: ApiCall) -> Answer:
    """Answer whether a feature is on in an environment, and its strategies there."""
    with call.store.reading() as tx:
        return Answer(feature_environments.get(tx, read_place(call)))


def switch(*, enabled: bool) -> Handler:
    """Return a handler that switches a feature on or off in an environment."""

    def handler(call: ApiCall) -> Answer:
        return _switch(call, [call.params["featureName"]], enabled=enabled)

    return handler


def switch_all(*, enabled: bool) -> Handler:
    """Return a handler that switches several features on or off in an environment."""

    def handler(call: ApiCall) -> Answer:
        return _switch(call, list(dict.fromkeys(call.body["features"])), enabled=enabled)

    return handler


def _switch(call: ApiCall, names: Sequence[str], *, enabled: bool) -> Answer:
    project, environment = call.params["projectId"], call.params["environment"]
    activate = call.first_value(ACTIVATE.name) == TRUE
    with call.store.writing(call.actor) as tx:
        feature_environments.switch(tx, project, environment, names, enabled=enabled, activate=activate)
    return Answer()


def list_variants(call: ApiCall) -> Answer:
    """Answer the variants of a feature in an environment."""
    with call.store.reading() as tx:
        return Answer({"version": 1, "variants": feature_environments.list_variants(tx, read_place(call))})


def replace_variants(call: ApiCall) -> Answer:
    """Replace the variants of a feature in an environment."""
    with call.store.writing(call.actor) as tx:
        found = feature_environments.replace_variants(tx, read_place(call), call.body)
    return Answer({"version": 1, "variants": found})


def patch_variants(call: ApiCall) -> Answer:
    """Change the variants of a feature in an environment."""
    with call.store.writing(call.actor) as tx:
        found = feature_environments.patch_variants(tx, read_place(call), call.body)
    return Answer({"version": 1, "variants": found})


def push_variants(call: ApiCall) -> Answer:
    """Replace the variants of a feature in several environments."""
    project, name = call.params["projectId"], call.params["featureName"]
    places = feature_environments.check_environments(call.body.get("environments"))
    for place in places:
        _check_permission(call, project, place)
    with call.store.writing(call.actor) as tx:
        found = feature_environments.push_variants(tx, project, name, places, call.body.get("variants") or [])
    return Answer({"version": 1, "variants": found})


def _check_permission(call: ApiCall, project: str, environment: str) -> None:
    if not call.actor.may(VARIANTS_PERMISSION, project, environment):
        raise CallerError(
            "PermissionError",
            "You don't have the required permissions to perform this operation. To perform this action, you need the "
            f'"{VARIANTS_PERMISSION}" permission in the "{environment}" environment.',
        )


PATH = f"{ONE}/environments/:environment"
BULK = f"{PROJECT}/bulk_features/environments/:environment"
STATES = {True: ("on", "On", "Switch {} on"), False: ("off", "Off", "Switch {} off")}

SWITCHES = tuple(
    Route(
        path=f"{PATH}/{name}",
        method="POST",
        handler=switch(enabled=enabled),
        operation=f"toggleFeatureEnvironment{title}",
        summary=summary.format("a feature"),
        description="A feature without an active strategy gets one that is on for everybody." if enabled else "",
        tag=TAG,
        permission="UPDATE_FEATURE_ENVIRONMENT",
        query=(ACTIVATE,) if enabled else (),
    )
    for enabled, (name, title, summary) in STATES.items()
)
BULK_SWITCHES = tuple(
    Route(
        path=f"{BULK}/{name}",
        method="POST",
        handler=switch_all(enabled=enabled),
        operation=f"bulkToggleFeaturesEnvironment{title}",
        summary=summary.format("features"),
        tag=TAG,
        permission="UPDATE_FEATURE_ENVIRONMENT",
        body=shapes.BULK_TOGGLE,
        query=(ACTIVATE,) if enabled else (),
    )
    for enabled, (name, title, summary) in STATES.items()
)

ROUTES = (
    Route(
        path=PATH,
        handler=get,
        operation="getFeatureEnvironment",
        summary="Show the state of a feature in an environment",
        tag=TAG,
        result=FEATURE_ENVIRONMENT,
    ),
    *SWITCHES,
    *BULK_SWITCHES,
    Route(
        path=f"{PATH}/variants",
        handler=list_variants,
        operation="getEnvironmentFeatureVariants",
        summary="List the variants of a feature in an environment",
        tag=TAG,
        result=shapes.FEATURE_VARIANTS,
    ),
    Route(
        path=f"{PATH}/variants",
        method="PUT",
        handler=replace_variants,
        operation="overwriteEnvironmentFeatureVariants",
        summary="Replace the variants of a feature in an environment",
        description="Works only for features that already have variants. Add new variants to strategies.",
        tag=TAG,
        permission=VARIANTS_PERMISSION,
        body=shapes.VARIANTS,
        result=shapes.FEATURE_VARIANTS,
    ),
    Route(
        path=f"{PATH}/variants",
        method="PATCH",
        handler=patch_variants,
        operation="patchEnvironmentsFeatureVariants",
        summary="Change the variants of a feature in an environment",
        tag=TAG,
        permission=VARIANTS_PERMISSION,
        body=shapes.PATCHES,
        result=shapes.FEATURE_VARIANTS,
    ),
    Route(
        path=f"{ONE}/variants-batch",
        method="PUT",
        handler=push_variants,
        operation="overwriteFeatureVariantsOnEnvironments",
        summary="Replace the variants of a feature in several environments",
        description=f"Needs the permission {VARIANTS_PERMISSION} in each of them.",
        tag=TAG,
        body=shapes.PUSH_VARIANTS,
        result=shapes.FEATURE_VARIANTS,
    ),
)
