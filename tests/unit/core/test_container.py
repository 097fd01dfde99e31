"""Whether the process runs in a container, and whether a folder outlives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagsvc.core.container import in_container, is_mounted


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv"])
def test_a_container_has_a_mark(mark: str, tmp_path: Path) -> None:
    """Docker and Podman leave a file, Kubernetes sets a variable. Without either there is no container."""
    assert not in_container({}, tmp_path)
    assert in_container({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)
    (tmp_path / mark).parent.mkdir(exist_ok=True)
    (tmp_path / mark).touch()
    assert in_container({}, tmp_path)


def test_a_mount_is_another_file_system(tmp_path: Path) -> None:
    """A folder on the file system of the root is no mount; /proc is one. A folder that is not there is none."""
    assert not is_mounted(tmp_path, tmp_path)
    assert is_mounted("/proc", tmp_path)
    assert not is_mounted(tmp_path / "none", tmp_path)
