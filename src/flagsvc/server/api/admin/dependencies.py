"""`…/features/:child/dependencies`: what a feature asks of a parent feature."""

from __future__ import annotations

from flagsvc.http.shapes import Array, Boolean, Named, Object, String
from flagsvc.server.api.admin.features import PROJECT
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.store.nouns import dependencies

CREATE = Named(
    "createDependentFeatureSchema",
    Object(
        {
            "feature": String(description="The parent.", example="parent-feature"),
            "enabled": Boolean(description="Whether the parent must be on, or off; on where it is not said."),
            "variants": Array(String(), description="Variants of the parent of which one must be the caller's."),
        },
        required=("feature",),
        description="What a feature asks of its parent.",
    ),
)
PARENTS = Named("parentFeatureOptionsSchema", Array(String(), description="Features that could be the parent."))
VARIANTS = Named("parentVariantOptionsSchema", Array(String(), description="Variants that could be asked for."))


def add(call: ApiCall) -> ApiAnswer:
    """Let a feature depend on a parent."""
    project, child = call.params["projectId"], call.params["child"]
    with call.store.writing(call.actor) as tx:
        dependencies.add(tx, project, child, call.body)
    return ApiAnswer()


def remove(call: ApiCall) -> ApiAnswer:
    """Let a feature no longer depend on a parent."""
    project, child = call.params["projectId"], call.params["child"]
    with call.store.writing(call.actor) as tx:
        dependencies.check_mine(tx, project, child)
        dependencies.remove(tx, project, child, call.params["parent"])
    return ApiAnswer()


def remove_all(call: ApiCall) -> ApiAnswer:
    """Let a feature depend on nothing."""
    project, child = call.params["projectId"], call.params["child"]
    with call.store.writing(call.actor) as tx:
        dependencies.check_mine(tx, project, child)
        dependencies.drop_dependencies(tx, project, [child])
    return ApiAnswer()


def parents(call: ApiCall) -> ApiAnswer:
    """Answer the features that could be a feature's parent."""
    with call.store.reading() as tx:
        return ApiAnswer(dependencies.possible_parents(tx, call.params["child"]))


def variants(call: ApiCall) -> ApiAnswer:
    """Answer the variants of a parent."""
    with call.store.reading() as tx:
        return ApiAnswer(dependencies.variants_of(tx, call.params["parent"]))


def exist(call: ApiCall) -> ApiAnswer:
    """Answer whether there is any dependency at all."""
    with call.store.reading() as tx:
        return ApiAnswer(dependencies.any_dependencies(tx))


FEATURES = f"{PROJECT}/features"
PERMISSION = "UPDATE_FEATURE_DEPENDENCY"
TAG = "Dependencies"

ROUTES = (
    Route(
        path=f"{FEATURES}/:child/dependencies",
        method="POST",
        handler=add,
        operation="addFeatureDependency",
        summary="Let a feature depend on a parent",
        tag=TAG,
        permission=PERMISSION,
        body=CREATE,
    ),
    Route(
        path=f"{FEATURES}/:child/dependencies/:parent",
        method="DELETE",
        handler=remove,
        operation="deleteFeatureDependency",
        summary="Let a feature no longer depend on a parent",
        tag=TAG,
        permission=PERMISSION,
    ),
    Route(
        path=f"{FEATURES}/:child/dependencies",
        method="DELETE",
        handler=remove_all,
        operation="deleteFeatureDependencies",
        summary="Let a feature depend on nothing",
        tag=TAG,
        permission=PERMISSION,
    ),
    Route(
        path=f"{FEATURES}/:child/parents",
        handler=parents,
        operation="listParentOptions",
        summary="List the features that could be the parent",
        tag=TAG,
        result=PARENTS,
    ),
    Route(
        path=f"{FEATURES}/:parent/parent-variants",
        handler=variants,
        operation="listParentVariantOptions",
        summary="List the variants of a parent",
        tag=TAG,
        result=VARIANTS,
    ),
    Route(
        path=f"{PROJECT}/dependencies",
        handler=exist,
        operation="checkDependenciesExist",
        summary="Tell whether there is any dependency at all",
        tag=TAG,
        result=Boolean(),
    ),
)
