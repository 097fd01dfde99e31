"""The code for SDKs on the page of a flag, run as it stands there, with real SDKs: it asks for the flag and gets the answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import peers
from support.flagservers import BACKEND_SECRET, FRONTEND_SECRET, USER_SECRET, our_flag_server
from support.processes import ask, clean_environment

pytestmark = pytest.mark.programs
BLUE = {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}
FLAG = "/projects/default/features/a"


def in_node(package: str) -> Callable[[Path, str], list[str]]:
    """Return what makes a program of code for node, and returns its command."""

    def write(folder: Path, code: str) -> list[str]:
        (folder / "node_modules").symlink_to(next(each for each in peers.package(package).parents if each.name == "node_modules"))
        (folder / "main.mjs").write_text(f"{code}\nconsole.log(isOn, variant);\nprocess.exit();\n")
        return [peers.node(), "main.mjs"]

    return write


def in_python(folder: Path, code: str) -> list[str]:
    pytest.importorskip("UnleashClient")
    (folder / "main.py").write_text(f"{code}\nprint(str(is_on).lower(), variant)\nunleash.destroy()\n")
    return [sys.executable, "main.py"]


SDKS = {"JavaScript in a browser": in_node("unleash-proxy-client"), "Node.js": in_node("unleash-client"), "Python": in_python}


def test_the_code_of_the_page_runs(tmp_path: Path) -> None:
    """With tokens in place of their names, each program gets the flag and its variant at the first question."""
    with our_flag_server(given={"features": [{"name": "a", "enabled": ["development"]}]}) as server:
        assert (
            server.ask("PUT", f"/admin{FLAG}/variants-batch", {"environments": ["development"], "variants": [BLUE]}).status == 200
        )
        found = ask(f"{server.root}/ui/flags/a.json", headers={"authorization": USER_SECRET}).json()["snippets"]
        codes = {each["title"]: each["code"] for each in found}
        for at, (title, write) in enumerate(SDKS.items()):
            folder = tmp_path / str(at)
            folder.mkdir()
            code = codes[title].replace("BACKEND-TOKEN", BACKEND_SECRET).replace("FRONTEND-TOKEN", FRONTEND_SECRET)
            command = write(folder, code)
            done = subprocess.run(command, cwd=folder, env=clean_environment(folder), capture_output=True, text=True, timeout=60)
            assert done.stdout == "true blue\n", (title, done.stderr)
