"""The seed and the command of docs/how-to/run-the-flag-server.md: a new server takes both, and knows the tokens."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from support.flagservers import our_flag_server
from support.processes import ROOT, ask

PAGE = (ROOT / "docs" / "how-to" / "run-the-flag-server.md").read_text()
HERE = "http://127.0.0.1:4242"
ADMIN = "user:change-me"


def block(language: str, mark: str) -> str:
    """Return the one block of the page in this language that holds `mark`."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (text,) = [each for each in found if mark in each]
    return str(text)


def test_the_tokens_of_the_page(tmp_path: Path) -> None:
    """A proxy that looks them up is told what they open: those of the seed, and the one that the command creates."""
    seed = tmp_path / "flags.yaml"
    seed.write_text(block("yaml", "tokens:"))
    with our_flag_server("--seed", str(seed), seeded=False, folder=tmp_path) as server:
        command = block("sh", "api-tokens ").replace(HERE, server.root)
        variables = {"FLAGSVC_ADMIN_TOKEN": ADMIN, "PATH": os.environ["PATH"]}
        done = subprocess.run(
            ["sh", "-ec", command], env=variables, capture_output=True, text=True, check=True, timeout=30
        )
        secret = json.loads(done.stdout)["secret"]
        tokens = ["shop:production.change-me", "*:production.change-me", secret]
        answer = ask(f"{server.root}/edge/validate", method="POST", body={"tokens": tokens})
        assert [(each["type"], each["environment"], each["projects"]) for each in answer.json()["tokens"]] == [
            ("frontend", "production", ["shop"]),
            ("client", "production", ["*"]),
            ("frontend", "production", ["shop"]),
        ]
