"""OpenFeature's own providers, unmodified, against the proxy and the flag server (decision 0035; decision 0036).

npm `@openfeature/ofrep-web-provider` in a page of Chromium on another origin, npm `@openfeature/ofrep-provider`, and PyPI
`openfeature-provider-ofrep`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from support import peers, processes
from support.browser import Browser, browser
from support.event_streams import count, wait_streams
from support.fake_upstream import METRICS, FakeUpstream
from support.flagservers import BACKEND_SECRET, our_flag_server
from support.http_servers import serving

EU = {"targetingKey": "7", "region": "eu"}
US = {"targetingKey": "7", "region": "us"}
MISSING = "FLAG_NOT_FOUND"
UNPARSED = "PARSE_ERROR"


def flag(name: str, *, enabled: bool = True, payload: dict[str, str] | None = None, **strategy: Any) -> dict[str, Any]:
    """Return a feature with one strategy, and with one variant if there is a payload."""
    variants = [] if payload is None else [{"name": "only", "weight": 1000, "payload": payload}]
    return {"name": name, "enabled": enabled, "strategies": [{"name": "default", **strategy}], "variants": variants}


IN_EU = {"contextName": "region", "operator": "IN", "values": ["eu"]}
HALF = {"name": "flexibleRollout", "parameters": {"rollout": "1", "stickiness": "userId", "groupId": "none"}}
FEATURES = [
    flag("plain"),
    flag("off", enabled=False),
    flag("in-eu", constraints=[IN_EU]),
    {**flag("half"), "strategies": [HALF]},
    flag("a text", payload={"type": "string", "value": "hello"}),
    flag("a/number", payload={"type": "number", "value": "42"}),
    flag("fraction", payload={"type": "number", "value": "42.5"}),
    flag("object", payload={"type": "json", "value": '{"colour": ["red", 2.5]}'}),
    flag("no-number", payload={"type": "number", "value": "many"}),
    flag("text-off", enabled=False, payload={"type": "string", "value": "hello"}),
]
DOCUMENT = {"version": 2, "features": FEATURES}

ROWS: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("plain", "boolean", False, {"value": True, "reason": "STATIC", "variant": "enabled"}),
    ("off", "boolean", True, {"value": False, "reason": "DISABLED", "variant": "disabled"}),
    ("in-eu", "boolean", False, {"value": True, "reason": "TARGETING_MATCH", "variant": "enabled"}),
    ("half", "boolean", True, {"value": False, "reason": "SPLIT", "variant": "disabled"}),
    ("a text", "string", "code", {"value": "hello", "reason": "STATIC", "variant": "only"}),
    ("a text:enabled", "boolean", False, {"value": True, "reason": "STATIC", "variant": "enabled"}),
    ("a/number", "number", 0, {"value": 42, "reason": "STATIC", "variant": "only"}),
    ("fraction", "number", 0.0, {"value": 42.5, "reason": "STATIC", "variant": "only"}),
    ("object", "object", {}, {"value": {"colour": ["red", 2.5]}, "reason": "STATIC", "variant": "only"}),
    ("no-number", "number", 7, {"value": 7, "errorCode": UNPARSED}),
    ("text-off", "string", "code", {"value": "code"}),
    ("text-off:enabled", "boolean", True, {"value": False, "reason": "DISABLED", "variant": "disabled"}),
    ("unknown", "boolean", True, {"value": True, "errorCode": MISSING}),
]
"""Key, type and default in the code, and what a provider must say in the EU."""

LOOK = """
const look = async (client, rows, context) => {
  const told = {};
  for (const [key, type, fallback] of rows) {
    const name = `get${type[0].toUpperCase()}${type.slice(1)}Details`;
    const { value, reason, variant, errorCode } = await client[name](key, fallback, ...context);
    told[key] = { value, reason, variant, errorCode };
  }
  return told;
};
"""
NODE = (
    LOOK
    + """
const load = require("node:module").createRequire(process.argv[2] + "/package.json");
const { OpenFeature } = load("@openfeature/server-sdk");
const { OFREPProvider } = load("@openfeature/ofrep-provider");
const { url, key, rows, context } = JSON.parse(process.argv[3]);
(async () => {
  const provider = new OFREPProvider({ baseUrl: url, headers: [["X-API-Key", key]] });
  await OpenFeature.setProviderAndWait(provider);
  console.log(JSON.stringify(await look(OpenFeature.getClient(), rows, [context])));
})();
"""
)
PYTHON = """
import json, sys
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
plan = json.loads(sys.argv[1])
api.set_provider(OFREPProvider(plan["url"], headers_factory=lambda: {"Authorization": "Bearer " + plan["key"]}))
client, context, told = api.get_client(), dict(plan["context"]), {}
context = EvaluationContext(context.pop("targetingKey"), context)
for key, type, default in plan["rows"]:
    kind = {"number": "float" if isinstance(default, float) else "integer"}.get(type, type)
    found = getattr(client, f"get_{kind}_details")(key, default, context)
    told[key] = {
        "value": found.value, "reason": found.reason, "variant": found.variant,
        "errorCode": found.error_code and found.error_code.value,
    }
print(json.dumps(told))
"""
Ask = Callable[[str, str], dict[str, Any]]


def plan(url: str, key: str) -> str:
    """Return what a script needs to ask for every row."""
    return json.dumps({"url": url, "key": key, "rows": [row[:3] for row in ROWS], "context": EU})


def ask_node(url: str, key: str) -> dict[str, Any]:
    """Return what npm `@openfeature/ofrep-provider` says."""
    with processes.node_script("ofrep", NODE, "@openfeature/ofrep-provider", plan(url, key)) as program:
        assert program.process.wait(60) == 0, program.output()
        return dict(json.loads(program.output()))


def ask_python(url: str, key: str) -> dict[str, Any]:
    """Return what PyPI `openfeature-provider-ofrep` says."""
    command = [sys.executable, "-c", PYTHON, plan(url, key)]
    with processes.scratch() as folder, processes.running("ofrep", command, env={}, folder=folder) as program:
        assert program.process.wait(60) == 0, program.output()
        return dict(json.loads(program.output().splitlines()[-1]))


@contextmanager
def proxy(upstream: FakeUpstream, **more: str) -> Iterator[processes.Proxy]:
    """Run our proxy."""
    options = {"FLAGSVC_OFREP": "true", "FLAGSVC_FETCH_INTERVAL": "1000", "FLAGSVC_METRICS_INTERVAL": "1000"}
    with processes.our_proxy(upstream.url, **options, **more) as found:
        yield found


def root(proxy: processes.Proxy) -> str:
    """Return the address before the proxy's paths."""
    return proxy.url.removesuffix("/proxy")


def differences(told: dict[str, Any]) -> dict[str, Any]:
    """Return what a provider said otherwise than its row, by key."""
    wrong = {}
    for key, _, _, expected in ROWS:
        said = {name: told[key].get(name) for name in expected}
        if said != expected:
            wrong[key] = told[key]
    return wrong


@pytest.mark.parametrize("ask", [ask_node, ask_python])
def test_providers_for_services(upstream: FakeUpstream, ask: Ask) -> None:
    """Each flag has its value, reason and variant for the provider, under any key, and each evaluation is counted upstream."""
    with proxy(upstream) as served:
        url = root(served)
        assert differences(ask(url, processes.KEY)) == {}
        upstream.wait(lambda: counts(upstream, "plain"))
        assert counts(upstream, "plain") == [(1, 0)]
        refused = ask(url, "wrong-key")
    assert {told["errorCode"] for told in refused.values()} == {"GENERAL"}
    assert {key: told["value"] for key, told in refused.items()} == {key: default for key, _, default, _ in ROWS}


def counts(upstream: FakeUpstream, name: str) -> list[tuple[int, int]]:
    """Return how often a flag was on and off in each report that has it."""
    reports = [sent.json()["bucket"]["toggles"] for sent in upstream.received(METRICS, 202) if sent.json().get("bucket")]
    return [(each[name]["yes"], each[name]["no"]) for each in reports if name in each]


STRATEGY = {
    "environment": "development",
    "name": "flexibleRollout",
    "parameters": {"rollout": "100", "stickiness": "default", "groupId": "g"},
}
GIVEN: dict[str, Any] = {
    "features": [{"name": "plain", "enabled": ["development"]}, {"name": "off", "enabled": []}],
    "strategies": [{"feature": name, **STRATEGY} for name in ("plain", "off")],
}


@pytest.mark.parametrize("ask", [ask_node, ask_python])
def test_the_flag_server(ask: Ask) -> None:
    """A service asks the flag server with its backend token, and the evaluations are in the usage of the flags."""
    with our_flag_server(given=GIVEN, FLAGSVC_OFREP="true") as server:
        told = ask(server.root, BACKEND_SECRET)
        assert {name: told[name]["value"] for name in ("plain", "off")} == {"plain": True, "off": False}
        assert told["plain"]["variant"] == "enabled" and told["unknown"]["errorCode"] == MISSING

        def used(name: str) -> tuple[int, int]:
            data = server.admin(f"/client-metrics/features/{name}/raw")["data"]
            assert {each["appName"] for each in data} <= {"ofrep"}
            return sum(each["yes"] for each in data), sum(each["no"] for each in data)

        server.program.wait(lambda: any(used("plain")) and any(used("off")), "storing the counts")
        assert (used("plain"), used("off")) == ((1, 0), (0, 1))


MODULES = {
    "@openfeature/core": "@openfeature/core/dist/esm/index.js",
    "@openfeature/web-sdk": "@openfeature/web-sdk/dist/esm/index.js",
    "@openfeature/ofrep-core": "@openfeature/ofrep-web-provider/node_modules/@openfeature/ofrep-core/index.esm.js",
    "@openfeature/ofrep-web-provider": "@openfeature/ofrep-web-provider/index.esm.js",
}
"""Name of a module → its file below the folder of the packages."""
PAGE = (
    """<!doctype html><meta charset="utf-8"><script type="importmap">IMPORTS</script><script type="module">
import { OpenFeature } from "@openfeature/web-sdk";
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
"""
    + LOOK
    + """
const { url, key, rows, context, poll } = PLAN;
const wait = window.setTimeout.bind(window);
window.setTimeout = (act, ms, ...more) => wait(act, ms === 120000 ? 1000 : ms, ...more); // how long a hidden page keeps its stream
const provider = (key) => new OFREPWebProvider({
  baseUrl: url, pollInterval: poll, headers: [["Authorization", `Bearer ${key}`]], cacheMode: "disabled",
});
await OpenFeature.setContext(context);
await OpenFeature.setProviderAndWait(provider(key));
await OpenFeature.setProviderAndWait("refused", provider("wrong-key")).catch((error) => { window.refusal = String(error); });
window.client = OpenFeature.getClient();
window.look = () => look(client, rows, []);
window.move = (context) => OpenFeature.setContext(context);
window.told = await look(client, rows, []);
</script>"""
)


@contextmanager
def page(url: str, poll_ms: int = 0) -> Iterator[Browser]:
    """Open a page with the provider for browsers, on another origin than `url`. With 0 it does not poll."""
    folder = peers.package("@openfeature/web-sdk").parents[1]
    imports = json.dumps({"imports": {name: f"/{path}" for name, path in MODULES.items()}})
    html = PAGE.replace("IMPORTS", imports).replace("PLAN", json.dumps(json.loads(plan(url, processes.KEY)) | {"poll": poll_ms}))
    files = {f"/{path}": ("text/javascript", (folder / path).read_bytes()) for path in MODULES.values()}
    with serving({"/": ("text/html", html.encode()), **files}) as address, browser() as chromium:
        chromium.go(address + "/")
        yield chromium


def is_on(chromium: Browser, name: str, expected: bool) -> None:
    """Wait until the provider says of a flag that it is on, or off."""
    chromium.wait_for(f"client.getBooleanValue('{name}', {json.dumps(not expected)}) === {json.dumps(expected)}")


@pytest.mark.parametrize("streams", [pytest.param(0, marks=pytest.mark.long), 10])
def test_the_provider_for_browsers(upstream: FakeUpstream, streams: int) -> None:
    """Each flag has its value for the provider on another origin; another context and a change are seen, a wrong key is told.

    With streams the provider does not poll. Without any it polls.
    """
    with proxy(upstream, FLAGSVC_MAX_STREAMS=str(streams)) as served, page(root(served), 0 if streams else 300) as chromium:
        told = chromium.wait_for("window.told")
        assert differences(told) == {}
        assert told["text-off"]["reason"] == "DISABLED" and told["text-off"].get("errorCode") is None
        assert "ProviderFatalError" in chromium.run("refusal")
        chromium.run(f"move({json.dumps(US)}).then(() => look()).then((told) => {{ window.moved = told; }}); true")
        assert chromium.wait_for("window.moved")["in-eu"]["value"] is False
        assert count(served) == min(1, streams)
        upstream.replace({"version": 2, "features": [flag("plain", enabled=False)]})
        is_on(chromium, "plain", False)
        assert chromium.run("client.getBooleanValue('off', true)") is True, "a flag that is gone is the code's default"


STREAM = "/ofrep/v1/stream?"


def tickets(chromium: Browser) -> list[str]:
    """Return the ticket of each stream that the page has asked for."""
    return [parse_qs(urlsplit(each).query)["ticket"][0] for each in chromium.requested() if STREAM in each]


def statuses(chromium: Browser, path: str) -> list[int]:
    """Return the statuses of the answers from a path so far."""
    answers = [each["response"] for each in chromium.told("Network.responseReceived")]
    return [each["status"] for each in answers if path in each["url"] and each["status"] != 204]


def test_the_stream_of_the_provider_for_browsers(upstream: FakeUpstream) -> None:
    """It survives a restart of the proxy with a change meanwhile, and a hidden page. The ticket and the key are in no log."""
    port = str(processes.free_port())
    with ExitStack() as stack:
        served = stack.enter_context(proxy(upstream, PORT=port, FLAGSVC_ACCESS_LOG="true"))
        chromium = stack.enter_context(page(root(served)))
        assert differences(chromium.wait_for("window.told")) == {}
        wait_streams(served, 1)
        served.program.process.kill()
        served.program.process.wait()
        upstream.replace({"version": 2, "features": [flag("plain", enabled=False)]})
        again = stack.enter_context(proxy(upstream, PORT=port, FLAGSVC_ACCESS_LOG="true"))
        is_on(chromium, "plain", False)
        chromium.open()  # hides the page
        wait_streams(again, 0)
        upstream.replace({"version": 2, "features": [flag("plain"), flag("new")]})
        chromium.take(0)
        is_on(chromium, "new", True)
        wait_streams(again, 1)
        chromium.open()
        chromium.take(0)
        chromium.wait(lambda: 304 in statuses(chromium, "/flags"), "a 304 for a page that is shown again")
        used = tickets(chromium)
        assert used and not [each for each in chromium.requested() if processes.KEY in each]
        written = served.program.output() + again.program.output() + again.get("/internal-backstage/prometheus").text
        assert "/ofrep/v1/stream" in written and not [each for each in (*used, processes.KEY) if each in written]


LATER = """
import pathlib, time
now, mark = time.time, pathlib.Path(__file__).with_name("later")
time.time = lambda: now() + 200_000 * mark.exists()
strategies = []
"""
"""Custom code of the proxy: once there is a file with this name, it is more than two days later for the proxy."""


@pytest.mark.long
def test_a_ticket_that_has_expired(upstream: FakeUpstream, tmp_path: Path) -> None:
    """The stream of a page ends with its ticket, and the ticket opens no other. The provider asks again by itself, gets another
    ticket, and hears of changes."""
    (tmp_path / "code.py").write_text(LATER)
    code = {"FLAGSVC_CUSTOM_STRATEGIES_FILE": str(tmp_path / "code.py")}
    with proxy(upstream, **code) as served, page(root(served)) as chromium:
        chromium.wait_for("window.told")
        wait_streams(served, 1)
        (tmp_path / "later").touch()
        chromium.wait(lambda: 401 in statuses(chromium, STREAM), "the refusal of the ticket")
        wait_streams(served, 2, "opened_total")
        upstream.replace({"version": 2, "features": [flag("plain", enabled=False)]})
        is_on(chromium, "plain", False)
        first, *_, last = tickets(chromium)
        assert first != last and count(served) == 1
