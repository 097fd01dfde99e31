"""`…/features/:child/dependencies`: dependencies of a feature on a parent feature."""

from __future__ import annotations

from functools import partial

from flagsvc.http.shapes import Array, Boolean, Named, Object, String
from flagsvc.server.api.admin.features import PROJECT
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route, by_path, reading, writing
from flagsvc.server.store.resources import dependencies
from flagsvc.server.store.store import Tx

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


def remove(tx: Tx, call: ApiCall) -> None:
    """Remove the dependency of a feature that the path names; all of them if it names none."""
    project, child = call.params["projectId"], call.params["child"]
    dependencies.check_owner(tx, project, child)
    if "parent" in call.params:
        dependencies.remove(tx, project, child, call.params["parent"])
    else:
        dependencies.remove_dependencies(tx, project, [child])


FEATURES = f"{PROJECT}/features"
PERMISSION = "UPDATE_FEATURE_DEPENDENCY"
route = partial(Route, tag="Dependencies")

ROUTES = (
    route(
        path=f"{FEATURES}/:child/dependencies",
        method="POST",
        handler=writing(by_path(dependencies.add)),
        operation="addFeatureDependency",
        summary="Make a feature depend on a parent",
        permission=PERMISSION,
        body=CREATE,
    ),
    route(
        path=f"{FEATURES}/:child/dependencies/:parent",
        method="DELETE",
        handler=writing(remove),
        operation="deleteFeatureDependency",
        summary="Remove a dependency of a feature",
        permission=PERMISSION,
    ),
    route(
        path=f"{FEATURES}/:child/dependencies",
        method="DELETE",
        handler=writing(remove),
        operation="deleteFeatureDependencies",
        summary="Remove all dependencies of a feature",
        permission=PERMISSION,
    ),
    route(
        path=f"{FEATURES}/:child/parents",
        handler=reading(by_path(dependencies.possible_parents, "child")),
        operation="listParentOptions",
        summary="List the features that could be the parent",
        result=PARENTS,
    ),
    route(
        path=f"{FEATURES}/:parent/parent-variants",
        handler=reading(by_path(dependencies.variants_of, "parent")),
        operation="listParentVariantOptions",
        summary="List the variants of a parent",
        result=VARIANTS,
    ),
    route(
        path=f"{PROJECT}/dependencies",
        handler=reading(lambda tx, call: dependencies.any_dependencies(tx)),
        operation="checkDependenciesExist",
        summary="Tell whether any dependency exists",
        result=Boolean(),
    ),
)
