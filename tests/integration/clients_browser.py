"""npm `@unleash/proxy-client-react` in a page of a headless Chromium, on another origin than the proxy.

The page loads the files of the packages as they are; nothing is bundled.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from clients import Client, Row, plan
from http_tap import HttpTap

from support import peers, processes
from support.browser import Browser, browser
from support.http_servers import serving

USE = """
const use = (client, id, asking = []) => {
  const seen = [1, 2, 3].map(() => client.isEnabled(`${id}.asked`, ...asking));
  const others = ["off", "unknown"].map((name) => client.isEnabled(`${id}.${name}`, ...asking));
  return { asked: [...seen, ...others], variant: client.getVariant(`${id}.variant`, ...asking) };
};
"""
"""Each client does this after its first fetch. It counts nothing else of its own flags."""
WATCH = """
const { runs, context, elsewhere, flags } = JSON.parse(process.argv[3]);
const teller = (client) => (event, content) => console.log(JSON.stringify({ event, client, ...content }));
const watch = (tell, look) => {
  let last = "";
  setInterval(() => {
    const seen = look();
    if (JSON.stringify(seen) !== last) tell("state", { flags: seen });
    last = JSON.stringify(seen);
  }, 50);
};
process.stdin.on("end", () => process.exit()).resume();  // the end of standard input is the end of the test
const each = (look) => Object.fromEntries(flags.map((name) => [name, look(name)]));
"""
# A shorter interval is too short for a loaded machine: the SDK aborts a poll when the next one is due. If the aborted one had its
# tag already but not its flags, all further ones claim to know flags that the SDK does not have.
PAGE = """
const { UnleashClient, InMemoryStorageProvider } = require(process.argv[2]);
for (const { id, url, key, appName, post } of runs) {
  const tell = teller(id);
  const client = new UnleashClient({
    url, clientKey: key, appName, context, refreshInterval: 1, metricsInterval: 0.5, usePOSTrequests: post,
    storageProvider: new InMemoryStorageProvider(),
  });
  const names = () => client.getAllToggles().map((toggle) => toggle.name);
  client.on("error", (error) => tell("error", { error: error.code || String(error) }));
  client.on("ready", () => tell("ready", { toggles: names(), ...use(client, id) }));
  watch(tell, () => {
    const on = new Set(names());
    return each((name) => on.has(name));
  });
  client.start();
}
"""
SERVICE = """
const { Unleash } = require(process.argv[2]);
for (const { id, url, key, appName } of runs) {
  const tell = teller(id);
  const client = new Unleash({
    url, appName, customHeaders: { Authorization: key }, refreshInterval: 500, metricsInterval: 500, backupPath: ".",
  });
  client.on("error", (error) => tell("error", { error: String(error) }));
  client.on("synchronized", () => tell("ready", {
    elsewhere: client.isEnabled("in-segment", elsewhere), ...use(client, id, [context]),
  }));
  watch(tell, () => each((name) => client.isEnabled(name, context)));
}
"""
PYTHON = """
import json, select, sys
from UnleashClient import UnleashClient
plan = json.loads(sys.argv[1])
context, clients, last = plan["context"], {}, {}
def tell(event, client, **content):
    print(json.dumps({"event": event, "client": client, **content}), flush=True)
for run in plan["runs"]:
    clients[run["id"]] = client = UnleashClient(
        url=run["url"], app_name=run["appName"], custom_headers={"Authorization": run["key"]}, cache_directory=run["id"],
        refresh_interval=1, metrics_interval=1,
    )
    client.initialize_client()
def use(client, id):
    seen = [client.is_enabled(f"{id}.{name}", context) for name in ("asked", "asked", "asked", "off", "unknown")]
    elsewhere = client.is_enabled("in-segment", plan["elsewhere"])
    return {"asked": seen, "elsewhere": elsewhere, "variant": client.get_variant(f"{id}.variant", context)}
while not select.select([sys.stdin], [], [], 0.05)[0]:  # the end of standard input is the end of the test
    for id, client in clients.items():
        seen = {name: client.is_enabled(name, context) for name in plan["flags"]}
        if id not in last and seen["on"]:
            tell("ready", id, **use(client, id))
        if seen != last.get(id):
            last[id] = seen
            tell("state", id, flags=seen)
"""


@contextmanager
def node_clients(script: str, package: str, taps: list[tuple[Row, HttpTap]]) -> Iterator[list[Client]]:
    """Run clients of an npm package."""
    with processes.node_script(package, USE + WATCH + script, package, plan(taps)) as program, clients_of(program, taps) as clients:
        yield clients


pages = partial(node_clients, PAGE, "unleash-proxy-client")
node_services = partial(node_clients, SERVICE, "unleash-client")


@contextmanager
def python_services(taps: list[tuple[Row, HttpTap]]) -> Iterator[list[Client]]:
    """Run clients of PyPI `UnleashClient`."""
    command = [sys.executable, "-c", PYTHON, plan(taps)]
    with (
        processes.scratch() as folder,
        processes.running("services", command, env={}, folder=folder) as program,
        clients_of(program, taps) as clients,
    ):
        yield clients


class Said:
    """What the clients in a program told so far. Each look reads only what is new."""

    def __init__(self, program: processes.Program) -> None:
        self.output = program.output_file.open("rb")
        self.rest = b""
        self.events: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def by(self, client: str, event: str) -> list[dict[str, Any]]:
        """Return the events of one kind of one client."""
        *lines, self.rest = (self.rest + self.output.read()).split(b"\n")
        for line in lines:
            if line.startswith(b"{") and line.endswith(b"}"):
                told = json.loads(line)
                self.events.setdefault((told["client"], told["event"]), []).append(told)
        return list(self.events.get((client, event), ()))


@contextmanager
def clients_of(program: processes.Program, taps: list[tuple[Row, HttpTap]]) -> Iterator[list[Client]]:
    """Give the clients that a program runs."""
    said = Said(program)
    with said.output:
        yield [Client(row, tap, partial(said.by, row.id)) for row, tap in taps]


SCRIPTS = {
    "/react.js": ("react", "umd/react.production.min.js"),
    "/react-dom.js": ("react-dom", "umd/react-dom.production.min.js"),
    "/client.js": ("unleash-proxy-client", "build/main.min.js"),
    "/provider.js": ("@unleash/proxy-client-react", "dist/unleash-react.umd.cjs"),
}
"""Path → the package and the file in it, in the order in which the page loads them."""
NAMES = "var react = React, unleashProxyClient = unleash;"
"""The last script looks for the others under these names."""
APP = """
const told = [];
const tell = (event, client, content) => { told.push({ event, client, ...content }); };
const { FlagProvider, LocalStorageProvider, useFlag, useFlagsStatus, useUnleashClient } = UnleashReact;
const Flags = ({ id }) => {
  const client = useUnleashClient();
  const { flagsReady, flagsError } = useFlagsStatus();
  const flags = Object.fromEntries(plan.flags.map((name) => [name, useFlag(name)]));
  const shown = JSON.stringify(flags);
  const toggles = () => client.getAllToggles().map((toggle) => toggle.name);
  React.useEffect(() => { if (flagsReady) tell("ready", id, { toggles: toggles(), ...use(client, id) }); }, [flagsReady]);
  React.useEffect(() => { tell("state", id, { flags }); }, [shown]);
  React.useEffect(() => { if (flagsError) tell("error", id, { error: flagsError.code || String(flagsError) }); }, [flagsError]);
  return React.createElement("li", { id }, shown);
};
const providers = plan.runs.map(({ id, url, key, appName, post }) => {
  const config = {
    url, clientKey: key, appName, context: plan.context, refreshInterval: 1, metricsInterval: 0.5, usePOSTrequests: post,
    storageProvider: new LocalStorageProvider(id),
  };
  return React.createElement(FlagProvider, { key: id, config }, React.createElement(Flags, { id }));
});
ReactDOM.createRoot(document.getElementById("root")).render(providers);
"""


def html(text: str) -> bytes:
    """Return a page with the scripts of the packages, and a script of ours behind them."""
    first, *others = (f'<script src="{path}"></script>' for path in SCRIPTS)
    between = [*others[:-1], f"<script>{NAMES}</script>", others[-1]]
    return f'<!doctype html><meta charset="utf-8"><ul id="root"></ul>{first}{"".join(between)}<script>{text}</script>'.encode()


class Told:
    """What a page told so far; each look takes only what is new out of the page. What its console says is an error, too."""

    def __init__(self, page: Browser) -> None:
        self.page = page
        self.events: list[dict[str, Any]] = []

    def by(self, client: str, url: str, event: str) -> list[dict[str, Any]]:
        """Return the events of one kind of one client, which asks at this URL."""
        self.events += self.page.run(f"told.slice({len(self.events)})")
        complaints = [{"error": line} for line in self.page.complaints() if event == "error" and f"{url}/" in line]
        return [each for each in self.events if (each["client"], each["event"]) == (client, event)] + complaints


@contextmanager
def react_page(taps: list[tuple[Row, HttpTap]]) -> Iterator[list[Client]]:
    """Run one provider for each client in one page."""
    files = {"/": ("text/html", html(f"const plan = {plan(taps)};{USE}{APP}"))}
    for path, (name, file) in SCRIPTS.items():
        files[path] = "text/javascript", (peers.package(name, "react") / file).read_bytes()
    with serving(files) as address, browser() as chromium:
        chromium.go(address + "/")
        told = Told(chromium)
        yield [Client(row, tap, partial(told.by, row.id, tap.url)) for row, tap in taps]
