"""The storage among the options: a Redis or Valkey server needs the extra `redis`, which is told with everything else."""

from __future__ import annotations

from flagsvc.core.extras import missing_extra
from flagsvc.settings.load import Resolved
from flagsvc.settings.storage import server_at


def check_storage(resolved: Resolved) -> None:
    """Note a problem where the storage is a server, and the package that speaks to it is not installed."""
    if server_at(resolved.values["storage"]) is not None and (problem := missing_extra("redis")):
        resolved.problems["storage"] = f"storage ({resolved.sources['storage']}): {problem}"
