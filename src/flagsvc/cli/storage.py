"""Checks the storage option: a Redis or Valkey server needs the extra `redis`. The problem is listed with all others."""

from __future__ import annotations

from flagsvc.core.extras import missing_extra
from flagsvc.settings.places import Resolved
from flagsvc.settings.storage import server_at


def check_storage(resolved: Resolved) -> None:
    """Add a problem if the storage is a server and its client package is not installed."""
    if server_at(resolved.values["storage"]) is not None and (problem := missing_extra("redis")):
        resolved.problems["storage"] = f"storage ({resolved.sources['storage']}): {problem}"
