"""The module for pages in Chromium, with unmodified clients on another origin than the proxy (dialects: Event streams).

npm `unleash-proxy-client`, and npm `@unleash/proxy-client-react`. No client polls, so that what it sees came by the stream.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from clients_browser import SCRIPTS, html

from flagsvc.proxy.api.stream_routes import read_module
from support import peers, processes
from support.browser import NAME, Browser, browser
from support.event_streams import count, wait_streams
from support.fake_upstream import FakeUpstream
from support.flagservers import FRONTEND_SECRET, our_flag_server
from support.guides import block
from support.http_servers import Reply, Request, http_server, serving
from support.waiting import wait_until
from support.worker_pools import document

WATCHED = """
const { url, key, module, shorter } = PLAN;
const wait = window.setTimeout.bind(window);
window.waited = [];
window.setTimeout = (act, ms, ...more) => { window.waited.push(ms); return wait(act, shorter[ms] ?? ms, ...more); };
window.asked = [];
const ask = window.fetch.bind(window);
window.fetch = (target, options) => { window.asked.push(String(target)); return ask(target, options); };
window.streams = () => window.asked.filter((each) => each.includes("/stream"));
window.unhandled = [];
window.addEventListener("unhandledrejection", ({ reason }) => window.unhandled.push(String(reason)));
const names = (client) => client.getAllToggles().map((each) => each.name).sort().join();
const config = { url, clientKey: key, appName: "page", refreshInterval: 0, disableMetrics: true };
"""
PLAIN = """<!doctype html><meta charset="utf-8"><script type="module">WATCHED
const { UnleashClient, InMemoryStorageProvider } = await import("/client.js");
const { follow } = await import(module);
const client = new UnleashClient({ ...config, storageProvider: new InMemoryStorageProvider() });
window.flags = () => names(client);
window.stop = follow(client, config);
await client.start();
</script>"""
REACT = """
WATCHED
const { FlagProvider, useFlag, useUnleashClient } = UnleashReact;
LIVE
const App = () => React.createElement("p", { id: "third" }, String(useFlag("third")), React.createElement(Live));
const root = ReactDOM.createRoot(document.getElementById("root"));
root.render(React.createElement(FlagProvider, { config }, React.createElement(App)));
"""


def scripted(text: str, url: str, key: str = processes.KEY, **shorter: int) -> str:
    """Return a script for clients that ask at `url`. Its timers of some lengths in ms, such as `ms60000`, take another time."""
    plan = {"url": url, "key": key, "module": f"{url}/live.js", "shorter": {name[2:]: ms for name, ms in shorter.items()}}
    return text.replace("WATCHED", WATCHED).replace("PLAN", json.dumps(plan))


@contextmanager
def site(page: str) -> Iterator[str]:
    """Serve a page and the client on an origin of their own."""
    client = (peers.package("unleash-proxy-client") / "build" / "main.esm.js").read_bytes()
    with serving({"/": ("text/html", page.encode()), "/client.js": ("text/javascript", client)}) as address:
        yield f"{address}/"


@contextmanager
def proxy(upstream: FakeUpstream, **options: str) -> Iterator[processes.Proxy]:
    """Run our proxy, which sees a change within a second."""
    with processes.our_proxy(upstream.url, **{"FLAGSVC_FETCH_INTERVAL": "1000", **options}) as found:
        yield found


def see(chromium: Browser, *names: str) -> None:
    """Wait until a page's client has these flags."""
    chromium.wait_for(f"window.flags && flags() === '{','.join(sorted(names))}'")


def see_in(chromium: Browser, tabs: range, *names: str) -> None:
    """Wait until the clients of these tabs have these flags."""
    for tab in tabs:
        chromium.take(tab)
        see(chromium, *names)


def test_a_change_is_seen_at_once(upstream: FakeUpstream) -> None:
    """A client has a change within a second after the proxy, until `stop` ends the stream. The key is in no URL."""
    allowed = "authorization,unleash-appname,unleash-connection-id,unleash-sdk,if-none-match,accept,content-type"
    with proxy(upstream, CORS_ALLOWED_HEADERS=allowed) as served:
        url = served.url.replace("/proxy", "/api/frontend")
        with site(scripted(PLAIN, url)) as address, browser() as chromium:
            chromium.go(address)
            see(chromium, "first", "second")
            wait_streams(served, 1)
            upstream.replace(document("first", "third"))
            served.program.wait(lambda: "third" in served.toggles(), "serving the change")
            began = time.monotonic()
            see(chromium, "first", "third")
            assert time.monotonic() - began < 1.0
            chromium.run("stop()")
            wait_streams(served, 0)
            assert len(chromium.run("streams()")) == 1 and chromium.run("unhandled") == []
            assert processes.KEY not in str(chromium.requested())
            assert chromium.complaints() == []


GIVEN: dict[str, Any] = {
    "features": [{"name": "first", "enabled": ["development"]}, {"name": "third", "enabled": []}],
    "strategies": [{"feature": name, "environment": "development", "name": "default"} for name in ("first", "third")],
}


def test_a_commit_is_seen_at_once() -> None:
    """A page at the flag server has a change within a second after its commit, without a proxy."""
    with our_flag_server(given=GIVEN) as server:
        page = scripted(PLAIN, f"{server.root}/api/frontend", FRONTEND_SECRET)
        with site(page) as address, browser() as chromium:
            chromium.go(address)
            see(chromium, "first")
            chromium.wait_for("streams().length === 1")
            server.admin("/projects/default/features/third/environments/development/on", method="POST")
            began = time.monotonic()
            see(chromium, "first", "third")
            assert time.monotonic() - began < 1.0


def test_tabs_share_a_stream(upstream: FakeUpstream) -> None:
    """Three windows have one stream. When the holder closes, another window takes over with the version that it knows."""
    with proxy(upstream) as served, site(scripted(PLAIN, served.url)) as address, browser() as chromium:
        for tab in range(3):
            if tab:
                chromium.open(window=True)
            chromium.go(address)
            see(chromium, "first", "second")
            wait_streams(served, 1)
        upstream.replace(document("third"))
        see_in(chromium, range(3), "third")
        assert count(served, "opened_total") == 1
        chromium.take(0)
        chromium.call("Page.close")
        wait_streams(served, 2, "opened_total")
        upstream.replace(document("fourth"))
        see_in(chromium, range(1, 3), "fourth")
        asked = []
        for tab in (1, 2):
            chromium.take(tab)
            asked += chromium.run("streams()")
        assert len(asked) == 1 and "?at=" in asked[0]
        assert (count(served, "open"), count(served, "opened_total")) == (1, 2)


@pytest.mark.long
def test_without_locks_each_tab_has_a_stream(upstream: FakeUpstream) -> None:
    """A page on plain HTTP has no locks."""
    with proxy(upstream) as served, site(scripted(PLAIN, served.url)) as address, browser() as chromium:
        for tab in range(2):
            if tab:
                chromium.open(window=True)
            chromium.go(address.replace("127.0.0.1", NAME))
            see(chromium, "first", "second")
        wait_streams(served, 2)
        upstream.replace(document("third"))
        see_in(chromium, range(2), "third")


@pytest.mark.long
def test_a_hidden_tab_lets_go(upstream: FakeUpstream) -> None:
    """A tab that waits has the stream as soon as its holder is hidden. Without such a tab, the holder closes it after a minute."""
    with (
        proxy(upstream) as served,
        site(scripted(PLAIN, served.url, ms60000=1500)) as address,
        browser() as chromium,
    ):
        chromium.go(address)
        see(chromium, "first", "second")
        wait_streams(served, 1)
        chromium.open()  # hides the first tab
        chromium.go(address)
        see(chromium, "first", "second")
        chromium.wait_for("streams().length === 1")
        wait_streams(served, 1)
        chromium.go("about:blank")
        wait_streams(served, 0)
        upstream.replace(document("third"))
        served.program.wait(lambda: "third" in served.toggles(), "serving the change")
        chromium.take(0)
        see(chromium, "third")
        wait_streams(served, 1)
        chromium.take(1)
        assert count(served, "open") == 1, "not at once"
        wait_streams(served, 0)


@pytest.mark.long
def test_a_page_that_was_left_and_comes_back(upstream: FakeUpstream) -> None:
    """The stream does not keep a page out of the browser's cache of pages. A page from it has what changed meanwhile."""
    with proxy(upstream) as served, site(scripted(PLAIN, served.url)) as address, browser() as chromium:
        chromium.go(address)
        see(chromium, "first", "second")
        wait_streams(served, 1)
        chromium.run("addEventListener('pageshow', ({ persisted }) => { window.persisted = persisted; })")
        chromium.go(f"{served.url}/health")
        wait_streams(served, 0)
        upstream.replace(document("third"))
        served.program.wait(lambda: "third" in served.toggles(), "serving the change")
        history = chromium.call("Page.getNavigationHistory")
        left = history["entries"][history["currentIndex"] - 1]["id"]
        chromium.call("Page.navigateToHistoryEntry", entryId=left)
        chromium.wait_for("window.persisted")
        see(chromium, "third")
        wait_streams(served, 1)
        assert chromium.run("unhandled") == []


def test_a_proxy_that_is_killed_and_a_proxy_that_hangs(upstream: FakeUpstream) -> None:
    """The page comes back by itself, and has what changed meanwhile: after the end of a connection, and after silence."""
    port = str(processes.free_port())
    with proxy(upstream, PORT=port) as served:
        page = site(scripted(PLAIN, served.url, ms45000=1000))
        with page as address, browser() as chromium:
            chromium.go(address)
            see(chromium, "first", "second")
            served.program.process.kill()
            served.program.process.wait()
            upstream.replace(document("third"))
            with proxy(upstream, PORT=port) as again:
                see(chromium, "third")
                again.program.process.send_signal(signal.SIGSTOP)
                chromium.wait_for("window.before = window.before ?? streams().length, streams().length > before + 1")
                upstream.replace(document("fourth"))
                again.program.process.send_signal(signal.SIGCONT)
                see(chromium, "fourth")
                assert chromium.run("unhandled") == []


STREAM = {"Content-Type": "text/event-stream"}
WRONG = {"404": Reply(404), "401": Reply(401), "403": Reply(403), "400": Reply(400), "page": Reply(200, b"<p>hello")}
PASSING = {
    "429": Reply(429, headers={"Retry-After": "1", "Access-Control-Expose-Headers": "Retry-After"}),
    "503": Reply(503),
    "broken": None,
    "ends": Reply(200, b"retry: 50\nid: new\n\n:\n\n", STREAM),
    "twice": Reply(200, b"retry: 60000\nid: new\n\nid: newer\n\n", STREAM),
}
STUBS = """<!doctype html><script type="module">WATCHED
Math.random = () => 0; // so that waits have the lengths that `shorter` names
const { follow } = await import(module);
window.calls = {};
for (const name of NAMES) {
  window.calls[name] = 0;
  let fails = 1;
  const updateToggles = () => { window.calls[name] += 1; if (fails-- > 0) throw new Error("not now"); };
  follow({ updateToggles }, { url: `${url}/${name}`, clientKey: key });
}
</script>"""


def test_answers_that_open_no_stream() -> None:
    """The module tries again: after minutes, and with one line, where streams or rights are missing. The page sees no error.

    After a hint the client asks until it has an answer, and once more, because that answer may come from a replica that is behind.
    """
    asked: list[str] = []
    anybody = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*, authorization"}

    def answer(request: Request) -> Reply | None:
        name = request.path.split("/")[1]
        if request.method == "OPTIONS" or name == "live.js":
            return Reply(200, read_module(), anybody | {"Content-Type": "text/javascript"})
        asked.append(f"{name}?{dict(request.query).get('at', '')}")
        found = {**WRONG, **PASSING}[name]
        return found and Reply(found.status, found.body, {"Content-Type": "text/html", **found.headers, **anybody})

    with http_server(answer) as server:
        stubs = STUBS.replace("NAMES", json.dumps([*WRONG, *PASSING]))
        page = scripted(stubs, server, ms6000=1500, ms240000=1500)
        with site(page) as address, browser() as chromium:
            chromium.go(address)
            again = [f"{name}?" for name in (*WRONG, "429", "503", "broken")]
            wait_until(lambda: all(asked.count(each) >= 2 for each in again), 30, lambda: str(asked))
            chromium.wait_for("calls.ends === 3 && calls.twice === 3")
            before = asked.count("ends?new")
            wait_until(lambda: asked.count("ends?new") >= before + 2, 30, lambda: str(asked))
            calls = dict.fromkeys([*WRONG, *PASSING], 0) | {"ends": 3, "twice": 3}
            assert chromium.run("calls") == calls, "a call that fails, a call, and once more"
            assert chromium.run("waited.filter((ms) => ms === 240000).length") >= len(WRONG)
            told = [each["args"][0]["value"] for each in chromium.told("Runtime.consoleAPICalled")]
            statuses = sorted(str(reply.status) for reply in WRONG.values())
            assert sorted(re.findall(r"\((\d+)\)", "".join(told))) == statuses and len(told) == len(WRONG)
            assert chromium.run("unhandled") == []


def test_react(upstream: FakeUpstream) -> None:
    """A page with the component of the guide shows a change, and the stream ends with the component."""
    with proxy(upstream) as served:
        url = served.url.replace("/proxy", "/api/frontend")
        live = block("connect-an-sdk.md", "function Live", "js").replace("https://flags.example.com/api/frontend", url)
        files = {"/": ("text/html", html(scripted(REACT, url).replace("LIVE", live)))}
        for path, (name, file) in SCRIPTS.items():
            files[path] = "text/javascript", (peers.package(name, "react") / file).read_bytes()
        with serving(files) as address, browser() as chromium:
            chromium.go(f"{address}/")
            chromium.wait_for("document.getElementById('third')?.textContent === 'false'")
            wait_streams(served, 1)
            upstream.replace(document("third"))
            chromium.wait_for("document.getElementById('third').textContent === 'true'")
            chromium.run("root.unmount()")
            wait_streams(served, 0)
