"""The one place that knows the version, and in which form the program runs."""

from __future__ import annotations

from functools import cache

VERSION = "0.1.0"
"""The running version: `flagsvc --version`, OpenAPI `info.version`, a metric and the `unleash-sdk` header upstream."""

COMPILED, INTERPRETED = "compiled", "interpreted"
ENGINE = "flagsvc.engine.hashing"
"""A module that is compiled wherever anything is."""

SLOWER = (
    "the engine is interpreted, about ten times slower: install again on a machine with a C compiler and Python's headers, "
    "or install a wheel for this platform"
)
"""What a start says that runs interpreted."""


@cache
def form() -> str:
    """Return whether the engine that this process imports is native code: `compiled`, or `interpreted`."""
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import find_spec

    spec = find_spec(ENGINE)
    return COMPILED if spec is not None and isinstance(spec.loader, ExtensionFileLoader) else INTERPRETED


def build() -> str:
    """Return the version and the form in one line: `0.1.0 (compiled)`."""
    return f"{VERSION} ({form()})"
