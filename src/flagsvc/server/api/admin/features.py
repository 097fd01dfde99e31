"""`/api/admin/projects/:projectId/features`: features, their archive, their links and their types."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flagsvc.http.answers import Answer
from flagsvc.http.route import Parameter
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.errors import forbidden
from flagsvc.server.api.route import Handler, Route, by_path, reading, writing
from flagsvc.server.shapes import feature_bodies as shapes
from flagsvc.server.shapes.batch import FEATURE_LINK
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import invalid, make_detail
from flagsvc.server.store.resources import favorites, feature_archive, feature_views, features, links, whole_features
from flagsvc.server.store.resources.features import find
from flagsvc.server.store.store import Tx

TRUE = "true"
TAGGED = re.compile(r"\w:.", re.ASCII)


def _parse_tag(text: str, place: int) -> tuple[str, str]:
    """Return the type and the value of `type:value`. Raises CallerError (400)."""
    if not TAGGED.search(text):
        raise invalid(make_detail(f'"tag[{place}]" with value "{text}" fails to match the tag pattern', text))
    kind, _, value = text.partition(":")
    return kind, value


PROJECT = "/api/admin/projects/:projectId"
PATH = f"{PROJECT}/features"
ONE = f"{PATH}/:featureName"
TAG = "Features"
route = partial(Route, tag=TAG)


TYPES: tuple[tuple[str, str, str, int | None], ...] = (
    ("release", "Release", "Holds back what is new until it may be released.", 40),
    ("experiment", "Experiment", "Shows different callers different forms of something, to compare them.", 40),
    ("operational", "Operational", "Steers how something is rolled out or run.", 7),
    ("kill-switch", "Kill switch", "Turns off in a hurry what must not run.", None),
    ("permission", "Permission", "Decides who is allowed something.", None),
)
"""Id, name, purpose, and expected lifetime in days."""
FIELDS = ("id", "name", "description", "lifetimeDays")


def list_types(call: ApiCall) -> Answer:
    found: list[dict[str, Any]] = [dict(zip(FIELDS, row, strict=True)) for row in TYPES]
    return Answer({"version": 1, "types": found})


def list_features(tx: Tx, call: ApiCall) -> dict[str, Any]:
    """Return the features of a project. Raises CallerError (400)."""
    tags = [_parse_tag(text, place) for place, text in enumerate(call.query.get("tag", []))] or None
    project, prefix = call.params["projectId"], call.first_value("namePrefix")
    found = feature_views.list_in_project(tx, project, tags=tags, prefix=prefix)
    return {"version": 2, "features": favorites.mark(tx, call.actor, found)}


def show_feature(tx: Tx, call: ApiCall) -> dict[str, Any]:
    """Return a feature, for a user with `favorite`. Raises CallerError (404)."""
    with_variants = call.first_value("variantEnvironments") == TRUE
    found = feature_views.get(tx, call.params["projectId"], call.params["featureName"], with_variants=with_variants)
    if call.actor.is_user:
        favorites.mark(tx, call.actor, [found])
    return found


def handle_favorite(act: Callable[[Tx, Actor, str, str], None]) -> Handler:
    """Return a handler that calls `act` for the caller and the feature in the path. It changes no flag, so no client asks again."""

    def handler(call: ApiCall) -> Answer:
        with call.store.recording(call.actor) as tx:
            act(tx, call.actor, call.params["projectId"], call.params["featureName"])
        return Answer()

    return handler


def handle_features(act: Callable[[Tx, str, Sequence[str]], None]) -> Handler:
    """Return a handler that calls `act` for the features in the body."""
    return writing(lambda tx, call: act(tx, call.params["projectId"], call.body["features"]))


def handle_feature(act: Callable[[Tx, str], None], permission: str) -> Handler:
    """Return a handler that calls `act` for the feature in the path; it checks the permission in the feature's project."""

    def act_where_allowed(tx: Tx, call: ApiCall) -> None:
        row = find(tx, call.params["featureName"])
        if not call.actor.may(permission, None if row is None else row.project):
            raise forbidden((permission,))
        act(tx, call.params["featureName"])

    return writing(act_where_allowed)


ARCHIVE = "Archive"
LINK = f"{ONE}/link"

ROUTES = (
    route(
        path=PATH,
        handler=reading(list_features),
        operation="getFeatures",
        summary="List the features of a project",
        query=(
            Parameter("tag", "Only features with this tag, `type:value`.", repeated=True),
            Parameter("namePrefix", "Only features whose names begin with this."),
        ),
        result=shapes.PROJECT_FEATURES,
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(by_path(features.create)),
        operation="createFeature",
        summary="Create a feature",
        description="It is switched off in every environment of the project.",
        permission="CREATE_FEATURE",
        body=shapes.CREATE_FEATURE,
        status=201,
        result=shapes.SHOWN_FEATURE,
    ),
    route(
        path=ONE,
        handler=reading(show_feature),
        operation="getFeature",
        summary="Show a feature",
        query=(Parameter("variantEnvironments", "`true`: with the variants of each environment."),),
        result=shapes.SHOWN_FEATURE,
    ),
    route(
        path=ONE,
        method="PUT",
        handler=writing(by_path(features.replace)),
        operation="updateFeature",
        summary="Replace the description of a feature",
        permission="UPDATE_FEATURE",
        body=shapes.UPDATE_FEATURE,
        result=shapes.SHOWN_FEATURE,
    ),
    route(
        path=ONE,
        method="PATCH",
        handler=writing(by_path(features.patch)),
        operation="patchFeature",
        summary="Change the description of a feature",
        permission="UPDATE_FEATURE",
        body=shapes.PATCHES,
        result=shapes.SHOWN_FEATURE,
    ),
    route(
        path=ONE,
        method="DELETE",
        handler=writing(by_path(feature_archive.archive)),
        operation="archiveFeature",
        summary="Archive a feature",
        permission="DELETE_FEATURE",
        status=202,
    ),
    route(
        path=f"{ONE}/clone",
        method="POST",
        handler=writing(
            lambda tx, call: whole_features.clone(
                tx,
                call.params["projectId"],
                call.params["featureName"],
                call.body["name"],
                replace_group=call.body.get("replaceGroupId", True),
            ),
        ),
        operation="cloneFeature",
        summary="Clone a feature",
        permission="CREATE_FEATURE",
        body=shapes.CLONE_FEATURE,
        status=201,
        result=shapes.SHOWN_FEATURE,
    ),
    route(
        path=f"{ONE}/favorites",
        method="POST",
        handler=handle_favorite(favorites.add),
        operation="addFavoriteFeature",
        summary="Make a feature a favorite of the caller",
    ),
    route(
        path=f"{ONE}/favorites",
        method="DELETE",
        handler=handle_favorite(favorites.remove),
        operation="removeFavoriteFeature",
        summary="Make a feature no favorite of the caller",
    ),
    route(
        path=f"{PROJECT}/stale",
        method="POST",
        handler=writing(
            lambda tx, call: features.set_stale(tx, call.params["projectId"], call.body["features"], stale=call.body["stale"])
        ),
        operation="staleFeatures",
        summary="Mark features as stale or not",
        permission="UPDATE_FEATURE",
        body=shapes.BATCH_STALE,
        status=202,
    ),
    route(
        path="/api/admin/features/validate",
        method="POST",
        handler=reading(lambda tx, call: features.check_new_name(tx, call.body["name"], call.body.get("projectId"))),
        reads=True,
        operation="validateFeature",
        summary="Check a name for a new feature",
        body=shapes.VALIDATE_FEATURE,
    ),
    route(
        path="/api/admin/feature-types",
        handler=list_types,
        operation="getAllFeatureTypes",
        summary="List the feature types",
        tag="Feature types",
        result=shapes.FEATURE_TYPES,
        in_memory=True,
    ),
    route(
        path=f"{PROJECT}/archive",
        method="POST",
        handler=handle_features(feature_archive.archive_all),
        operation="archiveFeatures",
        summary="Archive features",
        tag=ARCHIVE,
        permission="DELETE_FEATURE",
        body=shapes.BATCH,
        status=202,
    ),
    route(
        path=f"{PROJECT}/archive/validate",
        method="POST",
        handler=reading(lambda tx, call: feature_archive.validate_archiving(tx, call.body["features"])),
        reads=True,
        operation="validateArchiveFeatures",
        summary="Show how archiving features would affect dependencies",
        tag=ARCHIVE,
        permission="DELETE_FEATURE",
        body=shapes.BATCH,
        result=shapes.ARCHIVING,
    ),
    route(
        path=f"{PROJECT}/revive",
        method="POST",
        handler=handle_features(feature_archive.revive_all),
        operation="reviveFeatures",
        summary="Revive archived features",
        tag=ARCHIVE,
        permission="UPDATE_FEATURE",
        body=shapes.BATCH,
    ),
    route(
        path=f"{PROJECT}/delete",
        method="POST",
        handler=handle_features(feature_archive.remove_all),
        operation="deleteFeatures",
        summary="Delete archived features permanently",
        tag=ARCHIVE,
        permission="DELETE_FEATURE",
        body=shapes.BATCH,
    ),
    route(
        path="/api/admin/archive/revive/:featureName",
        method="POST",
        handler=handle_feature(feature_archive.revive, "UPDATE_FEATURE"),
        operation="reviveFeature",
        summary="Revive an archived feature",
        description="Needs the permission UPDATE_FEATURE in the feature's project.",
        tag=ARCHIVE,
    ),
    route(
        path="/api/admin/archive/:featureName",
        method="DELETE",
        handler=handle_feature(feature_archive.remove, "DELETE_FEATURE"),
        operation="deleteFeature",
        summary="Delete an archived feature permanently",
        description="Needs the permission DELETE_FEATURE in the feature's project.",
        tag=ARCHIVE,
    ),
    route(
        path=LINK,
        method="POST",
        handler=writing(by_path(links.add)),
        operation="createFeatureLink",
        summary="Add a link to a feature",
        description="The URL is normalized; it must be one of a web page (http, https). A feature has at most 10 links.",
        permission="UPDATE_FEATURE",
        body=FEATURE_LINK,
        status=204,
    ),
    route(
        path=f"{LINK}/:linkId",
        method="PUT",
        handler=writing(by_path(links.change)),
        operation="updateFeatureLink",
        summary="Change a link of a feature",
        description="An absent title stays unchanged.",
        permission="UPDATE_FEATURE",
        body=FEATURE_LINK,
        status=204,
    ),
    route(
        path=f"{LINK}/:linkId",
        method="DELETE",
        handler=writing(by_path(links.remove)),
        operation="deleteFeatureLink",
        summary="Remove a link of a feature",
        permission="UPDATE_FEATURE",
        status=204,
    ),
)
