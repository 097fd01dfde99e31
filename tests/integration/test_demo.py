"""Every example runs: the demo with each line that it prints, the configuration file, the strategies, the enrichers."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from flagsvc import Context
from flagsvc.proxy.extensions import enrich, load_enrichers, load_strategies
from flagsvc.settings.load import load
from support import needs
from support.processes import ROOT, Program, clean_environment, running, scratch

EXAMPLES = ROOT / "examples"


@contextmanager
def demo(folder: Path, **env: str) -> Iterator[Program]:
    """Run the demo in the folder of the repository, as `make demo` does, until it has told everything."""
    with running("demo", [sys.executable, EXAMPLES / "demo.py"], env=env, folder=folder, cwd=ROOT) as program:
        program.wait(lambda: "Ctrl-C ends it" in program.output(), "telling what to try", 120)
        yield program


def ports_of(program: Program) -> tuple[int, int]:
    """The ports that the demo's proxy and its flag server listen on."""
    proxy = re.search(r"listening on http://localhost:(\d+)/proxy", program.output())
    server = re.search(r"listening on http://127\.0\.0\.1:(\d+)", program.output())
    assert proxy is not None and server is not None
    return int(proxy[1]), int(server[1])


def refused(port: int) -> bool:
    """Whether a port has no listener."""
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_the_demo(number: int) -> None:
    """The demo shows a first answer and runs on. A signal ends it with its proxy and flag server: exit code 0, nothing is left.

    `running_demo` ends with SIGTERM.
    """
    with scratch() as folder, demo(folder) as program:
        text = program.output()
        for line in ("flagsvc imported: 13 new", "flagsvc ready: 13 toggles", "new-checkout", "express-payment", "variant vector"):
            assert line in text
        assert "opening-hours-chat" in text or "gold-support" in text, "custom code took part"
        assert program.process.poll() is None and not any(refused(port) for port in ports_of(program))
        assert program.stop(number, 40) == 0, "each of its programs has 15 s to end"
        assert all(refused(port) for port in ports_of(program))
        assert program.output().endswith("the demo has ended\n")
        assert "Traceback" not in program.output() and "kills" not in program.output()
        assert [path.name for path in folder.iterdir()] == ["demo.log"]


@pytest.fixture(scope="module")
def running_demo() -> Iterator[Program]:
    """Run a demo beside which, and with which, other things are tried; SIGTERM ends it with exit code 0."""
    with scratch() as folder, demo(folder) as program:
        yield program
        assert program.stop(signal.SIGTERM) == 0
        assert all(refused(port) for port in ports_of(program))


def test_two_demos(running_demo: Program) -> None:
    """The second one uses another port, with any options of another proxy in its environment."""
    other = {"PORT": "1", "FLAGSVC_PROJECT_NAME": "none", "UNLEASH_URL": "http://127.0.0.1:1", "PROXY_BASE_PATH": "/x"}
    other |= {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none", "HTTP_PROXY": "http://127.0.0.1:1", "BASE_URI_PATH": "/y"}
    with scratch() as folder, demo(folder, **other) as second:
        assert len({*ports_of(running_demo), *ports_of(second)}) == 4
        assert "13 toggles" in second.output()


def test_a_port_that_somebody_takes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """If another program takes the port after the demo found it free, the demo takes the next one."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    demo_module = importlib.import_module("demo")
    found = iter([True])  # of the first port, which is taken by now
    monkeypatch.setattr(demo_module, "is_free", lambda port, really=demo_module.is_free: next(found, None) or really(port))
    with scratch() as folder, demo_module.everywhere(0) as taken:
        first = taken.getsockname()[1]
        with demo_module.listening("server", first, lambda port: demo_module.server_environment(port, folder)) as (_, port):
            assert first < port < first + 100
            assert not refused(port)


def steps(text: str) -> dict[str, str]:
    """The titles and command lines that the demo printed."""
    found = re.findall(r"  # (.*)\n((?:    .*\n)+)", text.partition("Ask the proxy:")[2])
    return {title: lines.strip() for title, lines in found}


def test_what_the_demo_tells_to_try(running_demo: Program) -> None:
    """Each command line that the demo prints works in a shell in the folder of the repository."""
    needs.program("curl")
    told = steps(running_demo.output())
    assert len(told) == 14
    pages = {title for title, line in told.items() if line.startswith("http")}
    signing_in = "its pages in a browser: sign in with user:demo-admin-token"
    assert pages == {"the API in a browser", "its API in a browser", signing_in}
    for title in pages:
        assert "<html" in shell(f"curl --fail {told[title]}").lower()
    answers = {title: shell(line) for title, line in told.items() if title not in pages | SWITCHING}
    christmas = toggles(answers["another user, in Australia, at Christmas"])
    assert "new-checkout" in christmas and "winter-sale" not in christmas
    named = toggles(answers["two flags by name, with a context as JSON"])
    assert named["free-shipping"]["enabled"] and named["banner-text"]["variant"]["payload"]
    assert len(toggles(answers["every flag, on or off"])) == 13
    for title in ("the configuration, for server-side SDKs", "what it holds", "what proxies and server-side SDKs read"):
        assert len(json.loads(answers[title])["features"]) == 13, title
    assert "bucket 3 by userId" in answers["why a flag is on or off"]
    exported = json.loads(answers["the flags as a file, to change and to import again"])
    assert len(exported["features"]) == 13 and len(exported["dependencies"]) == 1


SWITCHING = {"off", "what the proxy says", "and on again"}


def test_switching_a_flag(running_demo: Program) -> None:
    """The lines that switch a flag do, and the line below shows it: the proxy knows within a moment."""
    needs.program("curl")
    told = steps(running_demo.output())

    def is_on() -> bool:
        [toggle] = toggles(shell(told["what the proxy says"])).values()
        assert toggle["name"] == "dark-mode"
        return bool(toggle["enabled"])

    assert is_on()
    shell(told["off"])
    running_demo.wait(lambda: not is_on(), "aware that the flag is off", 10)
    shell(told["and on again"])
    running_demo.wait(is_on, "aware that the flag is on again", 10)


def shell(line: str) -> str:
    """Run a command line and return its output."""
    with scratch() as folder:
        env = clean_environment(folder)
        done = subprocess.run(["sh", "-ec", line], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def toggles(answer: str) -> dict[str, Any]:
    """The toggles of an answer by name."""
    return {toggle["name"]: toggle for toggle in json.loads(answer)["toggles"]}


def test_the_configuration_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example file is a whole configuration without problems, warnings or unknown names."""
    monkeypatch.chdir(ROOT)
    loaded = load({}, EXAMPLES / "flagsvc.toml", {})
    assert loaded.warnings == []
    assert loaded.options.client_keys == ("some-client-key", "another-client-key")
    assert loaded.options.cors_max_age == 3600
    assert load_strategies(loaded.options.custom_strategies).by_name
    assert len(tomllib.loads((EXAMPLES / "flagsvc.toml").read_text())) > 10


@pytest.mark.parametrize(
    ("strategy", "parameters", "context", "enabled"),
    [
        ("openingHours", {"from": "09:00", "to": "17:00"}, Context(current_time=1_793_613_600_000.0), True),
        ("openingHours", {"from": "09:00", "to": "17:00"}, Context(now=1_793_649_600_000.0), False),
        ("emailDomain", {"domains": "a.example, B.example"}, Context(user_id="someone@b.example"), True),
        ("emailDomain", {"domains": "a.example"}, Context(user_id="someone@b.example"), False),
        ("emailDomain", {}, Context(), False),
    ],
)
def test_the_strategies(strategy: str, parameters: dict[str, str], context: Context, enabled: bool) -> None:
    """The example strategies decide as their descriptions say."""
    loaded = load_strategies([EXAMPLES / "custom_strategies.py"])
    assert loaded.by_name[strategy].is_enabled(parameters, context) is enabled


@pytest.mark.parametrize(
    ("context", "properties"),
    [
        (Context(user_id="7"), {"tier": "gold"}),
        (Context(user_id="8", properties={"tier": "gold"}), {}),
        (Context(user_id="Someone@Shop.Example"), {"mailDomain": "shop.example"}),
    ],
)
def test_the_enrichers(context: Context, properties: dict[str, str]) -> None:
    """The example enrichers add their properties, and remove those that callers must not set."""
    functions = load_enrichers([EXAMPLES / "enrichers.py"]).functions
    assert asyncio.run(enrich(context, functions)).properties == properties
