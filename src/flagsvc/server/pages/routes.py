"""Every route of the pages. `server/api/routes.py` has all others."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from flagsvc.server import pages
from flagsvc.server.api.route import Route


def _module_routes() -> tuple[Route, ...]:
    """Return the routes of every module of the package that has some."""
    found: list[Route] = []
    for module in sorted(each.name for each in iter_modules(pages.__path__, f"{pages.__name__}.")):
        if module != __name__:
            found += getattr(import_module(module), "ROUTES", ())
    return tuple(found)


PAGE_ROUTES: tuple[Route, ...] = _module_routes()
