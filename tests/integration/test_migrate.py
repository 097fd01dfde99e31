"""What `flagsvc migrate` prints starts a proxy, which answers callers that had another proxy before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.fake_upstream import FEATURES, fake_upstream
from support.processes import answers, ask, call, flagsvc, free_port, running
from support.scene import document, toggle

DOCUMENT = document(toggle("first", project="default"))
TOKEN = "*:development.upstream-token"
KEY = "web-app"


def migrate(folder: Path, *arguments: object, **env: str) -> str:
    """Run `flagsvc migrate` and return what it prints. Nothing may be left to do."""
    done = call("migrate", *arguments, folder=folder, env=env)
    assert done.code == 0, done.err
    return done.out


@contextmanager
def proxy(folder: Path, configuration: str, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a proxy with a configuration file until the block ends."""
    (folder / "flagsvc.toml").write_text(configuration)
    command = [*flagsvc(), "proxy", "--config", folder / "flagsvc.toml"]
    with running("proxy", command, env=env or {}, folder=folder) as program:
        program.wait(lambda: answers(f"http://127.0.0.1:{port_of(configuration)}/readyz"), "ready")
        yield


def port_of(configuration: str) -> int:
    """Return the port of a configuration file."""
    (line,) = [line for line in configuration.splitlines() if line.startswith("port = ")]
    return int(line.split()[2])


def toggles(port: int, path: str, key: str) -> list[str]:
    """Return the names of the toggles in an answer."""
    answer = ask(f"http://127.0.0.1:{port}{path}?userId=7", headers={"Authorization": key})
    assert answer.status == 200, answer.body
    return [toggle["name"] for toggle in answer.json()["toggles"]]


def test_edge(tmp_path: Path) -> None:
    """A caller of Edge gets its flags at the same port, path and key; the upstream gets Edge's token, at Edge's interval."""
    port = free_port()
    with fake_upstream(DOCUMENT) as upstream:
        url = upstream.url.removesuffix("/api")
        edge = ("--port", port, "edge", "--upstream-url", url, "--tokens", TOKEN, "--pretrusted-tokens", f"{KEY}@development")
        with proxy(tmp_path, migrate(tmp_path, "--", *edge, FEATURES_REFRESH_INTERVAL_SECONDS="1")):
            assert toggles(port, "/api/frontend", KEY) == toggles(port, "/api/frontend/all", KEY) == ["first"]
            upstream.wait(lambda: upstream.received(FEATURES, 304))
            assert {seen.headers["authorization"] for seen in upstream.received(FEATURES)} == {TOKEN}


def test_edge_offline(tmp_path: Path) -> None:
    """A file in place of the upstream has the same keys: those of clients, and those of server-side SDKs."""
    port = free_port()
    (tmp_path / "flags.json").write_text(json.dumps(DOCUMENT))
    env = {"BOOTSTRAP_FILE": "flags.json", "FRONTEND_TOKENS": KEY, "CLIENT_TOKENS": "service", "PORT": str(port)}
    with proxy(tmp_path, migrate(tmp_path, **env)):
        assert toggles(port, "/api/frontend", KEY) == ["first"]
        answer = ask(f"http://127.0.0.1:{port}/api/client/features", headers={"Authorization": "service"})
        assert [feature["name"] for feature in answer.json()["features"]] == ["first"]


@pytest.mark.parametrize("way", ["kept", "variables", "file", "contract"])
def test_the_reference(way: str, tmp_path: Path) -> None:
    """A configuration of the reference means the same as it is, as file and as variables: variants have the state of their flag.

    Of the same upstream as FLAGSVC_URL, without a word about variants, they have not (decision 0003).
    """
    port = free_port()
    with fake_upstream(DOCUMENT) as upstream:
        env = {"UNLEASH_URL": upstream.url, "UNLEASH_API_TOKEN": TOKEN, "UNLEASH_PROXY_CLIENT_KEYS": KEY, "PORT": str(port)}
        written = migrate(tmp_path, "--format", "variables", **env)
        pairs = [line.partition("=") for line in written.splitlines() if line and not line.startswith("#")]
        variables = {name: value for name, _, value in pairs}
        contract = {name: value for name, value in variables.items() if name != "FLAGSVC_VARIANT_FEATURE_STATE"}
        given = {"kept": env, "variables": variables, "file": {}, "contract": contract}[way]
        with proxy(tmp_path, migrate(tmp_path, **env) if way == "file" else f"port = {port}", given):
            assert toggles(port, "/proxy", KEY) == ["first"]
            answer = ask(f"http://127.0.0.1:{port}/proxy", headers={"Authorization": KEY}).json()
    state = {} if way == "contract" else {"feature_enabled": True, "featureEnabled": True}
    assert answer["toggles"][0]["variant"] == {"name": "disabled", "enabled": False, **state}


def test_a_backup_while_the_upstream_is_away(tmp_path: Path) -> None:
    """With Edge's backup a proxy starts with flags and answers Edge's callers, although no upstream can be asked."""
    port, backup, state = free_port(), tmp_path / "backup", tmp_path / "state"
    backup.mkdir()
    (backup / "unleash_features.json").write_text(json.dumps([["development", DOCUMENT]]))
    known = {"token": "*:development.web", "type": "frontend", "environment": "development", "projects": ["*"]}
    (backup / "unleash_tokens.json").write_text(json.dumps([known | {"status": "Validated"}]))
    env = {"UPSTREAM_URL": "http://127.0.0.1:9", "TOKENS": TOKEN, "PORT": str(port)}
    with proxy(tmp_path, migrate(tmp_path, "--backup", backup, "--into", state, "--backup-tokens", **env)):
        assert toggles(port, "/api/frontend", "*:development.web") == ["first"]
