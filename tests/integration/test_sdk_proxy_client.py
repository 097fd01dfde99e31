"""The JavaScript SDK for browsers, npm `unleash-proxy-client`, against our proxy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from support import fake_upstream, processes
from support.fake_upstream import Reply

SCRIPT = """
const { UnleashClient, InMemoryStorageProvider } = require(process.argv[2]);
const tell = (event, content) => console.log(JSON.stringify({ event, ...content }));
const watched = async (url, options) => {
  const answer = await fetch(url, options);
  tell("fetched", { method: options.method, path: new URL(url).pathname, status: answer.status });
  return answer;
};
const [url, clientKey, usePOSTrequests] = process.argv.slice(3);
const client = new UnleashClient({
  url, clientKey, appName: "some-page", refreshInterval: 0.3, metricsInterval: 0.5, fetch: watched,
  context: { userId: "7", properties: { region: "eu" } }, storageProvider: new InMemoryStorageProvider(),
  usePOSTrequests: usePOSTrequests === "yes",
});
const state = () => ({ toggles: client.getAllToggles() });
client.on("error", (error) => tell("error", { error: String(error) }));
client.on("update", () => tell("update", state()));
client.on("ready", () => {
  const seen = ["on", "on", "on", "for-7", "for-8", "unknown"].map((name) => client.isEnabled(name));
  tell("ready", { ...state(), seen, variant: client.getVariant("with-variant") });
});
client.start();
"""
FOR = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]


def toggle(name: str, **more: Any) -> dict[str, Any]:
    """Return a toggle that is on for everyone unless it says more."""
    return {"name": name, "enabled": True, "strategies": [{"name": "default"}], "impressionData": False, **more}


def document(*more: dict[str, Any]) -> dict[str, Any]:
    """Return a document with toggles for everyone, for one user, for another, with a variant, and `more`."""
    payload = {"type": "json", "value": '{"colour": "grün"}'}
    features = [
        toggle("on"),
        toggle("for-7", strategies=[{"name": "default", "constraints": FOR}]),
        toggle("for-8", strategies=[{"name": "default", "constraints": [{**FOR[0], "values": ["8"]}]}]),
        toggle("with-variant", variants=[{"name": "green", "weight": 1000, "payload": payload}]),
    ]
    return {"version": 2, "features": [*features, *more]}


@dataclass(frozen=True)
class Page:
    """A page with the SDK, the proxy, and the upstream server."""

    program: processes.Program
    upstream: fake_upstream.FakeUpstream
    path: str

    def statuses(self, method: str, path: str) -> list[int]:
        """Return the statuses of the page's own requests so far."""
        seen = self.program.said("fetched")
        return [each["status"] for each in seen if (each["method"], each["path"]) == (method, path)]


@contextmanager
def page(*, post: bool, path: str = "/proxy") -> Iterator[Page]:
    """Run the SDK against our proxy; it has its toggles when the block begins."""
    with fake_upstream.fake_upstream(document()) as upstream:
        intervals = {"UNLEASH_FETCH_INTERVAL": "50", "UNLEASH_METRICS_INTERVAL": "200"}
        with processes.our_proxy(upstream.url, **intervals) as proxy:
            arguments = [proxy.url.removesuffix("/proxy") + path, processes.KEY, "yes" if post else "no"]
            with processes.node_script("page", SCRIPT, "unleash-proxy-client", *arguments) as program:
                program.wait(lambda: program.said("ready"), "ready")
                yield Page(program, upstream, path)


WAYS = [(path, post) for path in ("/proxy", "/api/frontend", "/api/proxy") for post in (False, True)]


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: f"{'POST' if way[1] else 'GET'} {way[0]}")
def sdk(request: pytest.FixtureRequest) -> Iterator[Page]:
    """Give the SDK at work, asking in each of its two ways."""
    path, post = request.param
    with page(post=post, path=path) as found:
        yield found


def test_toggles_arrive(sdk: Page) -> None:
    """The SDK starts, and has exactly the toggles that are on for its user."""
    (ready,) = sdk.program.said("ready")
    assert [toggle["name"] for toggle in ready["toggles"]] == ["on", "for-7", "with-variant"]
    assert ready["seen"] == [True, True, True, True, False, False]


def test_variants_arrive(sdk: Page) -> None:
    """A variant arrives with its payload, the payload's value as text."""
    (ready,) = sdk.program.said("ready")
    variant = {name: ready["variant"][name] for name in ("name", "enabled", "payload")}
    assert variant == {"name": "green", "enabled": True, "payload": {"type": "json", "value": '{"colour": "grün"}'}}


def test_usage_arrives_upstream(sdk: Page) -> None:
    """The page's counts arrive at the upstream server, in the proxy's own name; unknown names do not."""
    wanted = {
        "on": {"yes": 3, "no": 0, "variants": {}},
        "for-7": {"yes": 1, "no": 0, "variants": {}},
        "for-8": {"yes": 0, "no": 1, "variants": {}},
        "with-variant": {"yes": 1, "no": 0, "variants": {"green": 1}},
    }
    sdk.upstream.wait(lambda: usage(sdk) == wanted)
    (sent, *_) = sdk.upstream.received(fake_upstream.METRICS)
    assert sent.json()["appName"] == "proxy-under-test"


def usage(sdk: Page) -> dict[str, Any]:
    """Return the sum of the upstream server's counts so far."""
    total: dict[str, Any] = {}
    for sent in sdk.upstream.received(fake_upstream.METRICS):
        for name, counts in sent.json()["bucket"]["toggles"].items():
            known = total.setdefault(name, {"yes": 0, "no": 0, "variants": {}})
            known["yes"] += counts["yes"]
            known["no"] += counts["no"]
            for variant, number in counts.get("variants", {}).items():
                known["variants"][variant] = known["variants"].get(variant, 0) + number
    return total


def test_a_change_arrives_within_the_refresh_interval(sdk: Page) -> None:
    """A toggle switched on upstream reaches the page with one of its next refreshes."""
    sdk.upstream.replace(document(toggle("new")))
    sdk.program.wait(lambda: "new" in latest(sdk), "updated", 10)
    sdk.upstream.replace(document())
    sdk.program.wait(lambda: "new" not in latest(sdk), "updated", 10)


def latest(sdk: Page) -> list[str]:
    """Return the names in the SDK's last update."""
    updates = sdk.program.said("update")
    return [toggle["name"] for toggle in updates[-1]["toggles"]] if updates else []


def test_nothing_new_is_a_304(sdk: Page) -> None:
    """A refresh that brings nothing new is answered with 304 and no body. At /proxy, a POST is always answered in full."""
    post = sdk.statuses("POST", sdk.path)
    method = "POST" if post else "GET"
    if post and sdk.path == "/proxy":
        sdk.program.wait(lambda: len(sdk.statuses("POST", sdk.path)) > len(post), "refreshed")
        assert set(sdk.statuses("POST", sdk.path)) == {200}
    else:
        before = sdk.statuses(method, sdk.path).count(304)
        sdk.program.wait(lambda: sdk.statuses(method, sdk.path).count(304) > before, "told that nothing is new")


def test_no_flag_is_lost_while_the_upstream_is_away(sdk: Page) -> None:
    """While the upstream fails and refuses, the page has its flags. Afterwards a change arrives."""
    updates = len(sdk.program.said("update"))
    for reply in (Reply(503), Reply(500, b"<html>"), Reply(401), Reply(403)):
        sdk.upstream.replies[fake_upstream.FEATURES] = reply
        sdk.upstream.wait(lambda status=reply.status: sdk.upstream.received(fake_upstream.FEATURES, status))  # type: ignore[misc]
    asked = len(sdk.program.said("fetched"))
    sdk.program.wait(lambda: len(sdk.program.said("fetched")) > asked + 2, "refreshed")
    sdk.upstream.replies.clear()
    sdk.upstream.replace(document(toggle("later")))
    sdk.program.wait(lambda: "later" in latest(sdk), "updated", 30)
    sdk.upstream.replace(document())
    sdk.program.wait(lambda: "later" not in latest(sdk), "updated", 10)
    for update in sdk.program.said("update")[updates:]:
        assert {"on", "for-7", "with-variant"} <= {each["name"] for each in update["toggles"]}
    assert {each["status"] for each in sdk.program.said("fetched")} <= {200, 304}


def test_the_sdk_met_no_error(sdk: Page) -> None:
    """Nothing the proxy sent made the SDK report an error."""
    assert sdk.program.said("error") == []
