"""The extras of the package: what is installed only where a user asks for it, one row each.

`pip install flagsvc` brings what a proxy needs. pyproject.toml lists the packages of each extra; a test compares.
"""

from __future__ import annotations

from importlib.util import find_spec

from flagsvc.core.errors import MissingExtraError

EXTRAS = {
    "server": ("alembic", "can_ada", "psycopg", "sqlalchemy", "yaml"),
    "oidc": ("joserfc",),
    "redis": ("redis",),
    "cli": ("can_ada", "rich", "yaml"),
}
"""Extra → the modules that its packages bring."""


def missing_extra(extra: str) -> str:
    """Return a sentence that names the command that installs an extra, or the empty text where it is installed."""
    if all(find_spec(module) is not None for module in EXTRAS[extra]):
        return ""
    return f"the extra `{extra}` is not installed; type: pip install 'flagsvc[{extra}]'"


def require(extra: str) -> None:
    """Raise MissingExtraError if an extra is not installed. Nothing is imported."""
    if problem := missing_extra(extra):
        raise MissingExtraError(problem)
