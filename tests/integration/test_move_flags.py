"""docs/how-to/move-flags-between-servers.md: each command of the page, run in a shell in order, does what the page says.

Flags that are moved from the real flag server to ours and back evaluate the same in every SDK.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from test_example_dataset import Filled, contexts, fill, ours, real, snapshot
from yggdrasil_engine.engine import UnleashEngine  # type: ignore[import-untyped]

from support import flagservers, processes

PAGE = processes.ROOT / "docs" / "how-to" / "move-flags-between-servers.md"
OLD, NEW = "https://old.example.com", "https://new.example.com"
FENCE = re.compile(r"^```(sh|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DATA: dict[str, Any] = {
    "features": [{"name": "dark-mode", "description": "night"}, {"name": "new-checkout"}],
    "featureStrategies": [{"name": "default", "featureName": "new-checkout"}],
    "featureEnvironments": [{"name": "new-checkout", "featureName": "new-checkout", "enabled": True}],
    "tagTypes": [],
}


def script(old: str, new: str) -> str:
    """Return the blocks of the page as one shell script, with the addresses of running servers."""
    parts = []
    for language, text in FENCE.findall(PAGE.read_text()):
        named = re.match(r"# (\S+)\n", text)
        if language == "sh":
            parts.append(text)
        elif named is not None:
            parts.append(f"cat > {named[1]} <<'END'\n{text}END\n")
    return "".join(parts).replace(OLD, old).replace(NEW, new)


def test_the_page(tmp_path: Path) -> None:
    """A whole server goes from the real one to ours, then a project, then flags to the next environment, then from a file."""
    with (
        processes.postgresql() as database,
        processes.unleash_server(database) as real,
        flagservers.our_flag_server() as ours,
    ):
        root = real.url.removesuffix("/api")
        token = processes.personal_token(real)
        body = {"project": "default", "environment": "development", "data": DATA}
        url = f"{real.url}/admin/features-batch/import"
        assert processes.ask(url, method="POST", headers={"Authorization": token}, body=body).status == 200

        env = processes.clean_environment(tmp_path)
        env |= {"OLD_TOKEN": token, "NEW_TOKEN": flagservers.USER_SECRET}
        env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
        done = subprocess.run(
            ["sh", "-ec", script(root, ours.root)],
            cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout, done.stderr)
        query = {"project": "default", "environment": "production"}
        found = ours.admin("/features-batch/export", query)

    assert "moved: 2 flags into project `default`, environment `production`\n" in done.stdout
    assert "imported: 2 same\n" in done.stdout and done.stdout.endswith("imported: 1 changed\n")
    assert [(item["name"], item["description"]) for item in found["features"]] == [
        ("dark-mode", "On for everybody"),
        ("new-checkout", None),
    ]
    assert {item["name"]: item["enabled"] for item in found["featureEnvironments"]} == {
        "dark-mode": True,
        "new-checkout": True,
    }
    assert [item["name"] for item in found["featureStrategies"]] == ["default", "default"]
    moved = json.loads((tmp_path / "flags.json").read_text())
    assert [item["name"] for item in moved["features"]] == ["dark-mode", "new-checkout"]
    assert (tmp_path / "new.token").stat().st_mode & 0o077 == 0


CONTEXTS = [context.as_dict() for context in contexts()]
NODE = """
const { Unleash } = require(process.argv[2]);
const [documents, contexts] = JSON.parse(require("fs").readFileSync(process.argv[3]));
const answers = (client, names) => contexts.map((context) => names.map((name) => {
  const { name: variant, payload } = client.getVariant(name, context);
  return [name, client.isEnabled(name, context), variant, payload ? payload.value : null];
}));
const one = (document) => new Promise((resolve) => {
  const client = new Unleash({
    url: "http://127.0.0.1:1/api", appName: "test", disableMetrics: true, refreshInterval: 0,
    bootstrap: { data: document.features, segments: document.segments }, bootstrapOverride: true,
  });
  client.on("error", () => {});
  client.on("ready", () => { resolve(answers(client, document.features.map((each) => each.name).sort())); client.destroy(); });
});
(async () => {
  const told = [];
  for (const document of documents) told.push(await one(document));
  console.log(JSON.stringify(told));
})();
"""


def batch(server: Filled, operation: str, body: object) -> Any:
    """Call a batch operation as an administrator and return the answer."""
    url = f"{server.api}/admin/features-batch/{operation}"
    answer = processes.ask(url, method="POST", headers={"Authorization": server.user}, body=body)
    assert answer.status == 200, (operation, answer.body)
    return json.loads(answer.body) if answer.body else None


def move(source: Filled, target: Filled, environment: str) -> None:
    """Export a server's flags of development, and import them into another's environment."""
    data = batch(source, "export", {"environment": "development", "project": "default"})
    body = {"project": "default", "environment": environment, "data": data}
    assert batch(target, "validate", body)["errors"] == []
    batch(target, "import", body)


def document(server: Filled, token: str) -> Any:
    """Return what SDKs read."""
    return processes.ask(f"{server.api}/client/features", headers={"Authorization": token}).json()


def production_token(server: Filled) -> str:
    """Return the secret of a new backend token."""
    body = {"tokenName": "after", "type": "client", "environment": "production", "projects": ["*"]}
    answer = processes.ask(
        f"{server.api}/admin/api-tokens", method="POST", headers={"Authorization": server.user}, body=body
    )
    return str(answer.json()["secret"])


def by_ours(found: object) -> Any:
    """Return what our engine answers to each context."""
    made = snapshot(found)
    return [
        sorted(json.loads(made.all(context))["toggles"], key=lambda toggle: toggle["name"]) for context in contexts()
    ]


def by_python(found: Mapping[str, Any]) -> Any:
    """Return the results of the SDK for Python's engine for each context."""
    engine = UnleashEngine()
    engine.take_state(json.dumps(found))
    names = sorted(feature["name"] for feature in found["features"])
    known = [{name: value for name, value in context.items() if name != "now"} for context in CONTEXTS]
    return [
        [(name, engine.is_enabled(name, context), engine.get_variant(name, context)) for name in names]
        for context in known
    ]


def by_node(documents: list[Any]) -> list[Any]:
    """Return the results of the SDK for Node for each context and document."""
    with processes.scratch() as folder:
        (folder / "asked.json").write_text(json.dumps([documents, CONTEXTS]))
        with processes.node_script("sdk", NODE, "unleash-client", str(folder / "asked.json")) as program:
            program.wait(lambda: program.process.poll() is not None, "answering", 60)
            return list(json.loads(program.output().splitlines()[-1]))


def test_there_and_back() -> None:
    """Flags of the real server, exported into ours, and back into another environment: three documents, one answer.

    The flags are those of examples/dataset.json, which the real server takes as ours does.
    """
    with real() as first, ours() as second:
        before = fill(first)
        move(first, second, "development")
        between = document(second, second.backend)
        move(second, first, "production")
        after = document(first, production_token(first))
    documents = [before, between, after]
    assert {len(each["features"]) for each in documents} == {13}
    for evaluated in (
        [by_ours(each) for each in documents],
        [by_python(each) for each in documents],
        by_node(documents),
    ):
        assert evaluated[0] == evaluated[1] == evaluated[2]
        assert len({json.dumps(answer, default=str) for answer in evaluated[0]}) > 5, "contexts make a difference"
