"""docs/how-to/move-flags-between-servers.md: each command of the page, run in a shell in order, does what the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from support import flagservers, processes

PAGE = processes.ROOT / "docs" / "how-to" / "move-flags-between-servers.md"
OLD, NEW = "https://old.example.com", "https://new.example.com"
FENCE = re.compile(r"^```(sh|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DATA: dict[str, Any] = {
    "features": [{"name": "dark-mode", "description": "night"}, {"name": "new-checkout"}],
    "featureStrategies": [{"name": "default", "featureName": "new-checkout"}],
    "featureEnvironments": [{"name": "new-checkout", "featureName": "new-checkout", "enabled": True}],
    "tagTypes": [],
}


def script(old: str, new: str) -> str:
    """Return the blocks of the page as one shell script, with the addresses of running servers."""
    parts = []
    for language, text in FENCE.findall(PAGE.read_text()):
        named = re.match(r"# (\S+)\n", text)
        if language == "sh":
            parts.append(text)
        elif named is not None:
            parts.append(f"cat > {named[1]} <<'END'\n{text}END\n")
    return "".join(parts).replace(OLD, old).replace(NEW, new)


def test_the_page(tmp_path: Path) -> None:
    """A whole server goes from the real one to ours, then a project, then flags to the next environment, then from a file."""
    with processes.postgresql() as database, processes.unleash_server(database) as real, flagservers.our_flag_server() as ours:
        root = real.url.removesuffix("/api")
        token = processes.personal_token(real)
        body = {"project": "default", "environment": "development", "data": DATA}
        url = f"{real.url}/admin/features-batch/import"
        assert processes.ask(url, method="POST", headers={"Authorization": token}, body=body).status == 200

        env = processes.clean_environment(tmp_path)
        env |= {"OLD_TOKEN": token, "NEW_TOKEN": flagservers.USER_SECRET}
        env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
        done = subprocess.run(
            ["sh", "-ec", script(root, ours.root)],
            cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout, done.stderr)
        query = {"project": "default", "environment": "production"}
        found = ours.admin("/features-batch/export", query)

    assert "moved: 2 flags into project `default`, environment `production`\n" in done.stdout
    assert "imported: 2 same\n" in done.stdout and done.stdout.endswith("imported: 1 changed\n")
    assert [(item["name"], item["description"]) for item in found["features"]] == [
        ("dark-mode", "On for everybody"),
        ("new-checkout", None),
    ]
    assert {item["name"]: item["enabled"] for item in found["featureEnvironments"]} == {"dark-mode": True, "new-checkout": True}
    assert [item["name"] for item in found["featureStrategies"]] == ["default", "default"]
    moved = json.loads((tmp_path / "flags.json").read_text())
    assert [item["name"] for item in moved["features"]] == ["dark-mode", "new-checkout"]
    assert (tmp_path / "new.token").stat().st_mode & 0o077 == 0
