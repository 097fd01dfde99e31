"""Maintenance mode: read it and switch it (import validation 1, step 4)."""

from __future__ import annotations

from flagsvc.http.shapes import Boolean, Named, Object
from flagsvc.server.api.route import Route, reading, writing
from flagsvc.server.store.resources.maintenance import is_in_maintenance, set_maintenance

PATH = "/api/admin/maintenance"
MODE = Named("maintenanceSchema", Object({"enabled": Boolean()}, required=("enabled",)))
SWITCH = Named("toggleMaintenanceSchema", Object({"enabled": Boolean()}, required=("enabled",)))
PERMISSION = ("ADMIN", "UPDATE_MAINTENANCE_MODE")


ROUTES = (
    Route(
        path=PATH,
        method="POST",
        handler=writing(lambda tx, call: set_maintenance(tx, call.body["enabled"])),
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
        handler=reading(lambda tx, call: {"enabled": is_in_maintenance(tx)}),
        operation="getMaintenance",
        summary="Tell whether the server is in maintenance mode.",
        tag="Maintenance",
        permission=PERMISSION,
        result=MODE,
    ),
)
