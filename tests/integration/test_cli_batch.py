"""`flagsvc validate`, `import`, `export`, `flags` as processes, on the real flag server and on ours: same commands, same words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support import processes
from support.cli_peers import SERVERS, Called, Peer, typed

PLACE = ("--project", "default", "--environment", "development")
DATA: dict[str, Any] = {
    "features": [
        {"name": "dark-mode", "description": "night", "type": "experiment", "project": "default"},
        {"name": "parent", "project": "default"},
        {"name": "plain", "stale": True},
    ],
    "featureStrategies": [
        {
            "name": "flexibleRollout",
            "featureName": "dark-mode",
            "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "night"},
            "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu", "us"]}],
            "variants": [{"name": "v", "weight": 1000, "weightType": "variable", "stickiness": "default"}],
            "segments": [77],
            "title": "Half",
        },
        {"name": "default", "featureName": "parent"},
    ],
    "featureEnvironments": [
        {"name": "dark-mode", "featureName": "dark-mode", "environment": "development", "enabled": True},
        {"name": "parent", "featureName": "parent", "environment": "development", "enabled": True},
        {"name": "plain", "featureName": "plain", "environment": "development", "enabled": False},
    ],
    "contextFields": [{"name": "region", "legalValues": [{"value": "eu"}, {"value": "us"}]}],
    "segments": [{"id": 77, "name": "testers"}],
    "tagTypes": [{"name": "team", "description": "Who"}],
    "featureTags": [{"featureName": "dark-mode", "tagType": "team", "tagValue": "web"}],
    "dependencies": [{"feature": "dark-mode", "dependencies": [{"feature": "parent"}]}],
    "links": [{"feature": "dark-mode", "links": [{"url": "https://example.com/night", "title": "Plan"}]}],
}


@pytest.fixture(scope="module", params=SERVERS)
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    """Give each of the servers in turn, with a segment that the data set uses."""
    with SERVERS[request.param]() as server:
        server.admin("/segments", {"name": "testers", "constraints": []})
        yield server


def saved(folder: Path, data: object, name: str = "flags.json") -> str:
    """Write a data set and return the name of its file."""
    (folder / name).write_text(json.dumps(data))
    return name


def without_ids(data: dict[str, Any]) -> dict[str, Any]:
    """Return a data set without the ids of strategies and links, which every import creates."""
    for item in [*data["featureStrategies"], *(link for links in data["links"] for link in links["links"])]:
        item.pop("id", None)
    return data


def test_round_trip(peer: Peer, tmp_path: Path) -> None:
    """After export, change, validation and import, the change exists, equals the preview, and nothing else changed."""
    saved(tmp_path, DATA)
    assert peer.run(tmp_path, "validate", "flags.json", *PLACE).code == 0
    first = peer.run(tmp_path, "import", "flags.json", *PLACE, "--yes")
    assert (first.code, first.err) == (0, "") and first.out.endswith("imported: 3 new\n"), first
    assert "+ new: context field region\n+ new: tag type team\n" in first.out

    exported = peer.run(tmp_path, "export", "--project", "default", *PLACE[2:], "--output", "a.yaml")
    assert exported == Called(0, "", "flagsvc export: 3 flags written to `a.yaml`\n")
    data = yaml.safe_load((tmp_path / "a.yaml").read_text())
    same = peer.run(tmp_path, "import", "a.yaml", *PLACE, "--dry-run")
    assert same.code == 0 and f"of {peer.url}: 3 same\n" in same.out, same.out

    data["features"][0]["description"] = "day"
    data["features"].append({"name": "fresh"})
    data["featureStrategies"][0]["parameters"]["rollout"] = "60"
    data["featureEnvironments"].append({"name": "fresh", "featureName": "fresh", "enabled": True})
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(data))
    validated = peer.run(tmp_path, "validate", "b.yaml", *PLACE)
    assert validated.code == 0 and "will be overwritten\n" in validated.out and "0 errors, 1 warning" in validated.out
    changed = peer.run(tmp_path, "import", "b.yaml", *PLACE, "--yes")
    assert changed.code == 0 and changed.out.endswith("imported: 1 new, 1 changed, 2 same\n"), changed
    assert (
        "~ changed: dark-mode\n  description: `night` → `day`\n  strategies: - flexibleRollout, + flexibleRollout\n"
        "+ new: fresh\n  off → on\n  strategies: + flexibleRollout\n"
    ) in changed.out

    again = json.loads(peer.run(tmp_path, "export", "--project", "default", *PLACE[2:]).out)
    for key in ("contextFields", "featureTags", "segments", "tagTypes", "dependencies"):
        assert again[key] == data[key], key
    for name in ("dark-mode", "parent", "plain"):
        for key, label in (("features", "name"), ("featureStrategies", "featureName")):
            before, after = (without_ids(found)[key] for found in (data, again))
            assert [row for row in after if row[label] == name] == [row for row in before if row[label] == name]

    other = peer.run(tmp_path, "import", "b.yaml", "--project", "default", "--environment", "production", "--yes")
    assert other.code == 0 and "off → on" in other.out, "into another environment"
    named = peer.run(tmp_path, "export", "--features", "dark-mode", "--environment", "production")
    assert [item["name"] for item in json.loads(named.out)["featureStrategies"]] == ["flexibleRollout"]
    tagged = json.loads(peer.run(tmp_path, "export", "--tag", "web", "--environment", "development").out)
    assert [item["name"] for item in tagged["features"]] == ["dark-mode"]


def test_a_data_set_that_is_refused(peer: Peer, tmp_path: Path) -> None:
    """After errors, missing permissions or schema violations there is no import. Each message names its item."""
    wrong = DATA | {"segments": [{"id": 77, "name": "nobody"}], "featureStrategies": [{"name": "own", "featureName": "x"}]}
    saved(tmp_path, {"project": "default", "environment": "development", "data": wrong})
    called = peer.run(tmp_path, "import", "flags.json", "--yes")
    assert called.code == 1 and called.out.endswith("nothing was imported: the server would refuse it\n")
    assert "\n  nobody\n" in called.out and "  own (flag x)\n" in called.out
    told = json.loads(peer.run(tmp_path, "validate", "flags.json", "--json").out)
    assert [item["affectedItems"] for item in told["errors"]] == [["own"], ["nobody"]]

    saved(tmp_path, DATA | {"features": [{"name": "new-checkout", "typ": "release"}]})
    called = peer.run(tmp_path, "validate", "flags.json", *PLACE)
    assert called.code == 1 and "\n  features[0].typ (new-checkout)\n" in called.out
    constraint = {"contextName": "x", "operator": "LIKE"}
    strategy = {"name": "default", "featureName": "night", "constraints": [constraint]}
    saved(tmp_path, DATA | {"featureStrategies": [strategy]})
    called = peer.run(tmp_path, "validate", "flags.json", *PLACE)
    assert called.code == 1 and "\n  featureStrategies[0].constraints[0].operator (night)\n" in called.out


def test_who_asks(peer: Peer, tmp_path: Path) -> None:
    """A wrong token, one of the wrong type, and the admin token that may not import have different errors."""
    saved(tmp_path, DATA)
    for token, code, text in (
        ("", 2, "the server wants a token"),
        ("user:unknown", 2, "the server does not know the token"),
        (peer.backend, 2, "the token is one for SDKs and proxies"),
        (peer.admin_token, 1, "this is an admin token, which belongs to no user"),
    ):
        called = peer.run(tmp_path, "import", "flags.json", *PLACE, "--yes", token=token)
        assert (called.code, text in called.err) == (code, True), called
        assert "imported: " not in called.out.replace("nothing was imported: ", "") and (not token or token not in called.err)
    assert peer.run(tmp_path, "validate", "flags.json", *PLACE, token=peer.admin_token).code == 0


def test_what_is_not_there(peer: Peer, tmp_path: Path) -> None:
    """A missing project or environment, and an address that is no flag server's, are exit code 2."""
    saved(tmp_path, DATA)
    for arguments, text in (
        (("--project", "defalt"), "`defalt`; did you mean `default`?"),
        (("--environment", "developmnt"), "`developmnt`; did you mean `development`?"),
        (("--url", f"{peer.url}/nowhere"), "no flag server's admin API is at"),
    ):
        called = peer.run(tmp_path, "validate", "flags.json", *PLACE, *arguments)
        assert (called.code, text in called.err or called.err) == (2, True), called


def test_at_a_terminal(peer: Peer, tmp_path: Path) -> None:
    """A terminal shows a table, progress and a question; the import starts only after a yes."""
    saved(tmp_path, {"features": [{"name": "typed"}], "featureStrategies": [], "tagTypes": []})
    words = [str(word) for word in (*processes.flagsvc(), "import", "flags.json", *PLACE)]
    env = peer.environment(tmp_path) | {"TERM": "xterm", "COLUMNS": "100"}
    for answer, code, end in ((b"n\n", 1, "nothing was imported"), (b"y\n", 0, "imported: 1 new")):
        ended, text = typed(words, answer, env=env, cwd=tmp_path)
        assert (ended, text.rstrip().endswith(end)) == (code, True), text
        assert "╭" in text and "the server validates" in text and "+ new" in text
        found = peer.run(tmp_path, "export", "--features", "typed", "--environment", "development")
        assert found.code == code


FEATURES = "/projects/default/features"
STRATEGY: dict[str, Any] = {
    "name": "flexibleRollout",
    "title": "Half",
    "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "night"},
    "constraints": [{"contextName": "appName", "operator": "IN", "values": ["web", "app"]}],
}
WORDS = "Half: 50 % by userId, group night and appName is one of web, app and in segment night testers: userId is 7"


@pytest.fixture(scope="module")
def night(peer: Peer) -> Peer:
    """Give each of the servers with three more flags, one of them archived."""
    tested = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
    peer.admin("/segments", {"name": "night testers", "constraints": tested})
    for name, kind in (("night-mode", "experiment"), ("night", "release"), ("night-old", "release")):
        peer.admin(FEATURES, {"name": name, "type": kind, "description": f"{name} is here"})
    for environment in ("development", "production"):
        peer.admin(f"{FEATURES}/night-mode/environments/{environment}/strategies", STRATEGY | {"segments": [2]})
    peer.admin("/features/night-mode/tags", {"type": "simple", "value": "web"})
    peer.admin("/projects/default/stale", {"features": ["night"], "stale": True})
    peer.admin("/projects/default/archive", {"features": ["night-old"]})
    return peer


def cells(out: str) -> list[list[str]]:
    """Return the cells of a table."""
    return [[cell.strip() for cell in line.split("  ") if cell] for line in out.splitlines()]


def test_list_of_flags(night: Peer, tmp_path: Path) -> None:
    """The list has every flag with its environments. Each filter leaves the fitting flags."""
    called = night.run(tmp_path, "flags", "list", "--search", "night")
    assert (called.code, called.err) == (0, "")
    assert cells(called.out) == [
        ["NAME", "PROJECT", "TYPE", "development", "production"],
        ["night", "default", "release, stale", "off", "off"],
        ["night-mode", "default", "experiment", "off", "off"],
    ]
    for filters, names in (
        (("--tag", "web"), ["night-mode"]),
        (("--tag", "simple:web", "--project", "default"), ["night-mode"]),
        (("--state", "stale", "--search", "night"), ["night"]),
        (("--state", "active", "--search", "night"), ["night-mode"]),
        (("--state", "archived"), ["night-old"]),
    ):
        called = night.run(tmp_path, "flags", "list", *filters, "--json")
        assert [each["name"] for each in json.loads(called.out)] == names, filters


def test_a_flag(night: Peer, tmp_path: Path) -> None:
    """A flag has every environment, its strategies as sentences with the words of segments; as JSON, too."""
    called = night.run(tmp_path, "flags", "show", "night-mode")
    assert (called.code, called.err) == (0, "")
    lines = called.out.splitlines()
    assert lines[0] == "night-mode" and "  type         experiment" in lines and "  tags         simple:web" in lines
    assert lines[-5:] == ["development: off", f"  {WORDS}", "", "production: off", f"  {WORDS}"]
    flag = json.loads(night.run(tmp_path, "flags", "show", "night-mode", "--json").out)
    assert [each["strategies"][0]["words"] for each in flag["environments"]] == [WORDS, WORDS]
    assert [(each["type"], each["value"]) for each in flag["tags"]] == [("simple", "web")]


def test_switching_a_flag(night: Peer, tmp_path: Path) -> None:
    """In production a switch needs a yes; elsewhere it does not. What is on already stays."""
    where = ("--environment", "production")
    called = night.run(tmp_path, "flags", "on", "night", "--environment", "development")
    assert (called.code, called.out, called.err) == (0, "`night` is on in `development`\n", "")
    called = night.run(tmp_path, "flags", "on", "night", *where)
    assert (called.code, called.out) == (2, "") and called.err.count("\n") == 1
    assert called.err.startswith("flagsvc flags on: nothing was switched: there is no terminal to ask at: --yes")
    assert night.run(tmp_path, "flags", "on", "night", *where, "--yes").code == 0
    assert night.run(tmp_path, "flags", "on", "night", *where).out == "`night` is on in `production` already\n"
    listed = cells(night.run(tmp_path, "flags", "list", "--state", "stale").out)
    assert listed[1][3:] == ["on by strategies", "on by strategies"]
    assert night.run(tmp_path, "flags", "off", "night", *where, "--yes").code == 0
