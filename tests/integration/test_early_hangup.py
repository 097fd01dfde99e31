"""A SIGHUP that comes before the program can read its files again does not disturb the start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import ROOT, answers, clean_environment, free_port, proxy_environment, running

HOOK = """
import os, signal, sys

class Hanging:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("flagsvc.") and name not in ("flagsvc.core", "flagsvc.core.version", "flagsvc.__main__"):
            with open(os.environ["HANGUPS"], "a") as notes:
                print(os.getpid(), name, file=notes)
            os.kill(os.getpid(), signal.SIGHUP)

sys.meta_path.insert(0, Hanging())
"""
"""Run by Python before the program: sends SIGHUP whenever the program is about to load another part of itself."""
DOCUMENT = {"version": 2, "features": [{"name": "on", "enabled": True, "strategies": [{"name": "default"}]}]}


def hooked(folder: Path) -> dict[str, str]:
    """Return the environment of a program that gets a SIGHUP at each of its first steps."""
    (folder / "sitecustomize.py").write_text(HOOK)
    return {"PYTHONPATH": f"{folder}:{ROOT / 'src'}", "HANGUPS": str(folder / "hangups")}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_proxy_that_is_just_starting(tmp_path: Path, workers: str) -> None:
    """The proxy starts, answers and ends as usual, and so do its workers."""
    (tmp_path / "document.json").write_text(json.dumps(DOCUMENT))
    port = free_port()
    env = proxy_environment((tmp_path / "document.json").as_uri(), port, {"FLAGSVC_WORKERS": workers}) | hooked(
        tmp_path
    )
    with running("proxy", [sys.executable, "-m", "flagsvc", "proxy"], env=env, folder=tmp_path) as program:
        program.wait(lambda: answers(f"http://127.0.0.1:{port}/proxy/health"), "ready")
        assert program.stop() == 0
    hangups = (tmp_path / "hangups").read_text().splitlines()
    assert len(hangups) > 50 and len({line.split()[0] for line in hangups}) == (1 if workers == "1" else 3)


def test_a_flag_server_that_is_just_starting(tmp_path: Path) -> None:
    """The flag server starts as usual."""
    command = [
        sys.executable,
        "-m",
        "flagsvc",
        "server",
        "--port",
        str(free_port()),
        "--database",
        str(tmp_path / "flags.db"),
    ]
    with running("server", command, env=hooked(tmp_path), folder=tmp_path) as program:
        program.wait(lambda: "flagsvc ready" in program.output(), "ready")
        assert program.stop() == 0


def test_other_commands_end(tmp_path: Path) -> None:
    """SIGHUP ends other commands: a user whose terminal is gone does not want an import to continue."""
    env = clean_environment(tmp_path) | hooked(tmp_path)
    done = subprocess.run([sys.executable, "-m", "flagsvc", "config"], env=env, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == -1
