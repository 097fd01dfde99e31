"""npm `@unleash/proxy-client-react` in a page of a headless Chromium, on another origin than the proxy.

The page loads the files of the packages as they are; nothing is bundled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support import peers
from support.browser import Browser, browser
from support.clients import Client, Row, plan
from support.clients_scripts import USE
from support.http_tap import HttpTap

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


@contextmanager
def serving(files: Mapping[str, tuple[str, bytes]]) -> Iterator[str]:
    """Serve files by path, with their media types, on a loopback port; gives the address. Any other path is an empty answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            media, content = files.get(self.path, ("", b""))
            self.send_response(200 if content else 204)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


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
    scripts = {
        path: ("text/javascript", (peers.package(name, "react") / file).read_bytes())
        for path, (name, file) in SCRIPTS.items()
    }
    page = html(f"const plan = {plan(taps)};{USE}{APP}")
    with serving({"/": ("text/html", page), **scripts}) as address, browser() as chromium:
        chromium.go(address + "/")
        told = Told(chromium)
        yield [Client(row, tap, partial(told.by, row.id, tap.url)) for row, tap in taps]
