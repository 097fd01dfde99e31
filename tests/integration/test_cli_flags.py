"""`flagsvc flags` as processes, on the real flag server and on ours: same commands, same words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli_peers import SERVERS, Peer

FEATURES = "/api/admin/projects/default/features"
STRATEGY: dict[str, Any] = {
    "name": "flexibleRollout",
    "title": "Half",
    "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "night"},
    "constraints": [{"contextName": "appName", "operator": "IN", "values": ["web", "app"]}],
}
WORDS = "Half: 50 % by userId, group night and appName is one of web, app and in segment testers: userId is 7"


@pytest.fixture(scope="module", params=SERVERS)
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    """Give each of the servers in turn, with three flags, one of them archived."""
    with SERVERS[request.param]() as server:
        tested = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
        server.post("/api/admin/segments", {"name": "testers", "constraints": tested})
        for name, kind in (("night-mode", "experiment"), ("night", "release"), ("night-old", "release")):
            server.post(FEATURES, {"name": name, "type": kind, "description": f"{name} is here"})
        for environment in ("development", "production"):
            server.post(f"{FEATURES}/night-mode/environments/{environment}/strategies", STRATEGY | {"segments": [1]})
        server.post("/api/admin/features/night-mode/tags", {"type": "simple", "value": "web"})
        server.post("/api/admin/projects/default/stale", {"features": ["night"], "stale": True})
        server.post("/api/admin/projects/default/archive", {"features": ["night-old"]})
        yield server


def cells(out: str) -> list[list[str]]:
    """Return the cells of a table."""
    return [[cell.strip() for cell in line.split("  ") if cell] for line in out.splitlines()]


def test_list(peer: Peer, tmp_path: Path) -> None:
    """The list has every flag with its environments. Each filter leaves the fitting flags."""
    called = peer.run(tmp_path, "flags", "list", "--search", "night")
    assert (called.code, called.err) == (0, "")
    assert cells(called.out) == [
        ["NAME", "PROJECT", "TYPE", "development", "production"],
        ["night", "default", "release, stale", "off", "off"],
        ["night-mode", "default", "experiment", "off", "off"],
    ]
    for filters, names in (
        (("--tag", "web"), ["night-mode"]),
        (("--tag", "simple:web", "--project", "default"), ["night-mode"]),
        (("--state", "stale"), ["night"]),
        (("--state", "active", "--search", "night"), ["night-mode"]),
        (("--state", "archived"), ["night-old"]),
    ):
        called = peer.run(tmp_path, "flags", "list", *filters, "--json")
        assert [each["name"] for each in json.loads(called.out)] == names, filters


def test_show(peer: Peer, tmp_path: Path) -> None:
    """A flag has every environment, its strategies as sentences with the words of segments; as JSON, too."""
    called = peer.run(tmp_path, "flags", "show", "night-mode")
    assert (called.code, called.err) == (0, "")
    lines = called.out.splitlines()
    assert lines[0] == "night-mode" and "  type         experiment" in lines and "  tags         simple:web" in lines
    assert lines[-5:] == ["development: off", f"  {WORDS}", "", "production: off", f"  {WORDS}"]
    flag = json.loads(peer.run(tmp_path, "flags", "show", "night-mode", "--json").out)
    assert [each["strategies"][0]["words"] for each in flag["environments"]] == [WORDS, WORDS]
    assert [(each["type"], each["value"]) for each in flag["tags"]] == [("simple", "web")]


def test_switch(peer: Peer, tmp_path: Path) -> None:
    """In production a switch needs a yes; elsewhere it does not. What is on already stays."""
    where = ("--environment", "production")
    called = peer.run(tmp_path, "flags", "on", "night", "--environment", "development")
    assert (called.code, called.out, called.err) == (0, "`night` is on in `development`\n", "")
    called = peer.run(tmp_path, "flags", "on", "night", *where)
    assert (called.code, called.out) == (2, "") and called.err.count("\n") == 1
    assert called.err.startswith("flagsvc flags on: nothing was switched: there is no terminal to ask at: --yes")
    assert peer.run(tmp_path, "flags", "on", "night", *where, "--yes").code == 0
    assert peer.run(tmp_path, "flags", "on", "night", *where).out == "`night` is on in `production` already\n"
    listed = cells(peer.run(tmp_path, "flags", "list", "--state", "stale").out)
    assert listed[1][3:] == ["on by strategies", "on by strategies"]
    assert peer.run(tmp_path, "flags", "off", "night", *where, "--yes").code == 0


def test_errors(peer: Peer, tmp_path: Path) -> None:
    """Each error is one clear line: an unknown token, flag, environment and project, and an archived flag."""
    on = ("flags", "on", "night", "--environment")
    for words, token, code, message in (
        (("flags", "list"), "user:unknown", 2, "the server does not know the token"),
        (("flags", "list"), "", 2, "the server wants a token: give one with --token-file, FLAGSVC_ADMIN_TOKEN"),
        (("flags", "list", "--project", "defualt"), None, 2, "did you mean `default`?"),
        (("flags", "show", "nigh"), None, 1, "the server has no flag `nigh`"),
        (("flags", "show", "night-old"), None, 1, "the flag `night-old` is archived"),
        ((*on, "prodction"), None, 2, "`night` is in no environment `prodction`; did you mean `production`?"),
    ):
        called = peer.run(tmp_path, *words, token=token)
        assert (called.code, called.out, called.err.count("\n")) == (code, "", 1), called
        assert message in called.err, called
