"""flagsvc: a feature-flag evaluation proxy, as a command and as an ASGI application.

`create_app(ProxyOptions(...))` makes the application; `Strategy` and `enricher` are for custom code in it. What this package
exports is loaded when it is first asked for, so that the command line stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from flagsvc.core.version import VERSION

if TYPE_CHECKING:
    from flagsvc.core.errors import ConfigurationError, ExtensionError, FlagsvcError
    from flagsvc.engine.context import Context
    from flagsvc.proxy.application import ProxyApp, create_app
    from flagsvc.proxy.configuration.stores import StorageProvider
    from flagsvc.proxy.extensions import ContextEnricher, ContextView, CustomStrategy, Strategy, enricher
    from flagsvc.settings.options import ProxyOptions

__version__ = VERSION

__all__ = [
    "ConfigurationError",
    "Context",
    "ContextEnricher",
    "ContextView",
    "CustomStrategy",
    "ExtensionError",
    "FlagsvcError",
    "ProxyApp",
    "ProxyOptions",
    "StorageProvider",
    "Strategy",
    "__version__",
    "create_app",
    "enricher",
]

HOMES = {
    "flagsvc.proxy.application": ("ProxyApp", "create_app"),
    "flagsvc.engine.context": ("Context",),
    "flagsvc.core.errors": ("ConfigurationError", "ExtensionError", "FlagsvcError"),
    "flagsvc.proxy.extensions": ("ContextEnricher", "ContextView", "CustomStrategy", "Strategy", "enricher"),
    "flagsvc.proxy.configuration.stores": ("StorageProvider",),
    "flagsvc.settings.options": ("ProxyOptions",),
}
"""Module → the names this package exports from it."""


def __getattr__(name: str) -> object:
    """Return an export, importing the module it lives in."""
    for home, names in HOMES.items():
        if name in names:
            value: object = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module `flagsvc` has no attribute `{name}`")


def __dir__() -> list[str]:
    """Return what there is, also what is not loaded yet."""
    return sorted({*globals(), *__all__})
