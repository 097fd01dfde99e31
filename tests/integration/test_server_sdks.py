"""Unchanged real clients with our flag server: they register, evaluate, follow a change, and their counts appear."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import update

from flagsvc.core.clock import SystemClock
from flagsvc.server.store.schema import feature_environments
from flagsvc.server.store.store import open_store
from flagsvc.testing import RecordingLog
from support import processes
from support.flagservers import BACKEND_SECRET, FRONTEND_SECRET, OurFlagServer, our_flag_server

NODE = """
const { initialize } = require(process.argv[2]);
const tell = (event, content) => console.log(JSON.stringify({ event, ...content }));
const [url, token, asked] = process.argv.slice(3);
const client = initialize({
  url, appName: "node-app", customHeaders: { Authorization: token }, refreshInterval: 200, metricsInterval: 500,
});
client.on("error", (error) => tell("error", { error: String(error) }));
const one = ([name, context]) => [client.isEnabled(name, context), client.getVariant(name, context).name];
const answer = () => JSON.parse(asked).map(one);
client.on("synchronized", () => tell("answers", { answers: answer() }));
client.on("changed", () => tell("answers", { answers: answer() }));
process.stdin.resume();  // the client's own timers do not keep node alive; the end of standard input ends it
"""
PYTHON = """
import json, select, sys
from UnleashClient import UnleashClient
url, token, asked = sys.argv[1:]
client = UnleashClient(
    url=url, app_name="python-app", custom_headers={"Authorization": token}, refresh_interval=1, metrics_interval=1,
    cache_directory=".",
)
client.initialize_client()
seen = None
while not select.select([sys.stdin], [], [], 0.05)[0]:  # the end of standard input is the end of the test
    found = [[client.is_enabled(name, context), client.get_variant(name, context)["name"]] for name, context in json.loads(asked)]
    if found != seen:
        seen = found
        print(json.dumps({"event": "answers", "answers": found}), flush=True)
"""
PAGE = """
const { UnleashClient, InMemoryStorageProvider } = require(process.argv[2]);
const tell = (event, content) => console.log(JSON.stringify({ event, ...content }));
const [url, clientKey, post, appName] = process.argv.slice(3);
const client = new UnleashClient({
  url, clientKey, appName, refreshInterval: 0.2, metricsInterval: 0.3, metricsIntervalInitial: 0.3,
  usePOSTrequests: post === "POST", storageProvider: new InMemoryStorageProvider(),
  context: { userId: "7", properties: { region: "eu" } },
});
const answer = () => {
  client.isEnabled("with-variant");
  const toggles = client.getAllToggles().map(({ name }) => name).sort();
  tell("answers", { toggles, variant: client.getVariant("with-variant").name });
};
client.on("error", (error) => tell("error", { error: String(error) }));
client.on("ready", answer);
client.on("update", answer);
client.start();
process.stdin.resume();
"""
EU = {"contextName": "region", "operator": "IN", "values": ["eu"]}
VARIANT = {"name": "green", "weight": 1000, "weightType": "variable", "stickiness": "default"}
BASE = {"environment": "development", "name": "flexibleRollout"}
ALL_USERS = {"rollout": "100", "stickiness": "default", "groupId": "group"}
GIVEN: dict[str, Any] = {
    "segments": [{"name": "europe", "constraints": [EU]}],
    "features": [
        {"name": "on", "enabled": ["development"]},
        {"name": "in-segment", "enabled": ["development"]},
        {"name": "with-variant", "enabled": ["development"]},
        {"name": "changes", "enabled": []},
        {"name": "elsewhere", "enabled": ["production"]},
    ],
    "strategies": [
        BASE | {"feature": "on", "parameters": ALL_USERS},
        BASE | {"feature": "in-segment", "parameters": ALL_USERS, "segments": ["europe"]},
        BASE | {"feature": "with-variant", "parameters": ALL_USERS, "variants": [VARIANT]},
        BASE | {"feature": "changes", "parameters": ALL_USERS},
    ],
}
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("on", {}),
    ("in-segment", {"properties": {"region": "eu"}}),
    ("in-segment", {"properties": {"region": "us"}}),
    ("with-variant", {"userId": "7"}),
    ("elsewhere", {}),
    ("changes", {}),
]
BEFORE = [[True, "disabled"], [True, "disabled"], [False, "disabled"], [True, "green"], [False, "disabled"], [False, "disabled"]]
AFTER = [*BEFORE[:-1], [True, "disabled"]]


@dataclass(frozen=True)
class Scene:
    """A running flag server of ours and its database."""

    server: OurFlagServer
    database: str

    def switch(self, name: str, *, on: bool) -> None:
        """Switch a flag in development, as another server on the same database would."""
        with closing(open_store(self.database, SystemClock(), RecordingLog())) as store, store.writing(None) as tx:
            state = feature_environments
            here = (state.c.feature == name, state.c.environment == "development")
            tx.db.execute(update(state).where(*here).values(enabled=on))

    def counted(self, app: str, name: str, **more: int) -> Callable[[], bool]:
        """Return a condition: an application's usage of a flag has come, with at least these counts."""

        def there() -> bool:
            rows = self.server.admin(f"/client-metrics/features/{name}/raw")["data"]
            found = [row for row in rows if row["appName"] == app and row["environment"] == "development" and row["yes"]]
            return any(all((row["variants"] | row).get(key, 0) >= least for key, least in more.items()) for row in found)

        return there

    def instances(self, app: str) -> list[dict[str, Any]]:
        """Return the instances of an application that registered."""
        rows = self.server.admin("/metrics/applications")["applications"]
        if app not in [row["appName"] for row in rows]:
            return []
        found: list[dict[str, Any]] = self.server.admin(f"/metrics/applications/{app}")["instances"]
        return found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Give a server with flags. Each test leaves the flags as they were."""
    database = str(tmp_path_factory.mktemp("sdks") / "flags.db")
    with our_flag_server(database=database, given=GIVEN) as server:
        yield Scene(server, database)


def use(program: processes.Program, scene: Scene) -> None:
    """Watch an SDK evaluate the server's document, and follow a change and its reversal."""

    def answers() -> list[Any]:
        return [each["answers"] for each in program.said("answers")]

    program.wait(lambda: answers()[-1:] == [BEFORE], "ready")
    scene.switch("changes", on=True)
    program.wait(lambda: answers()[-1] == AFTER, "told of a change", 15)
    scene.switch("changes", on=False)
    program.wait(lambda: answers()[-1] == BEFORE, "told of the change back", 15)
    assert program.said("error") == []


def test_node_sdk(scene: Scene) -> None:
    """npm `unleash-client` works: segments and variants, a change, its registration with its version, its counts."""
    arguments = [scene.server.url, BACKEND_SECRET, json.dumps(ASKED)]
    with processes.node_script("service", NODE, "unleash-client", *arguments) as program:
        use(program, scene)
        program.wait(scene.counted("node-app", "with-variant", yes=1, green=1), "counted", 15)
        [registered] = [each for each in scene.instances("node-app") if each["sdkVersion"]]
    assert (registered["environment"], registered["sdkType"]) == ("development", "backend")
    assert "node" in registered["sdkVersion"]


def test_python_sdk(scene: Scene) -> None:
    """PyPI `UnleashClient` works the same."""
    command = [sys.executable, "-c", PYTHON, scene.server.url, BACKEND_SECRET, json.dumps(ASKED)]
    with processes.scratch() as folder, processes.running("service", command, env={}, folder=folder) as program:
        use(program, scene)
        program.wait(scene.counted("python-app", "with-variant", yes=1, green=1), "counted", 15)
        [registered] = [each for each in scene.instances("python-app") if each["sdkVersion"]]
    assert "python" in registered["sdkVersion"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_sdk_of_browsers(scene: Scene, method: str) -> None:
    """npm `unleash-proxy-client` works without a proxy: its context counts, it sees changes, and its counts appear."""
    app = f"page-app-{method.lower()}"
    arguments = [f"{scene.server.url}/frontend", FRONTEND_SECRET, method, app]
    with processes.node_script("page", PAGE, "unleash-proxy-client", *arguments) as program:

        def toggles() -> list[list[str]]:
            return [each["toggles"] for each in program.said("answers")]

        before = ["in-segment", "on", "with-variant"]
        program.wait(lambda: toggles()[-1:] == [before], "ready")
        scene.switch("changes", on=True)
        program.wait(lambda: toggles()[-1] == sorted([*before, "changes"]), "told of a change", 15)
        scene.switch("changes", on=False)
        program.wait(lambda: toggles()[-1] == before, "told of the change back", 15)
        program.wait(scene.counted(app, "with-variant", yes=1, green=1), "counted", 15)
        assert {each["variant"] for each in program.said("answers")} == {"green"}
        assert program.said("error") == []
        [registered] = scene.instances(app)
    assert (registered["environment"], registered["sdkType"], registered["clientIp"]) == ("development", "frontend", None)
    assert registered["sdkVersion"].startswith("unleash-js-sdk:")


@pytest.mark.parametrize("make", [processes.reference_proxy, processes.our_proxy])
def test_proxies(scene: Scene, make: Any) -> None:
    """npm `@unleash/proxy` and our proxy work: they answer browsers, follow a change, and pass counts on."""
    settings = {"UNLEASH_API_TOKEN": BACKEND_SECRET, "UNLEASH_FETCH_INTERVAL": "100", "UNLEASH_METRICS_INTERVAL": "300"}
    settings |= {"UNLEASH_APP_NAME": make.__name__}
    with make(scene.server.url, UNLEASH_ENVIRONMENT="development", **settings) as proxy:
        everywhere = {"on", "with-variant"}
        proxy.program.wait(lambda: set(proxy.toggles("?userId=7")) == everywhere, "ready")
        assert proxy.toggles("?userId=7")["with-variant"]["variant"]["name"] == "green"
        assert set(proxy.toggles("?properties[region]=eu")) == {*everywhere, "in-segment"}
        scene.switch("changes", on=True)
        proxy.program.wait(lambda: "changes" in proxy.toggles(), "told of a change", 15)
        scene.switch("changes", on=False)
        bucket = {"start": "2020-01-01T00:00:00Z", "stop": "2099-01-01T00:00:00Z", "toggles": {"on": {"yes": 5, "no": 1}}}
        answer = proxy.post("/client/metrics", {"appName": "browser", "instanceId": "b", "bucket": bucket})
        assert answer.status in (200, 202)
        proxy.program.wait(scene.counted(make.__name__, "on", yes=5, no=1), "counted", 15)
        assert scene.instances(make.__name__)
