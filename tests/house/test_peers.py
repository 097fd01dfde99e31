"""Fetching npm packages: once, and where it fails once in a run, with a reason.

Programs that tests start: waited for by a condition, shown when they fail, and gone afterwards.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import peers, processes
from support.waiting import wait_until
from support.worker_pools import alive

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
    """When the table names another version, it replaces the installed version."""
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


SLEEPER = "print('begun', flush=True); import sys; sys.stdin.read()"
# The child does not read standard input: only a signal ends it in time.
PARENT = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid);" + SLEEPER
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEPER


def python(text: str) -> list[object]:
    """Return a command that runs a line of Python."""
    return [sys.executable, "-c", text]


def gone(number: int) -> bool:
    """Return whether no process of this id is left."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_program_is_waited_for_and_stopped(tmp_path: Path) -> None:
    """The block continues when the condition holds, and leaves no process."""
    with processes.running("sleeper", python(SLEEPER), env={}, folder=tmp_path) as program:
        program.wait(lambda: "begun" in program.output(), "begun")
    assert gone(program.process.pid)


def test_a_program_that_will_not_end_is_killed(tmp_path: Path) -> None:
    """After its time a program is killed with its children."""
    with processes.running("stubborn", python(STUBBORN), env={}, folder=tmp_path) as program:
        program.wait(lambda: "begun" in program.output(), "begun")
        assert program.stop(seconds=0.2) == -9
    assert gone(program.process.pid)


def test_children_of_a_program_that_was_killed_are_killed(tmp_path: Path) -> None:
    """A program that ended without ending its children leaves none of them behind either."""
    with processes.running("parent", python(PARENT), env={}, folder=tmp_path) as program:
        program.wait(lambda: "begun" in program.output(), "begun")
        child = int(program.output().split()[0])
        program.process.kill()
        assert program.process.wait(20) == -9
        assert alive(child)
    wait_until(lambda: not alive(child))


def test_a_program_that_fails_shows_what_it_wrote(tmp_path: Path) -> None:
    """The failure of a test says what the program said, and how it ended."""
    failing = python("import sys; print('some complaint'); sys.exit(3)")
    with (
        pytest.raises(AssertionError, match="ended with 3 before it was ready:\nsome complaint"),
        processes.running("failing", failing, env={}, folder=tmp_path) as program,
    ):
        program.wait(lambda: False, "ready")


def test_waiting_ends(tmp_path: Path) -> None:
    """A condition that never holds fails within its time."""
    with (
        pytest.raises(AssertionError, match=r"was not ready within 0\.1 s"),
        processes.running("sleeper", python(SLEEPER), env={}, folder=tmp_path) as program,
    ):
        program.wait(lambda: False, "ready", 0.1)


def test_a_program_inherits_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the test run do not reach the programs."""
    for name in ("FLAGSVC_URL", "UNLEASH_API_TOKEN", "HTTP_PROXY", "LOG_LEVEL"):
        monkeypatch.setenv(name, "something")
    telling = python("import os; print(sorted(os.environ))")
    with processes.running("telling", telling, env={"GIVEN": "1"}, folder=tmp_path) as program:
        assert program.process.wait(20) == 0
    assert "GIVEN" in program.output()
    assert "something" not in program.output()
    assert not {"FLAGSVC_URL", "UNLEASH_API_TOKEN", "HTTP_PROXY", "LOG_LEVEL"} & set(program.output().split("'"))
