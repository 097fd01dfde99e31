"""Fetching npm packages: once, and where it fails once in a run, with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import peers

NODE = "#!/bin/sh\necho v{version}\n"
NPM = "#!/bin/sh\necho called >> {folder}/calls\n{then}\n"


class Machine:
    """A machine with a node and an npm of our own making."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"

    def install(self, node: str = "20.0.0", npm: str = "mkdir -p node_modules") -> None:
        """Put a node that says this version, and an npm that does this, on the search path."""
        for name, text in (("node", NODE.format(version=node)), ("npm", NPM.format(folder=self.folder, then=npm))):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def find(self) -> Path | str:
        """Ask for a package as another process of the same run would."""
        forget()
        return peers.find("unleash-client")


def forget() -> None:
    """Forget what this process remembers."""
    peers._node.cache_clear()
    peers._obtain.cache_clear()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Give a machine that has nothing yet."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setattr(peers, "FOLDER", tmp_path / "peers")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    yield Machine(programs)
    forget()


def test_packages_are_fetched_once(machine: Machine) -> None:
    """The second process finds what the first one fetched, by the names and versions of the table."""
    machine.install()
    assert machine.find() == machine.find() == peers.FOLDER / "clients" / "node_modules" / "unleash-client"
    assert machine.calls.read_text() == "called\n"
    asked = json.loads((peers.FOLDER / "clients" / "package.json").read_text())
    assert asked["dependencies"] == peers.PACKAGES["clients"]


def test_another_version_is_fetched_anew(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version changed in the table takes the place of the one that is there."""
    machine.install()
    machine.find()
    monkeypatch.setitem(peers.PACKAGES, "clients", {"unleash-client": "7.0.0"})
    machine.find()
    assert machine.calls.read_text() == "called\n" * 2


def test_a_failure_is_a_reason_and_is_not_tried_again(machine: Machine) -> None:
    """Without the registry each test gives the reason, and only the first one waits for it."""
    machine.install(npm="echo 'npm error code ENOTFOUND' >&2; exit 1")
    reasons = [machine.find(), machine.find()]
    assert "ENOTFOUND" in str(reasons[0])
    assert reasons[0] == reasons[1]
    assert machine.calls.read_text() == "called\n"


def test_an_old_node_is_a_reason(machine: Machine) -> None:
    """The packages do not run on it, so nothing is fetched."""
    machine.install(node="18.19.0")
    assert machine.find() == "node is v18.19.0, the npm peers need 20 or newer"
    assert not machine.calls.exists()


def test_every_version_is_pinned() -> None:
    """Each package has a fixed version."""
    versions = [version for packages in peers.PACKAGES.values() for version in packages.values()]
    assert versions
    assert all(version.replace(".", "").isdigit() and version.count(".") == 2 for version in versions)
