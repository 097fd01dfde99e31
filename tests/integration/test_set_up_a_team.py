"""The commands of docs/how-to/set-up-a-team.md: on a new server, in their order, each succeeds, and what they create works."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from support.flagservers import our_flag_server
from support.processes import ROOT

PAGE = (ROOT / "docs" / "how-to" / "set-up-a-team.md").read_text()
HERE = "http://127.0.0.1:4242"
SECRET = re.compile(r'"secret":"([^"]+)"')


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    """The person of the page may read, and the token of the page reads the flags of its project."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    with our_flag_server(seeded=False, folder=tmp_path) as server:
        first = server.first_secrets(tmp_path / "flags.db").token
        variables = {"FLAGSVC_ADMIN_TOKEN": first, "PATH": os.environ["PATH"]}
        commands = "".join(blocks).replace(HERE, server.root)
        done = subprocess.run(
            ["sh", "-ec", commands], env=variables, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        person, token = SECRET.findall(done.stdout)
        assert server.ask("GET", "/admin/user", token=person).json()["user"]["username"] == "ben"
        feature = {"name": "shop-new-checkout"}
        made = server.ask("POST", "/admin/projects/shop/features", feature, token=first)
        assert made.status == 201, made.body
        features = json.loads(server.ask("GET", "/client/features", token=token).body)["features"]
        assert [each["name"] for each in features] == ["shop-new-checkout"]
