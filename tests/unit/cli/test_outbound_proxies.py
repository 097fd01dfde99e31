"""Outbound proxies of the commands: NO_PROXY is read the same way by each, so that no outbound proxy gets a token by mistake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli_helpers import Flagsvc
from support.fake_admin import EMPTY, TOKEN, Answer, FakeAdmin, fake_admin

DOCUMENT = {"version": 2, "features": [{"name": "first", "enabled": True, "strategies": []}]}
PLACE = ("--project", "shop", "--environment", "production")
COMMANDS = {
    "evaluate": ("evaluate", "{url}/api/client/features", "--token", TOKEN),
    "validate": ("validate", "{folder}/flags.json", *PLACE, "--url", "{url}", "--token", TOKEN),
    "import": ("import", "{folder}/flags.json", *PLACE, "--url", "{url}", "--token", TOKEN, "--yes"),
    "export": ("export", *PLACE, "--url", "{url}", "--token", TOKEN),
    "move": ("move", "{url}", "{url}/other", "--from-token", TOKEN, "--to-token", TOKEN, "--dry-run"),
}
"""Command → its arguments; each sends a token to a server."""


@pytest.fixture
def outside() -> Iterator[FakeAdmin]:
    """Give an outbound proxy that records every request."""
    with fake_admin() as fake:
        yield fake


@pytest.mark.parametrize("exempt", ["127.0.0.0/8", "10.0.0.0/8,127.0.0.0/8", "::1 127.0.0.1", "127.0.0.1:{port}", "*"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_outbound_proxy_gets_a_token_that_is_not_for_it(
    flagsvc: Flagsvc, admin: FakeAdmin, outside: FakeAdmin, tmp_path: Path, command: str, exempt: str
) -> None:
    """A server within a range of NO_PROXY is asked directly: the outbound proxy gets no request at all."""
    (tmp_path / "flags.json").write_text(json.dumps(EMPTY))
    admin.answers["/api/client/features"] = Answer(200, DOCUMENT)
    words = {"url": admin.url, "folder": tmp_path}
    names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
    env = dict.fromkeys(names, outside.url)
    env |= dict.fromkeys(("NO_PROXY", "no_proxy"), exempt.format(port=admin.url.rpartition(":")[2]))
    flagsvc(*(word.format(**words) for word in COMMANDS[command]), env=env)
    assert [asked.headers.get("authorization") for asked in admin.asked[:1]] == [TOKEN]
    assert outside.asked == []


@pytest.mark.parametrize("command", COMMANDS)
def test_others_go_through_it(flagsvc: Flagsvc, outside: FakeAdmin, tmp_path: Path, command: str) -> None:
    """A server that NO_PROXY does not name is asked through the outbound proxy, with the whole address."""
    (tmp_path / "flags.json").write_text(json.dumps(EMPTY))
    words = {"url": "http://10.11.12.13", "folder": tmp_path}
    env = {"HTTP_PROXY": outside.url, "NO_PROXY": "127.0.0.0/8,10.0.0.0/16"}
    flagsvc(*(word.format(**words) for word in COMMANDS[command]), env=env)
    assert outside.asked and all(asked.path.startswith("http://10.11.12.13/") for asked in outside.asked)
