"""Real server-side SDKs that hear of changes give the answers of those that poll (dialects: Delta and streaming).

SDKs at our flag server and at our proxy: `Scene.walk` makes random changes, waits until every SDK has them, and checks that all
give the same answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from support import processes
from support.flagservers import BACKEND_SECRET, OurFlagServer, our_flag_server
from support.processes import SERVER_SIDE_TOKEN, Program
from support.waiting import wait_until

pytestmark = pytest.mark.programs
Json = dict[str, Any]

NODE = """
const { Unleash, InMemStorageProvider } = require(process.argv[2]);
const asked = JSON.parse(process.argv[3]);
const modes = {
  polling: { type: "polling", format: "full" }, delta: { type: "polling", format: "delta" }, streaming: { type: "streaming" },
};
for (const [name, { url, token, mode }] of Object.entries(asked.clients)) {
  const client = new Unleash({
    url, appName: name, customHeaders: { Authorization: token }, refreshInterval: 100, disableMetrics: true,
    skipInstanceCountWarning: true, storageProvider: new InMemStorageProvider(), experimentalMode: modes[mode],
  });
  client.on("error", (error) => console.log(JSON.stringify({ event: "error", name, error: String(error) })));
  let seen = "";
  const look = () => {
    const step = client.getVariant("marker", {}, { name: "none" }).name;
    if (step === seen || step === "none") return;
    seen = step;
    const one = (flag, context) => (client.isEnabled(flag, context) ? "1" : "0") + client.getVariant(flag, context).name;
    const answers = asked.flags.map((flag) => asked.contexts.map((context) => one(flag, context)).join(" "));
    console.log(JSON.stringify({ event: "answers", name, step, answers }));
  };
  setInterval(look, 20);
}
process.stdin.resume();
"""
PYTHON = """
import json, os, select, sys
from UnleashClient import UnleashClient
from UnleashClient.utils import InstanceAllowType
asked = json.loads(sys.argv[1])
clients = {}
for name, given in asked["clients"].items():
    os.makedirs(name, exist_ok=True)
    clients[name] = UnleashClient(
        url=given["url"].rstrip("/"), app_name=name, custom_headers={"Authorization": given["token"]}, refresh_interval=1,
        disable_metrics=True, cache_directory=name, multiple_instance_mode=InstanceAllowType.SILENTLY_ALLOW,
        experimental_mode={"type": given["mode"]},
    )
    clients[name].initialize_client()
seen = dict.fromkeys(clients)
def one(client, flag, context):
    return ("1" if client.is_enabled(flag, context) else "0") + client.get_variant(flag, context)["name"]
while not select.select([sys.stdin], [], [], 0.02)[0]:
    for name, client in clients.items():
        step = client.get_variant("marker", {})["name"]
        if step != seen[name]:
            answers = [" ".join(one(client, flag, context) for context in asked["contexts"]) for flag in asked["flags"]]
            if client.get_variant("marker", {})["name"] == step:  # no change came in between
                seen[name] = step
                print(json.dumps({"event": "answers", "name": name, "step": step, "answers": answers}), flush=True)
"""
FLAGS = [f"flag-{number}" for number in range(24)]
CONTEXTS: list[Json] = [
    {},
    {"userId": "7", "properties": {"region": "eu"}},
    {"userId": "8", "properties": {"region": "us", "plan": "free"}},
    {"userId": "10", "properties": {"plan": "paid"}},
]
SEGMENTS = ("europe", "payers", "testers")
STEPS_S = 30.0


def constraint(draw: Random) -> Json:
    name, values = draw.choice((("region", ["eu", "us", "asia"]), ("plan", ["free", "paid"]), ("userId", ["7", "8", "9"])))
    chosen = draw.sample(values, draw.randrange(1, len(values)))
    return {"contextName": name, "operator": draw.choice(("IN", "NOT_IN")), "values": chosen}


def strategy(draw: Random) -> Json:
    """Return a strategy that gives the same user the same answer."""
    parameters = {"rollout": str(draw.choice((25, 50, 100))), "stickiness": "userId", "groupId": draw.choice("abc")}
    variants = [{"name": name, "weight": 500, "weightType": "variable", "stickiness": "userId"} for name in ("blue", "green")]
    return {
        "name": "flexibleRollout",
        "parameters": parameters,
        "constraints": [constraint(draw) for _ in range(draw.randrange(2))],
        "segments": draw.sample(range(1, len(SEGMENTS) + 1), draw.randrange(3)),
        "variants": variants if draw.random() < 0.4 else [],
    }


@dataclass
class Scene:
    """A flag server, and SDKs by name. `changes` counts the changes so far."""

    server: OurFlagServer
    programs: list[Program]
    clients: set[str]
    draw: Random
    features: dict[str, str] = field(default_factory=dict)
    archived: set[str] = field(default_factory=set)
    changes: int = 0
    step: int = 0
    _read: dict[str, int] = field(default_factory=dict)
    _said: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def place(self, name: str) -> str:
        return f"/projects/{self.features[name]}/features/{name}"

    def change(self) -> None:
        draw, admin = self.draw, self.server.admin
        self.changes += 1
        name = draw.choice(FLAGS)
        here = f"{self.place(name)}/environments/development" if name in self.features else ""
        kind = draw.random()
        if kind < 0.1:
            number = draw.randrange(len(SEGMENTS))
            body = {"name": SEGMENTS[number], "constraints": [constraint(draw) for _ in range(draw.randrange(3))]}
            admin(f"/segments/{number + 1}", body, "PUT")
        elif name in self.archived:
            self.archived.discard(name)
            admin(f"/archive/revive/{name}", {})
        elif not here:
            self.features[name] = draw.choice(("default", "other"))
            admin(f"/projects/{self.features[name]}/features", {"name": name})
            admin(f"{self.place(name)}/environments/development/strategies", strategy(draw))
            admin(f"{self.place(name)}/environments/development/on", {})
        elif kind < 0.25:
            self.archived.add(name)
            admin(self.place(name), method="DELETE")
        elif kind < 0.7:
            held = admin(f"{here}/strategies")
            if len(held) > 2:
                admin(f"{here}/strategies/{held[0]['id']}", method="DELETE")
            else:
                admin(f"{here}/strategies", strategy(draw))
        else:
            admin(f"{here}/{draw.choice(('on', 'on', 'off'))}", {})

    def mark(self) -> str:
        """Have a flag say which step this is."""
        self.step += 1
        step = f"step-{self.step}"
        variant = {"name": step, "weight": 1000, "weightType": "variable", "stickiness": "default"}
        path = "/projects/default/features/marker/environments/development/strategies"
        (held,) = self.server.admin(path)
        self.server.admin(f"{path}/{held['id']}", {"name": "default", "variants": [variant]}, "PUT")
        return step

    def walk(self, steps: int, changes: int) -> None:
        """Make some changes, and check the answers, in so many steps."""
        for _ in range(steps):
            for _ in range(changes):
                self.change()
            self.check(self.mark())

    def check(self, step: str) -> None:
        """Wait until every SDK is at a step, and check that all answer the same."""
        wait_until(
            lambda: self.said(step).keys() == self.clients, STEPS_S, lambda: f"{step}: only {sorted(self.said(step))} have it"
        )
        answers = self.said(step)
        first = next(iter(answers.values()))
        different = {name: found for name, found in answers.items() if found != first}
        assert not different, (step, first, different)

    def said(self, step: str) -> dict[str, list[str]]:
        """Return the answers of the SDKs at a step, by name."""
        for program in self.programs:
            with program.output_file.open("rb") as file:
                file.seek(self._read.get(program.name, 0))
                lines = file.read()
                whole = lines[: lines.rfind(b"\n") + 1]
            self._read[program.name] = self._read.get(program.name, 0) + len(whole)
            for line in (json.loads(each) for each in whole.splitlines() if each.startswith(b"{")):
                assert line["event"] == "answers", line
                self._said.setdefault(line["step"], {})[line["name"]] = line["answers"]
        return self._said.get(step, {})


@contextmanager
def sdk_scene(seed: int) -> Iterator[Scene]:
    """Give a flag server, a proxy that follows it, and SDKs of both in every mode."""
    given = {
        "projects": [{"id": "other", "name": "Other"}],
        "segments": [{"name": name, "constraints": []} for name in SEGMENTS],
        "features": [{"name": "marker", "enabled": ["development"]}],
        "strategies": [{"feature": "marker", "environment": "development", "name": "default"}],
    }
    with ExitStack() as running:
        server = running.enter_context(our_flag_server(given=given))
        proxy = running.enter_context(processes.our_proxy(server.url, UNLEASH_API_TOKEN=BACKEND_SECRET, UNLEASH_FETCH_INTERVAL="1"))
        places = {"server": (f"{server.url}/", BACKEND_SECRET), "proxy": (f"http://127.0.0.1:{proxy.port}/api/", SERVER_SIDE_TOKEN)}
        asked = {
            language: {
                f"{language}-{mode}-{place}": {"url": url, "token": token, "mode": mode}
                for mode in modes
                for place, (url, token) in places.items()
            }
            for language, modes in (("node", ("polling", "delta", "streaming")), ("python", ("polling", "streaming")))
        }
        names = {name for clients in asked.values() for name in clients}
        node, python = (json.dumps({"clients": asked[each], "flags": FLAGS, "contexts": CONTEXTS}) for each in asked)
        folder = running.enter_context(processes.scratch())
        command = [sys.executable, "-c", PYTHON, python]
        programs = [
            running.enter_context(processes.node_script("node", NODE, "unleash-client", node)),
            running.enter_context(processes.running("python", command, env={}, folder=folder)),
        ]
        scene = Scene(server, programs, names, Random(seed))
        scene.check(scene.mark())
        yield scene


@pytest.mark.parametrize(("seed", "steps", "changes"), [(1, 2, 15), pytest.param(2, 300, 7, marks=pytest.mark.long)])
def test_every_mode_gives_the_same_answers(seed: int, steps: int, changes: int) -> None:
    """At the flag server and at a proxy that follows it: npm `unleash-client` that polls, polls for deltas, and streams, and PyPI
    `UnleashClient` that polls and streams, all give the same answers after the same random changes."""
    with sdk_scene(seed) as scene:
        scene.walk(steps, changes)
        answers = scene.said(f"step-{scene.step}")
        assert len(answers) == 10 and len(set(" ".join(answers["node-streaming-proxy"]).split())) > 2, "flags are on, and off"
