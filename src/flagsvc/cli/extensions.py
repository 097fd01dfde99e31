"""Checks the files of custom strategies and enrichers, so that their problems are listed with all others."""

from __future__ import annotations

from flagsvc.core.errors import ExtensionError
from flagsvc.settings.places import Resolved

EXTENSIONS = {"customStrategies": "load_strategies", "expCustomEnrichers": "load_enrichers"}
"""The options that name files of code, and the functions that load them; imported only if such a file is given."""


def check_extensions(resolved: Resolved) -> None:
    """Load the files of custom strategies and enrichers as the proxy would, and add their problems."""
    for name, function in EXTENSIONS.items():
        if not resolved.values[name]:
            continue
        from flagsvc.proxy import extensions

        try:
            getattr(extensions, function)(resolved.values[name])
        except ExtensionError as error:
            resolved.problems[name] = f"{name} ({resolved.sources[name]}): {error}"
