"""`…/features/:featureName/environments/:environment`: the state and the variants of a feature in an environment."""

from __future__ import annotations

from functools import partial

from flagsvc.http.route import Parameter
from flagsvc.server.api.admin.features import ONE, PROJECT, TAG, TRUE
from flagsvc.server.api.admin.strategies import at_place
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Handler, Route, reading, versioned, writing
from flagsvc.server.shapes import feature_bodies as shapes
from flagsvc.server.shapes.features import FEATURE_ENVIRONMENT
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import permission_refusal
from flagsvc.server.store.resources import feature_environments
from flagsvc.server.store.store import Tx

ACTIVATE = Parameter("shouldActivateDisabledStrategies", "`true`: enable disabled strategies.")
VARIANTS_PERMISSION = "UPDATE_FEATURE_ENVIRONMENT_VARIANTS"


def switch(*, enabled: bool) -> Handler:
    """Return a handler that switches the feature in the path, or those in the body, on or off in an environment."""

    def act(tx: Tx, call: ApiCall) -> None:
        project, environment = call.params["projectId"], call.params["environment"]
        named = [call.params["featureName"]] if "featureName" in call.params else dict.fromkeys(call.body["features"])
        activate = call.first_value(ACTIVATE.name) == TRUE
        feature_environments.switch(tx, project, environment, list(named), enabled=enabled, activate=activate)

    return writing(act)


def push_variants(tx: Tx, call: ApiCall) -> Json:
    """Replace the variants of a feature in several environments, and return them."""
    project, name = call.params["projectId"], call.params["featureName"]
    places = feature_environments.check_environments(call.body.get("environments"))
    for place in places:
        if not call.actor.may(VARIANTS_PERMISSION, project, place):
            raise permission_refusal([VARIANTS_PERMISSION], place)
    found = feature_environments.push_variants(tx, project, name, places, call.body.get("variants") or [])
    return {"version": 1, "variants": found}


PATH = f"{ONE}/environments/:environment"
BULK = f"{PROJECT}/bulk_features/environments/:environment"
STATES = {True: ("on", "On", "Switch {} on"), False: ("off", "Off", "Switch {} off")}

route = partial(Route, tag=TAG)

SWITCHES = tuple(
    route(
        path=f"{PATH}/{name}",
        method="POST",
        handler=switch(enabled=enabled),
        operation=f"toggleFeatureEnvironment{title}",
        summary=summary.format("a feature"),
        description="A feature without an active strategy gets one that is on for everybody." if enabled else "",
        permission="UPDATE_FEATURE_ENVIRONMENT",
        query=(ACTIVATE,) if enabled else (),
    )
    for enabled, (name, title, summary) in STATES.items()
)
BULK_SWITCHES = tuple(
    route(
        path=f"{BULK}/{name}",
        method="POST",
        handler=switch(enabled=enabled),
        operation=f"bulkToggleFeaturesEnvironment{title}",
        summary=summary.format("features"),
        permission="UPDATE_FEATURE_ENVIRONMENT",
        body=shapes.BULK_TOGGLE,
        query=(ACTIVATE,) if enabled else (),
    )
    for enabled, (name, title, summary) in STATES.items()
)

ROUTES = (
    route(
        path=PATH,
        handler=reading(at_place(feature_environments.get)),
        operation="getFeatureEnvironment",
        summary="Show the state of a feature in an environment",
        result=FEATURE_ENVIRONMENT,
    ),
    *SWITCHES,
    *BULK_SWITCHES,
    route(
        path=f"{PATH}/variants",
        handler=reading(versioned("variants", at_place(feature_environments.list_variants))),
        operation="getEnvironmentFeatureVariants",
        summary="List the variants of a feature in an environment",
        result=shapes.FEATURE_VARIANTS,
    ),
    route(
        path=f"{PATH}/variants",
        method="PUT",
        handler=writing(versioned("variants", at_place(feature_environments.replace_variants))),
        operation="overwriteEnvironmentFeatureVariants",
        summary="Replace the variants of a feature in an environment",
        description="Works only for features that already have variants. Add new variants to strategies.",
        permission=VARIANTS_PERMISSION,
        body=shapes.VARIANTS,
        result=shapes.FEATURE_VARIANTS,
    ),
    route(
        path=f"{PATH}/variants",
        method="PATCH",
        handler=writing(versioned("variants", at_place(feature_environments.patch_variants))),
        operation="patchEnvironmentsFeatureVariants",
        summary="Change the variants of a feature in an environment",
        permission=VARIANTS_PERMISSION,
        body=shapes.PATCHES,
        result=shapes.FEATURE_VARIANTS,
    ),
    route(
        path=f"{ONE}/variants-batch",
        method="PUT",
        handler=writing(push_variants),
        operation="overwriteFeatureVariantsOnEnvironments",
        summary="Replace the variants of a feature in several environments",
        description=f"Needs the permission {VARIANTS_PERMISSION} in each of them.",
        body=shapes.PUSH_VARIANTS,
        result=shapes.FEATURE_VARIANTS,
    ),
)
