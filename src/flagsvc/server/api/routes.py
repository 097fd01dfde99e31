"""Every route of the flag server. Pipeline, OpenAPI document and tests read these rows."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from flagsvc.server.api import admin, client, operations
from flagsvc.server.api.docs import docs_routes
from flagsvc.server.api.route import Route


def _modules() -> tuple[Route, ...]:
    found: list[Route] = []
    for package in (client, admin):
        for module in sorted(each.name for each in iter_modules(package.__path__, f"{package.__name__}.")):
            found += getattr(import_module(module), "ROUTES", ())
    return tuple(found)


_ROWS = (*_modules(), *operations.ROUTES)
ROUTES: tuple[Route, ...] = (*_ROWS, *docs_routes(_ROWS))
