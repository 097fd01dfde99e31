"""Both programs as units of systemd: what they tell their service manager, and the units in deploy/systemd/."""

from __future__ import annotations

import contextlib
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from flagsvc.process.service_manager import LISTENING, SERVING, STOPPING
from flagsvc.process.shutdown import OPEN_REQUESTS_S
from flagsvc.settings.table import OPTIONS
from support import needs
from support.fake_upstream import FEATURES, FakeUpstream, Reply
from support.flagservers import our_flag_server
from support.notified import NotifySocket, notify_socket
from support.processes import KEY, ROOT, UPSTREAM_TOKEN, Program, Proxy, ask, flagsvc, our_proxy
from support.worker_pools import state, workers

UNITS = {each.stem.removeprefix("flagsvc-"): each for each in (ROOT / "deploy" / "systemd").iterdir()}
EXPOSURE = 1.1
"""The most exposure that `systemd-analyze security` may find, from 0 to 10: what remains is a network, and no list of addresses."""


class Setting(NamedTuple):
    """A line of a unit."""

    name: str
    value: str


def settings(program: str) -> list[Setting]:
    """Return the lines of the unit of a program."""
    return [Setting(*line.split("=", 1)) for line in UNITS[program].read_text().splitlines() if re.match(r"\w+=", line)]


def environment(program: str, folder: Path) -> dict[str, str]:
    """Return the variables of a unit, with its state, credentials and notify socket in `folder`."""
    words = [word for name, value in settings(program) if name == "Environment" for word in shlex.split(value)]
    given = dict(re.sub("%[Sd]", str(folder), word).split("=", 1) for word in words)
    return {**given, "NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "600000"}


@contextlib.contextmanager
def proxy_unit(upstream: FakeUpstream, folder: Path, number: int, **more: str) -> Iterator[Proxy]:
    """Run a proxy with what its unit gives. Its secrets are credentials."""
    (folder / "flagsvc.api-token").write_text(UPSTREAM_TOKEN)
    (folder / "flagsvc.client-keys").write_text(KEY)
    env = {**environment("proxy", folder), "UNLEASH_API_TOKEN": "", "UNLEASH_PROXY_CLIENT_KEYS": "", "FLAGSVC_WORKERS": str(number)}
    with our_proxy(upstream.url, wait_ready=False, **env, **more) as proxy:
        yield proxy


def assert_signs_of_life(told: NotifySocket, program: Program) -> None:
    """Fail unless signs of life go on."""
    before = told.messages().count({"WATCHDOG": "1"})
    program.wait(lambda: told.messages().count({"WATCHDOG": "1"}) > before + 2, "telling that it lives")


def assert_the_end(told: NotifySocket, program: Program) -> None:
    """Fail unless the end is told, in order, and nothing after it but signs of life."""
    assert program.stop() == 0
    assert told.said()[-1] == "STOPPING" and told.said().count("STOPPING") == 1 and told.status == STOPPING


@pytest.mark.parametrize("number", [1, 2])
def test_the_life_of_a_proxy(upstream: FakeUpstream, tmp_path: Path, number: int) -> None:
    """It is ready when it takes connections, also while the upstream is away.

    A reload has ended when all processes use the new keys. No message has a secret.
    """
    upstream.replies[FEATURES] = Reply(503)
    keys = tmp_path / "flagsvc.client-keys"
    more = {"FLAGSVC_WATCH_INTERVAL": "0", "FLAGSVC_KEY_OVERLAP": "0", "FLAGSVC_FETCH_INTERVAL": "100"}
    with notify_socket(tmp_path) as told, proxy_unit(upstream, tmp_path, number, **more) as proxy:
        proxy.program.wait(lambda: told.said(), "ready for its service manager")
        assert proxy.get().status == 503 and told.status == LISTENING
        del upstream.replies[FEATURES]
        proxy.program.wait(lambda: told.status == SERVING, "serving")
        assert proxy.get().status == 200 and told.said() == ["READY", "STATUS"]
        assert_signs_of_life(told, proxy.program)
        keys.write_text("another-client-key")
        proxy.program.process.send_signal(signal.SIGHUP)
        proxy.program.wait(lambda: told.said()[2:] == ["RELOADING", "READY"], "telling of its reload")
        assert {ask(proxy.url, headers={"Authorization": "another-client-key"}).status for _ in range(8)} == {200}
        assert told.status == SERVING
        assert_the_end(told, proxy.program)
        assert not re.search(f"{re.escape(UPSTREAM_TOKEN)}|client-key", str(told.messages()))


def test_workers_do_not_speak_to_the_service_manager(upstream: FakeUpstream, tmp_path: Path) -> None:
    """Workers do not have the variables, so that only the parent tells that it lives: none does while the parent is stopped."""
    with notify_socket(tmp_path) as told, proxy_unit(upstream, tmp_path, 2) as proxy:
        proxy.program.wait(lambda: told.status == SERVING, "serving")
        found = [Path(f"/proc/{pid}/environ").read_bytes() for pid in workers(proxy)]
        assert len(found) == 2 and not any(b"NOTIFY_SOCKET" in each or b"WATCHDOG" in each for each in found)
        proxy.program.process.send_signal(signal.SIGSTOP)
        try:
            proxy.program.wait(lambda: state(proxy.program.process.pid)[0] == "T", "stopped")
            told.messages()
            told.sock.settimeout(1)
            with pytest.raises(TimeoutError):
                told.sock.recv(100)
        finally:
            proxy.program.process.send_signal(signal.SIGCONT)
        assert_signs_of_life(told, proxy.program)


def test_the_life_of_a_flag_server(tmp_path: Path) -> None:
    """It is ready when it takes connections, and tells of a reload and of its end. The database is in its folder for state."""
    with notify_socket(tmp_path) as told:
        env: dict[str, Any] = {**environment("server", tmp_path), "FLAGSVC_DATABASE_URL": ""}
        with our_flag_server(folder=tmp_path, seeded=False, **env) as server:
            server.program.wait(lambda: told.status == SERVING, "serving")
            assert (tmp_path / "flagsvc-server" / "flagsvc" / "flags.db").exists()
            assert told.said() == ["READY", "STATUS"]
            assert_signs_of_life(told, server.program)
            server.program.process.send_signal(signal.SIGHUP)
            server.program.wait(lambda: told.said()[2:] == ["RELOADING", "READY"], "telling of its reload")
            assert_the_end(told, server.program)


@pytest.mark.parametrize("program", UNITS)
def test_a_unit(program: str, tmp_path: Path) -> None:
    """The unit is understood, runs our command, waits as long as the end may take, and is exposed little.

    The guide has its files.
    """
    [start] = [each.value.split() for each in settings(program) if each.name == "ExecStart"]
    assert start[1:] == [program]
    [grace] = [str(row.default) for row in OPTIONS if row.name == "shutdownGrace"]  # the flag server has the same row
    assert float(dict(settings(program))["TimeoutStopSec"]) >= float(grace) + OPEN_REQUESTS_S + 10
    guide = (ROOT / "docs" / "how-to" / "systemd.md").read_text()
    files = [each.value.lstrip("-") for each in settings(program) if each.name in ("EnvironmentFile", "LoadCredential")]
    assert files and all(each in guide for each in files)
    here = tmp_path / UNITS[program].name
    here.write_text(UNITS[program].read_text().replace(start[0], str(flagsvc()[0])))
    analyze = needs.program("systemd-analyze")
    done = subprocess.run([analyze, "verify", here], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    judged = subprocess.run(
        [analyze, "security", "--offline=yes", f"--threshold={EXPOSURE * 10:.0f}", here], capture_output=True, text=True, timeout=60
    )
    assert judged.returncode == 0, judged.stdout
