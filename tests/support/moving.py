"""Flags for a move, whose variants depend on the order of strategies, and the SDK for Node that evaluates them on any server."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import flagservers, processes
from support.processes import Called
from support.waiting import wait_until

ENVIRONMENTS = ("development", "production")
SEGMENT = {
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


@dataclass(frozen=True)
class Server:
    """A flag server of either kind: its address without `/api`, and the secret of an administrator."""

    root: str
    user: str

    def admin(self, path: str, body: object = None, method: str = "") -> Any:
        """Call the admin API and return the answer. Other statuses than success fail."""
        url, method = f"{self.root}/api/admin{path}", method or ("GET" if body is None else "POST")
        answer = processes.ask(url, method=method, headers={"Authorization": self.user}, body=body, seconds=300)
        assert answer.status < 300, (method, path, answer.status, answer.body)
        return json.loads(answer.body) if answer.body else None

    def backend_token(self, environment: str) -> str:
        """Return the secret of a new token for SDKs."""
        body = {"tokenName": f"sdk-{environment}", "type": "client", "environment": environment, "projects": ["*"]}
        return str(self.admin("/api-tokens", body)["secret"])

    def document(self, environment: str) -> dict[str, Any]:
        """Return what SDKs read."""
        headers = {"Authorization": self.backend_token(environment)}
        return dict(processes.ask(f"{self.root}/api/client/features", headers=headers).json())


def ours(server: flagservers.OurFlagServer) -> Server:
    return Server(server.root, flagservers.USER_SECRET)


def real(server: processes.FlagServer) -> Server:
    return Server(server.url.removesuffix("/api"), processes.personal_token(server))


def move(source: Server, target: Server, *arguments: str, folder: Path) -> Called:
    """Run `flagsvc move --yes`."""
    tokens = {"FLAGSVC_FROM_TOKEN": source.user, "FLAGSVC_TO_TOKEN": target.user}
    return processes.call("move", source.root, target.root, "--yes", *arguments, folder=folder, env=tokens, seconds=600)


def filled(server: Server, count: int) -> list[str]:
    """Give a server flags whose strategies overlap, in both environments and in no order of their making; return the names."""
    server.admin("/context", {"name": "region", "stickiness": True, "legalValues": [{"value": each} for each in REGIONS]})
    server.admin("/strategies", {"name": "opening", "description": "hours", "parameters": []})
    server.admin("/tag-types", {"name": "team", "description": "teams", "icon": "T"})
    number = server.admin("/segments", SEGMENT)["id"]
    chance = random.Random(1)
    names = [f"flag-{each}" for each in range(count)]
    for environment in ENVIRONMENTS:
        data = data_of(names, number, chance)
        server.admin("/features-batch/import", {"project": "default", "environment": environment, "data": data})
    return names


def emptied(server: Server, names: Sequence[str]) -> None:
    """Take away all that `filled` gave a real server. It notes later that a flag is archived, and dies if the flag is gone."""
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
        "segments": [{"id": segment, "name": SEGMENT["name"]}],
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


def contexts(count: int) -> list[dict[str, Any]]:
    """Return contexts of users in several regions."""
    return [{"userId": f"user-{number}", "properties": {"region": REGIONS[number % len(REGIONS)]}} for number in range(count)]


def evaluated(server: Server, names: Sequence[str], asked: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the results of the SDK for Node for each environment, context and flag, read from the server."""
    tokens = [server.backend_token(environment) for environment in ENVIRONMENTS]
    with processes.scratch() as folder:
        (folder / "asked.json").write_text(json.dumps([f"{server.root}/api", tokens, names, asked]))
        with processes.node_script("sdk", NODE, "unleash-client", str(folder / "asked.json")) as program:
            program.wait(lambda: program.process.poll() is not None, "answering", 60)
            assert program.process.poll() == 0, program.output()[-2000:]
            told = json.loads(program.output().splitlines()[-1])
    return [answer for environment in told for context in environment for answer in context]


def differing(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return how many answers differ."""
    return sum(one != two for one, two in zip(first, second, strict=True))
