"""The law of `flagsvc validate` and `import --dry-run`: what they find nothing wrong with is imported, and nothing else."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from flagsvc.cli.batch import session
from flagsvc.cli.batch.checking import Findings, check_import
from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.files import FlagFile
from flagsvc.cli.batch.session import SchemaError
from flagsvc.cli.batch.target import Target

AGREED = ("both take it", "both refuse it")
STRICTER = "only the server's own validation is against it"
"""What the real server's validation reports and its import does not look at; the commands go by both."""
BROKEN = ("found nothing, yet the import failed", "found problems, yet the import succeeded")


def looked_at(url: str, token: str, body: Any) -> Findings | None:
    """Return what the commands find in a request; None where the server refuses its form.

    The real server remembers its list of projects for a while, so that it is not asked for those that a test just made.
    """
    with AdminClient(Target(url.removesuffix("/api"), token)) as client, patch.object(session, "check_target_exists"):
        try:
            return check_import(client, FlagFile(body, bare=False), body)
        except SchemaError:
            return None


def has_target(body: Any, given: Any) -> bool:
    """Return whether a state has the project and the environment of a request: the commands end early where it has not."""
    projects = [each["id"] for each in given["projects"] if not each.get("archived")]
    known = isinstance(body, dict) and body.get("project") in projects
    return known and body.get("environment") in ("development", "production")


def verdict(found: Findings | None, imported: int) -> str:
    """Return how what was found and an import's status go together."""
    if found is not None and not found.refused:
        return AGREED[0] if imported == 200 else BROKEN[0]
    if imported != 200:
        return AGREED[1]
    return BROKEN[1] if found is None or found.problems else STRICTER
