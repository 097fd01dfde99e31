"""Server-side SDKs that read the configuration from our proxy with a server-side token: npm and PyPI `unleash-client`.

They ask at `/api/client` and at `/proxy/client`. Below `/api`, what they report goes upstream under their own names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support import fake_upstream, processes
from support.fake_upstream import Reply
from support.waiting import wait_until

NODE = """
const { initialize } = require(process.argv[2]);
const tell = (event, content) => console.log(JSON.stringify({ event, ...content }));
const [url, token, asked] = process.argv.slice(3);
const client = initialize({
  url, appName: "some-service", customHeaders: { Authorization: token }, refreshInterval: 200, metricsInterval: 500,
});
client.on("error", (error) => tell("error", { error: String(error) }));
const one = ([name, context]) => [client.isEnabled(name, context), client.getVariant(name, context).name];
const answer = () => JSON.parse(asked).map(one);
client.on("synchronized", () => tell("ready", { answers: answer() }));
client.on("changed", () => tell("changed", { answers: answer() }));
setInterval(() => {}, 1000);  // the client's own timers do not keep node alive
"""
PYTHON = """
import json, sys, threading, time
from UnleashClient import UnleashClient
url, token, asked = sys.argv[1:]
def tell(event, **content):
    print(json.dumps({"event": event, **content}), flush=True)
client = UnleashClient(
    url=url, app_name="some-service", custom_headers={"Authorization": token}, refresh_interval=1, metrics_interval=1,
    cache_directory=".",
)
client.initialize_client()
def answer():
    return [[client.is_enabled(name, context), client.get_variant(name, context)["name"]] for name, context in json.loads(asked)]
tell("ready", answers=answer())
seen = answer()
while True:
    if answer() != seen:
        seen = answer()
        tell("changed", answers=seen)
    time.sleep(0.05)
"""
SEGMENTS = [{"id": 7, "name": "europe", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]}]
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("on", {}),
    ("in-segment", {"properties": {"region": "eu"}}),
    ("in-segment", {"properties": {"region": "us"}}),
    ("with-variant", {"userId": "7"}),
    ("new", {}),
]
BEFORE = [[True, "disabled"], [True, "disabled"], [False, "disabled"], [True, "green"], [False, "disabled"]]
AFTER = [*BEFORE[:-1], [True, "disabled"]]


def document(*names: str) -> dict[str, Any]:
    """Return a document with a segment, a variant, and toggles of these names."""
    base = {"enabled": True, "strategies": [{"name": "default"}], "impressionData": False}
    features = [
        {**base, "name": "on"},
        {**base, "name": "in-segment", "strategies": [{"name": "default", "segments": [7]}]},
        {**base, "name": "with-variant", "variants": [{"name": "green", "weight": 1000}]},
        *({**base, "name": name} for name in names),
    ]
    return {"version": 2, "features": features, "segments": SEGMENTS}


@pytest.fixture
def upstream() -> Iterator[fake_upstream.FakeUpstream]:
    """Give an upstream server."""
    with fake_upstream.fake_upstream(document()) as server:
        yield server


@pytest.fixture
def proxy(upstream: fake_upstream.FakeUpstream) -> Iterator[processes.Proxy]:
    """Give our proxy on it."""
    with processes.our_proxy(upstream.url, UNLEASH_FETCH_INTERVAL="50", UNLEASH_METRICS_INTERVAL="200") as found:
        yield found


def use(program: processes.Program, upstream: fake_upstream.FakeUpstream) -> None:
    """Watch an SDK evaluate the proxy's document, and follow a change and its reversal."""
    program.wait(lambda: program.said("ready"), "ready")
    assert program.said("ready")[0]["answers"] == BEFORE
    upstream.replace(document("new"))
    program.wait(lambda: any(each["answers"] == AFTER for each in program.said("changed")), "told of a change", 15)
    upstream.replace(document())
    program.wait(lambda: program.said("changed")[-1]["answers"] == BEFORE, "told of the change back", 15)
    assert program.said("error") == []


def counted(upstream: fake_upstream.FakeUpstream, name: str) -> Callable[[], bool]:
    """Return a condition: usage of the toggle `name` has come to the upstream server."""
    return lambda: any(name in sent.json()["bucket"]["toggles"] for sent in upstream.received(fake_upstream.METRICS))


URLS = pytest.mark.parametrize("path", ["/proxy", "/api"])
"""The paths that an SDK adds `/client/features` to."""


def survive(program: processes.Program, upstream: fake_upstream.FakeUpstream) -> None:
    """Watch an SDK keep its flags while the upstream fails, refuses and is away, and follow a change after that."""
    for reply in (Reply(503), Reply(500, b"<html>"), Reply(401)):
        upstream.replies[fake_upstream.FEATURES] = reply
        upstream.wait(lambda status=reply.status: upstream.received(fake_upstream.FEATURES, status))  # type: ignore[misc]
    seen = len(program.said("changed"))
    upstream.replies.clear()
    upstream.replace(document("new"))
    program.wait(
        lambda: any(each["answers"] == AFTER for each in program.said("changed")[seen:]), "told of a change", 60
    )
    assert len(program.said("changed")) == seen + 1, "no flag was lost in between"
    assert program.said("error") == []


def check_names(upstream: fake_upstream.FakeUpstream, path: str) -> None:
    """Check that usage came under the SDK's name, and below `/api` its registration too; at `/proxy` all is the proxy's."""
    name = "some-service" if path == "/api" else "proxy-under-test"
    names = {
        sent.json()["appName"]
        for sent in upstream.received(fake_upstream.METRICS)
        if "in-segment" in sent.json()["bucket"]["toggles"]
    }
    assert names == {name}
    registered = {"proxy-under-test", name}
    upstream.wait(lambda: {sent.json()["appName"] for sent in upstream.received(fake_upstream.REGISTER)} == registered)


@URLS
def test_node_sdk(proxy: processes.Proxy, upstream: fake_upstream.FakeUpstream, path: str) -> None:
    """npm `unleash-client` evaluates the proxy's configuration, segments included, follows changes and reports usage."""
    arguments = [proxy.url.removesuffix("/proxy") + path, processes.SERVER_SIDE_TOKEN, json.dumps(ASKED)]
    with processes.node_script("service", NODE, "unleash-client", *arguments) as program:
        use(program, upstream)
        upstream.wait(counted(upstream, "in-segment"))
        check_names(upstream, path)
        survive(program, upstream)


@URLS
def test_python_sdk(proxy: processes.Proxy, upstream: fake_upstream.FakeUpstream, path: str) -> None:
    """PyPI `UnleashClient` does the same."""
    command = [
        sys.executable,
        "-c",
        PYTHON,
        proxy.url.removesuffix("/proxy") + path,
        processes.SERVER_SIDE_TOKEN,
        json.dumps(ASKED),
    ]
    with processes.scratch() as folder, processes.running("service", command, env={}, folder=folder) as program:
        use(program, upstream)
        upstream.wait(counted(upstream, "in-segment"))
        check_names(upstream, path)
        survive(program, upstream)


@pytest.mark.parametrize("program", [processes.our_proxy, processes.reference_proxy], ids=["ours", "the reference"])
def test_a_proxy_below_ours(proxy: processes.Proxy, upstream: fake_upstream.FakeUpstream, program: Any) -> None:
    """Another proxy reads the document of ours, follows a change, and reports usage under its own name."""
    options = {
        "UNLEASH_API_TOKEN": processes.SERVER_SIDE_TOKEN,
        "UNLEASH_APP_NAME": "below",
        "UNLEASH_FETCH_INTERVAL": "50" if program is processes.our_proxy else "1000",
        "UNLEASH_METRICS_INTERVAL": "200" if program is processes.our_proxy else "1000",
    }
    with program(proxy.url.removesuffix("/proxy") + "/api", **options) as below:
        assert toggles(below) == ["on", "with-variant"]
        upstream.replace(document("new"))
        wait_until(lambda: "new" in toggles(below))
        asked = processes.ask(
            below.url, method="POST", headers={"Authorization": processes.KEY}, body={"toggles": ["new"]}
        )
        assert asked.status == 200
        upstream.wait(counted(upstream, "new"))
        reports = [sent.json() for sent in upstream.received(fake_upstream.METRICS)]
        assert {report["appName"] for report in reports if "new" in report["bucket"]["toggles"]} == {"below"}


def toggles(proxy: processes.Proxy) -> list[str]:
    """Return the names of the toggles that are on for a user at a proxy."""
    answer = processes.ask(f"{proxy.url}?userId=7", headers={"Authorization": processes.KEY})
    return [toggle["name"] for toggle in json.loads(answer.body)["toggles"]]


@pytest.mark.parametrize("token", [processes.KEY, processes.UPSTREAM_TOKEN, ""])
def test_other_keys_do_not_open_the_configuration(proxy: processes.Proxy, token: str) -> None:
    """The configuration is for server-side tokens alone: neither a client key nor the proxy's own token will do."""
    assert processes.ask(f"{proxy.url}/client/features", headers={"Authorization": token}).status == 401
