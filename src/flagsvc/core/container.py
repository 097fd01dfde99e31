"""Whether this process runs in a container, and whether a folder there outlives the container."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

MARKS = (".dockerenv", "run/.containerenv")
"""Files that Docker and Podman put into every container, below the root."""
KUBERNETES = "KUBERNETES_SERVICE_HOST"
"""The variable that Kubernetes sets in every container."""


def in_container(environment: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Return whether this process runs in a container, as far as Docker, Podman and Kubernetes tell."""
    return bool(environment.get(KUBERNETES)) or any((root / mark).exists() for mark in MARKS)


def is_mounted(folder: str | Path, root: Path = Path("/")) -> bool:
    """Return whether a folder is on another file system than the root: on a volume or a folder of the host."""
    try:
        return os.stat(folder).st_dev != os.stat(root).st_dev
    except OSError:
        return False
