"""Every route of the flag server. Pipeline, OpenAPI document and tests read these rows."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from flagsvc.server.api import admin, client, operations
from flagsvc.server.api.docs import docs_routes
from flagsvc.server.api.route import Route


def _module_routes() -> tuple[Route, ...]:
    """Return the routes of every module of the two packages. A module without `ROUTES` is an error (AttributeError)."""
    found: list[Route] = []
    for package in (client, admin):
        for module in sorted(each.name for each in iter_modules(package.__path__, f"{package.__name__}.")):
            found += import_module(module).ROUTES
    return tuple(found)


_ROWS = (*_module_routes(), *operations.ROUTES)
ROUTES: tuple[Route, ...] = (*_ROWS, *docs_routes(_ROWS))
