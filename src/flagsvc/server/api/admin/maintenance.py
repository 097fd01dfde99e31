"""Maintenance mode: read it and switch it (import validation 1, step 4)."""

from __future__ import annotations

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Boolean, Named, Object
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.store.resources.maintenance import is_in_maintenance, set_maintenance

PATH = "/api/admin/maintenance"
MODE = Named("maintenanceSchema", Object({"enabled": Boolean()}, required=("enabled",)))
SWITCH = Named("toggleMaintenanceSchema", Object({"enabled": Boolean()}, required=("enabled",)))
PERMISSION = ("ADMIN", "UPDATE_MAINTENANCE_MODE")


def show(call: ApiCall) -> Answer:
    """Return whether maintenance mode is on."""
    with call.store.reading() as tx:
        return Answer({"enabled": is_in_maintenance(tx)})


def switch(call: ApiCall) -> Answer:
    """Switch maintenance mode on or off."""
    with call.store.writing(call.actor) as tx:
        set_maintenance(tx, call.body["enabled"])
    return Answer()


ROUTES = (
    Route(
        path=PATH,
        method="POST",
        handler=switch,
        operation="toggleMaintenance",
        summary="Switch maintenance mode; while it is on, the admin API accepts no changes.",
        tag="Maintenance",
        permission=PERMISSION,
        body=SWITCH,
        status=204,
        in_maintenance=True,
    ),
    Route(
        path=PATH,
        handler=show,
        operation="getMaintenance",
        summary="Tell whether the server is in maintenance mode.",
        tag="Maintenance",
        permission=PERMISSION,
        result=MODE,
    ),
)
