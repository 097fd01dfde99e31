"""The extras of the package: what is installed only where a user asks for it, one row each.

The plain package brings what a proxy needs. pyproject.toml lists the packages of each extra; a test compares.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec

from flagsvc.core.errors import MissingExtraError

EXTRAS = {
    "server": ("alembic", "can_ada", "psycopg", "regex", "sqlalchemy", "yaml"),
    "oidc": ("joserfc",),
    "redis": ("redis",),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "cli": ("can_ada", "rich", "yaml"),
}
"""Extra → the modules that its packages bring."""
PACKAGE, WHERE = ".", " in the folder of the source"
"""What pip installs, and where: no index has a release. With the first one this is `flagsvc` and the empty text, and `make docs`
writes the commands of the pages."""


def missing_extra(extra: str) -> str:
    """Return a sentence that names the command that installs an extra, or the empty text where it is installed."""
    if all(map(is_installed, EXTRAS[extra])):
        return ""
    return f"the extra `{extra}` is not installed; type{WHERE}: {install_command(extra)}"


def is_installed(module: str) -> bool:
    """Return whether a module can be imported. Only the packages around it are imported."""
    with suppress(ModuleNotFoundError):
        return find_spec(module) is not None
    return False


def install_command(extras: str) -> str:
    """Return the command that installs extras, with commas between them."""
    return f"pip install '{PACKAGE}[{extras}]'"


def require(extra: str) -> None:
    """Raise MissingExtraError if an extra is not installed. Nothing is imported."""
    if problem := missing_extra(extra):
        raise MissingExtraError(problem)
