"""The version of the package, and whether its engine is compiled or interpreted."""

from __future__ import annotations

from functools import cache

VERSION = "0.1.0"
"""The version: in `flagsvc --version`, OpenAPI `info.version`, a metric and the `unleash-sdk` header upstream."""

COMPILED, INTERPRETED = "compiled", "interpreted"
ENGINE = "flagsvc.engine.hashing"
"""A module that every compiled build compiles."""

INTERPRETED_WARNING = (
    "the engine is interpreted, about ten times slower: install again on a machine with a C compiler and Python's headers, "
    "or install a wheel for this platform"
)
"""The warning at the start of a program that runs interpreted."""


@cache
def engine_form() -> str:
    """Return `compiled` if the engine that this process imports is native code, else `interpreted`."""
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import find_spec

    spec = find_spec(ENGINE)
    return COMPILED if spec is not None and isinstance(spec.loader, ExtensionFileLoader) else INTERPRETED


def version_text() -> str:
    """Return the version and the form of the engine: `0.1.0 (compiled)`."""
    return f"{VERSION} ({engine_form()})"
