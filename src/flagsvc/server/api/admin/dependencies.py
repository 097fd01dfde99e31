"""`…/features/:child/dependencies`: dependencies of a feature on a parent feature."""

from __future__ import annotations

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Array, Boolean, Named, Object, String
from flagsvc.server.api.admin.features import PROJECT
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.store.resources import dependencies

CREATE = Named(
    "createDependentFeatureSchema",
    Object(
        {
            "feature": String(description="The parent.", example="parent-feature"),
            "enabled": Boolean(description="Whether the parent must be on or off; on by default."),
            "variants": Array(String(), description="Variants of the parent, one of which the evaluation must give."),
        },
        required=("feature",),
        description="A dependency on a parent.",
    ),
)
PARENTS = Named("parentFeatureOptionsSchema", Array(String(), description="Features that could be the parent."))
VARIANTS = Named("parentVariantOptionsSchema", Array(String(), description="Variants that a dependency could name."))


def add(call: ApiCall) -> Answer:
    """Make a feature depend on a parent."""
    project, child = call.params["projectId"], call.params["child"]
    with call.store.writing(call.actor) as tx:
        dependencies.add(tx, project, child, call.body)
    return Answer()


def remove(call: ApiCall) -> Answer:
    """Remove a dependency of a feature."""
    project, child = call.params["projectId"], call.params["child"]
    with call.store.writing(call.actor) as tx:
        dependencies.check_owner(tx, project, child)
        dependencies.remove(tx, project, child, call.params["parent"])
    return Answer()


def remove_all(call: ApiCall) -> Answer:
    """Remove all dependencies of a feature."""
    project, child = call.params["projectId"], call.params["child"]
    with call.store.writing(call.actor) as tx:
        dependencies.check_owner(tx, project, child)
        dependencies.remove_dependencies(tx, project, [child])
    return Answer()


def list_parents(call: ApiCall) -> Answer:
    """Answer the features that could be the parent of a feature."""
    with call.store.reading() as tx:
        return Answer(dependencies.possible_parents(tx, call.params["child"]))


def list_variants(call: ApiCall) -> Answer:
    """Answer the variants of a parent."""
    with call.store.reading() as tx:
        return Answer(dependencies.variants_of(tx, call.params["parent"]))


def have_dependencies(call: ApiCall) -> Answer:
    """Answer whether any dependency exists."""
    with call.store.reading() as tx:
        return Answer(dependencies.any_dependencies(tx))


FEATURES = f"{PROJECT}/features"
PERMISSION = "UPDATE_FEATURE_DEPENDENCY"
TAG = "Dependencies"

ROUTES = (
    Route(
        path=f"{FEATURES}/:child/dependencies",
        method="POST",
        handler=add,
        operation="addFeatureDependency",
        summary="Make a feature depend on a parent",
        tag=TAG,
        permission=PERMISSION,
        body=CREATE,
    ),
    Route(
        path=f"{FEATURES}/:child/dependencies/:parent",
        method="DELETE",
        handler=remove,
        operation="deleteFeatureDependency",
        summary="Remove a dependency of a feature",
        tag=TAG,
        permission=PERMISSION,
    ),
    Route(
        path=f"{FEATURES}/:child/dependencies",
        method="DELETE",
        handler=remove_all,
        operation="deleteFeatureDependencies",
        summary="Remove all dependencies of a feature",
        tag=TAG,
        permission=PERMISSION,
    ),
    Route(
        path=f"{FEATURES}/:child/parents",
        handler=list_parents,
        operation="listParentOptions",
        summary="List the features that could be the parent",
        tag=TAG,
        result=PARENTS,
    ),
    Route(
        path=f"{FEATURES}/:parent/parent-variants",
        handler=list_variants,
        operation="listParentVariantOptions",
        summary="List the variants of a parent",
        tag=TAG,
        result=VARIANTS,
    ),
    Route(
        path=f"{PROJECT}/dependencies",
        handler=have_dependencies,
        operation="checkDependenciesExist",
        summary="Tell whether any dependency exists",
        tag=TAG,
        result=Boolean(),
    ),
)
