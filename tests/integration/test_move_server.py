"""`flagsvc move`: a whole server is moved to another, and every SDK gets the same answers there.

Versions with build metadata: ours and 8.2.0 take them, 7.5.1 refuses them, and a move names the flag whose rule fails.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from flagsvc.cli.moving.resources import user_step
from support import cli_peers, processes
from support.cli_peers import Called, Peer
from support.waiting import wait_until

ALL_THERE = "0 changes: "
ENVIRONMENTS = ("development", "production")
BETA = {
    "name": "beta testers",
    "description": "who sees it first",
    "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}],
}
REGIONS = ("eu", "us", "au")
NODE = """
const { Unleash } = require(process.argv[2]);
const [url, tokens, names, contexts] = JSON.parse(require("fs").readFileSync(process.argv[3]));
const answers = (client) => contexts.map((context) => names.map((name) => {
  const { name: variant, enabled, payload } = client.getVariant(name, context);
  return [client.isEnabled(name, context), variant, enabled, payload ? payload.value : null];
}));
const one = (token) => new Promise((resolve, reject) => {
  const client = new Unleash({
    url, appName: "test", disableMetrics: true, refreshInterval: 15000, customHeaders: { Authorization: token },
    storageProvider: { get: async () => undefined, set: async () => {} },
  });
  client.on("error", reject);
  client.on("synchronized", () => { resolve(answers(client)); client.destroy(); });
});
const awake = setInterval(() => {}, 1000);  // the client's own timers do not keep node alive
Promise.all(tokens.map(one)).then((told) => { console.log(JSON.stringify(told)); clearInterval(awake); });
"""


def backend_token(server: Peer, environment: str) -> str:
    """Return the secret of a new token for SDKs."""
    body = {"tokenName": f"sdk-{environment}", "type": "client", "environment": environment, "projects": ["*"]}
    return str(server.admin("/api-tokens", body)["secret"])


def document(server: Peer, environment: str) -> dict[str, Any]:
    """Return what SDKs read."""
    headers = {"Authorization": backend_token(server, environment)}
    return dict(processes.ask(f"{server.url}/api/client/features", headers=headers).json())


def move(source: Peer, target: Peer, *arguments: str, folder: Path) -> Called:
    """Run `flagsvc move --yes`."""
    tokens = {"FLAGSVC_FROM_TOKEN": source.user, "FLAGSVC_TO_TOKEN": target.user}
    return processes.call("move", source.url, target.url, "--yes", *arguments, folder=folder, env=tokens, seconds=600)


def overlapping(server: Peer, count: int) -> list[str]:
    """Give a server flags whose strategies overlap, in both environments and in no order of their making; return the names."""
    server.admin("/context", {"name": "region", "stickiness": True, "legalValues": [{"value": each} for each in REGIONS]})
    server.admin("/strategies", {"name": "opening", "description": "hours", "parameters": []})
    server.admin("/tag-types", {"name": "team", "description": "teams", "icon": "T"})
    number = server.admin("/segments", BETA)["id"]
    chance = random.Random(1)
    names = [f"flag-{each}" for each in range(count)]
    for environment in ENVIRONMENTS:
        data = data_of(names, number, chance)
        server.admin("/features-batch/import", {"project": "default", "environment": environment, "data": data})
    return names


def emptied(server: Peer, names: Sequence[str]) -> None:
    """Take away all that `overlapping` gave a real server. It notes later that a flag is archived, and dies if the flag is gone."""
    active = [row["name"] for row in server.admin("/projects/default/features")["features"]]
    server.admin("/projects/default/archive", {"features": active})

    def noted(name: str) -> bool:
        stages = server.admin(f"/projects/default/features/{name}/lifecycle")
        return any(each["stage"] == "archived" for each in stages)

    wait_until(lambda: all(map(noted, active)), 30, lambda: "the server does not note that flags are archived")
    server.admin("/projects/default/delete", {"features": list(names)})
    for row in server.admin("/segments")["segments"]:
        server.admin(f"/segments/{row['id']}", method="DELETE")
    for path in ("/context/region", "/strategies/opening", "/tag-types/team"):
        server.admin(path, method="DELETE")


def data_of(names: Sequence[str], segment: int, chance: random.Random) -> dict[str, Any]:
    """Return a data set of flags: each with one to five strategies that most contexts match, a parent, a tag and a link."""
    strategies = [item for name in names for item in strategies_of(name, segment, chance)]
    chance.shuffle(strategies)
    return {
        "features": [{"name": name, "description": f"the {name}", "project": "default"} for name in names],
        "featureStrategies": strategies,
        "featureEnvironments": [{"name": name, "featureName": name, "enabled": place % 7 != 3} for place, name in enumerate(names)],
        "segments": [{"id": segment, "name": BETA["name"]}],
        "featureTags": [{"featureName": name, "tagType": "team", "tagValue": "web"} for name in names[::4]],
        "tagTypes": [{"name": "team"}],
        "dependencies": [
            {"feature": name, "dependencies": [{"feature": names[-1 - place], "enabled": True}]}
            for place, name in enumerate(names[: len(names) // 3])
        ],
        "links": [{"feature": name, "links": [{"url": "https://example.com/a", "title": "A"}]} for name in names[::5]],
    }


def strategies_of(name: str, segment: int, chance: random.Random) -> list[dict[str, Any]]:
    """Return the strategies of a flag, with places that say nothing of the order of the list."""
    places = chance.sample(range(10), chance.randint(1, 5))
    found = []
    for place in places:
        label = f"{name}-{place}"
        variant = {"name": f"v-{label}", "weight": 400, "weightType": "fix", "stickiness": "default"}
        other = {"name": f"w-{label}", "weight": 600, "weightType": "variable", "stickiness": "default"}
        region = {"contextName": "region", "operator": chance.choice(["IN", "NOT_IN"]), "values": [chance.choice(REGIONS)]}
        found.append({
            "name": "flexibleRollout",
            "featureName": name,
            "title": label,
            "disabled": chance.random() < 0.1,
            "parameters": {"rollout": str(chance.choice([50, 80, 100])), "stickiness": "default", "groupId": label},
            "constraints": [region] if chance.random() < 0.7 else [],
            "variants": [variant | {"payload": {"type": "string", "value": label}}, other] if chance.random() < 0.9 else [],
            "segments": [segment] if chance.random() < 0.2 else [],
            "sortOrder": place
        })  # fmt: skip
    return found


def users(count: int) -> list[dict[str, Any]]:
    """Return contexts of users in several regions."""
    return [{"userId": f"user-{number}", "properties": {"region": REGIONS[number % len(REGIONS)]}} for number in range(count)]


def evaluated(server: Peer, names: Sequence[str], asked: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the results of the SDK for Node for each environment, context and flag, read from the server."""
    tokens = [backend_token(server, environment) for environment in ENVIRONMENTS]
    with processes.scratch() as folder:
        (folder / "asked.json").write_text(json.dumps([f"{server.url}/api", tokens, names, asked]))
        with processes.node_script("sdk", NODE, "unleash-client", str(folder / "asked.json")) as program:
            program.wait(lambda: program.process.poll() is not None, "answering", 60)
            assert program.process.poll() == 0, program.output()[-2000:]
            told = json.loads(program.output().splitlines()[-1])
    return [answer for environment in told for context in environment for answer in context]


def differing(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return how many answers differ."""
    return sum(one != two for one, two in zip(first, second, strict=True))


def moved_whole(source: Peer, target: Peer, count: int, folder: Path) -> str:
    """Move a server with so many flags and an archived flag into an empty server. A second run says that it has nothing to do."""
    code, out, err = move(source, target, folder=folder)
    assert code == 0, (out, err)
    assert f"environment `production`: {count} new\n" in out and "moved: 1 archived flag of" in out, out
    code, out, err = move(source, target, folder=folder)
    assert code == 0 and ALL_THERE in out and "moved:" not in out, (out, err)
    [segment] = target.admin("/segments")["segments"]
    assert segment["constraints"][0]["values"] == ["eu"]
    assert [row["name"] for row in target.admin("/search/features?archived=IS:true")["features"]] == ["flag-10"]
    return out


@pytest.mark.parametrize(("count", "contexts"), [(24, 25), pytest.param(150, 60, marks=pytest.mark.long)])
def test_there_and_back(tmp_path: Path, count: int, contexts: int) -> None:
    """From the real server to ours, and back when it is empty: each move is whole, users too, and all evaluations agree.

    On the way back the project lacks an environment; then a flag is archived there, and a description goes here.
    """
    with cli_peers.real() as real, cli_peers.ours() as ours:
        names = overlapping(real, count)
        real.admin("/projects/default/features/flag-10", method="DELETE")
        for user in (user_step({"username": "anna", "email": "anna@example.com"}, 2), user_step({"email": "carl@example.com"}, 3)):
            real.admin("/user-admin", user.requests[0].body)
        asked = users(contexts)
        before = evaluated(real, names, asked)
        assert "stays behind" not in moved_whole(real, ours, count, tmp_path)
        there = roles_of(ours)
        assert (there["anna"], there["carl@example.com"]) == ("Editor", "Viewer")
        between = evaluated(ours, names, asked)
        emptied(real, names)
        real.admin("/projects/default/environments/production", method="DELETE")
        moved_whole(ours, real, count, tmp_path)
        assert roles_of(real) == roles_of(ours)
        real.admin("/projects/default/archive", {"features": ["flag-11"]})
        [segment] = ours.admin("/segments")["segments"]
        ours.admin(f"/segments/{segment['id']}", {**BETA, "description": None}, "PUT")
        out = moved_again(ours, real, tmp_path, {"flag-10"})
        assert "moved: 1 segment\nmoved: 1 revived flag of project `default`\n" in out, out
        after = evaluated(real, names, asked)
    assert len(before) == 2 * count * contexts and len({answer[1] for answer in before}) > 50, "the order makes a difference"
    assert [differing(before, between), differing(before, after)] == [0, 0]


def roles_of(server: Peer) -> dict[str, str]:
    """Return the root role of each user."""
    answer = server.admin("/user-admin")
    roles = {role["id"]: role["name"] for role in answer["rootRoles"]}
    return {user.get("username") or user["email"]: roles[user["rootRole"]] for user in answer["users"]}


GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}, {"id": "small", "name": "Small", "featureLimit": 1}],
    "features": [{"name": f"shop-{number}", "project": "shop"} for number in range(3)],
}


def test_from_ours_to_ours(tmp_path: Path) -> None:
    """All projects are moved, first a part. Objects of the target only stay, and the next run repeats changes of the source."""
    own = [{"name": "only-there", "project": "default"}]
    there = {"projects": GIVEN["projects"][:1], "features": own, "segments": [{"name": "own", "constraints": []}]}
    with cli_peers.ours(GIVEN) as source, cli_peers.ours(there) as target:
        overlapping(source, 12)

        code, out, _ = move(source, target, "--dry-run", folder=tmp_path)
        assert code == 0 and "+ new: project small\n" in out
        chosen = ("--project", "default,shop")
        code, out, _ = move(source, target, *chosen, "--environment", "development", "--dry-run", folder=tmp_path)
        assert code == 0 and out.endswith("nothing was moved: this was a dry run\n")
        assert [row["name"] for row in target.admin("/projects/default/features")["features"]] == ["only-there"]

        code, out, _ = move(source, target, *chosen, "--environment", "production", folder=tmp_path)
        assert code == 0 and "production" in out and "development" not in out
        code, out, _ = move(source, target, *chosen, folder=tmp_path)
        assert code == 0 and "moved: 12 flags into project `default`, environment `development`" in out, out
        assert "project `shop`, environment `development`: 3 same\n" in out
        code, out, _ = move(source, target, *chosen, folder=tmp_path)
        assert code == 0 and ALL_THERE in out
        for environment in ENVIRONMENTS:
            flags, found = by_name(source, environment), by_name(target, environment)
            assert found.pop("only-there") and found == flags
        assert [row["name"] for row in target.admin("/segments")["segments"]] == ["beta testers", "own"]

        turn_around(source, "flag-1")
        code, out, _ = move(source, target, *chosen, folder=tmp_path)
        assert code == 0 and "environment `development`: 1 changed, 11 same\n" in out, out
        code, out, err = move(source, target, folder=tmp_path)
        assert code == 0 and "moved: 1 project\n" in out, (out, err)
        assert "small" in [row["id"] for row in target.admin("/projects")["projects"]]
        code, out, _ = move(source, target, folder=tmp_path)
        assert code == 0 and ALL_THERE in out


def moved_again(source: Peer, target: Peer, folder: Path, archived: set[str]) -> str:
    """Move twice and return the output of the first run: these flags are archived then, and the second has nothing to do."""
    code, out, err = move(source, target, folder=folder)
    assert code == 0, (out, err)
    code, again, _ = move(source, target, folder=folder)
    assert (code, again.splitlines()[-1]) == (0, f"0 changes: {target.url} has all of it"), again
    rows = target.admin("/search/features?archived=IS:true")["features"]
    assert {row["name"] for row in rows} == archived
    return out


def turn_around(server: Peer, name: str) -> None:
    """Let the strategies of a flag in development come in another order."""
    where = f"/projects/default/features/{name}/environments/development/strategies"
    rows = server.admin(where)
    if len(rows) == 1:
        server.admin(where, {"name": "default"})
        return
    body = [{"id": row["id"], "sortOrder": place} for place, row in enumerate(reversed(rows))]
    server.admin(f"{where}/set-sort-order", body)


def by_name(server: Peer, environment: str) -> dict[str, Any]:
    """Return what SDKs read of each flag."""
    return {item["name"]: without_numbers(item) for item in document(server, environment)["features"]}


def without_numbers(flag: dict[str, Any]) -> dict[str, Any]:
    """Return a flag of a document without the numbers of segments, which are each server's own."""
    strategies = [item | {"segments": len(item.get("segments") or ())} for item in flag["strategies"]]
    return flag | {"strategies": strategies}


VERSION = {"contextName": "appVersion", "operator": "SEMVER_GT", "values": [], "value": "1.2.3+b"}
DATA: dict[str, Any] = {
    "features": [{"name": name, "project": "default"} for name in ("bad", "child", "good", "segmented")],
    "featureStrategies": [
        {"name": "default", "featureName": "bad"},
        {"name": "default", "featureName": "bad", "constraints": [VERSION], "sortOrder": 1},
        {"name": "default", "featureName": "good"},
        {"name": "default", "featureName": "segmented", "segments": [1]},
    ],
    "featureEnvironments": [{"name": name, "featureName": name, "enabled": True} for name in ("bad", "good", "segmented")],
    "dependencies": [{"feature": "child", "dependencies": [{"feature": "bad", "enabled": True}]}],
    "segments": [{"id": 1, "name": "beta"}],
    "tagTypes": [],
}
PLACE = "bad: environment production: strategy 2 (default), constraint on appVersion (SEMVER_GT)"
SEGMENT = "segmented: environment production: segment beta, constraint on appVersion (SEMVER_GT)"


def filled(server: Peer) -> None:
    """Import the flags into a server, which stores versions with build metadata."""
    server.admin("/segments", {"name": "beta", "constraints": [VERSION]})
    server.admin("/features-batch/import", {"project": "default", "environment": "production", "data": DATA})


def flags(server: Peer) -> list[str]:
    """Return the names of the flags of a server."""
    return sorted(item["name"] for item in server.admin("/projects/default/features")["features"])


def stored_values(server: Peer) -> set[str]:
    """Return the values of the constraints that SDKs read, of strategies and of segments."""
    found = document(server, "production")
    rows = [each for flag in found["features"] for each in flag["strategies"]] + found.get("segments", [])
    return {value for row in rows for each in row.get("constraints") or () if (value := each.get("value"))}


def test_to_a_server_that_refuses_them(tmp_path: Path) -> None:
    """The dry run and the run name the same flags. With --skip-failing the others are moved, and exit code 1 stays."""
    with cli_peers.real() as real, cli_peers.ours() as ours:
        filled(ours)
        assert stored_values(ours) == {"1.2.3+b"}
        dry = move(ours, real, "--dry-run", folder=tmp_path)
        run = move(ours, real, folder=tmp_path)
        for code, out, err in (dry, run):
            assert code == 1 and "nothing was moved: " in err, (out, err)
            assert PLACE in out and SEGMENT in out and "  child: parent bad\n" in out, out
            assert "The value provided was: 1.2.3+b" in out and out.endswith("cannot be moved: 3 flags\n")
        assert flags(real) == [] and real.admin("/segments")["segments"] == []
        code, out, err = move(ours, real, "--skip-failing", folder=tmp_path)
        assert code == 1 and out.endswith("cannot be moved: 3 flags\n"), (out, err)
        assert flags(real) == ["good"] and real.admin("/segments")["segments"] == []


@pytest.mark.long
def test_between_servers_that_take_them(tmp_path: Path) -> None:
    """From ours to 8.2.0 and from there to another of ours, each flag is there with its version."""
    with cli_peers.real("server-8") as real, cli_peers.ours() as ours, cli_peers.ours() as other:
        filled(ours)
        for source, target in ((ours, real), (real, other)):
            code, out, err = move(source, target, "--dry-run", folder=tmp_path)
            assert code == 0, (out, err)
            code, out, err = move(source, target, folder=tmp_path)
            assert code == 0, (out, err)
            assert flags(target) == ["bad", "child", "good", "segmented"] and stored_values(target) == {"1.2.3+b"}
