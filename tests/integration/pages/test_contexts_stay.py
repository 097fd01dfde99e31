"""A context that is tried in a page is in the body of that one answer, and nowhere else, while whole processes run.

A proxy has our flag server as its upstream, through a relay that records every byte. Contexts with marked values are tried at both,
good ones and such as fail. Then the mark is searched in all that was sent, logged, stored, told by other pages, and set in headers
and cookies.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from support import processes
from support.browser import browser
from support.flagservers import BACKEND_SECRET, USER_SECRET, OurFlagServer, our_flag_server
from support.waiting import wait_until
from support.wiretap import Wiretap, found, wiretap

pytestmark = pytest.mark.programs

MARK = "q7contextzk"
STRATEGIES = """
from flagsvc import Strategy
class Raises(Strategy):
    name = "raises"
    def is_enabled(self, parameters, context):
        raise ValueError(context.user_id, context.properties)
strategies = [Raises()]
"""
ENRICHERS = """
def adds(context):
    if (context.session_id or "").startswith("fails"):
        raise ValueError(context)
    return context.replace(properties={**context.properties, "added": context.user_id or ""})
enrichers = [adds]
"""
PLAN = {"contextName": "plan", "operator": "IN", "values": ["team"]}
BASE = {"environment": "development", "name": "flexibleRollout"}
STICKY = {"rollout": "50", "stickiness": "userId", "groupId": "group"}
GIVEN: dict[str, Any] = {
    "features": [{"name": name, "enabled": ["development"]} for name in ("rolled-out", "by-plan", "by-code")],
    "strategies": [
        BASE | {"feature": "rolled-out", "parameters": STICKY},
        BASE | {"feature": "by-plan", "constraints": [PLAN]},
        BASE | {"feature": "by-code", "name": "raises"},
    ],
    "strategyTypes": [{"name": "raises", "parameters": []}],
}
FIELDS = {
    "userId": f"user-{MARK}",
    "sessionId": f"session-{MARK}",
    "remoteAddress": f"address-{MARK}",
    "appName": f"app-{MARK}",
    "environment": f"environment-{MARK}",
    "plan": f"plan-{MARK}",
    f"name-{MARK}": "yes",
}
LATE = {"currentTime": f"time-{MARK}"}
FAILS = {"sessionId": f"fails-{MARK}"}
SENT = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
PARTIAL = {"HX-Request": "true", "HX-Target": "main", "Accept": "text/html"}


@dataclass
class Scene:
    """The running programs. `heads` are the heads of all answers, `streamed` what open pages were sent."""

    server: OurFlagServer
    proxy: processes.Program
    pages: str
    tap: Wiretap
    heads: list[str] = field(default_factory=list)
    streamed: bytearray = field(default_factory=bytearray)

    @property
    def places(self) -> dict[str, dict[str, str]]:
        """The address of the page of each program, with the headers that it needs."""
        return {f"{self.pages}/ui": {}, f"{self.server.root}/ui": {"Authorization": USER_SECRET}}

    def post(self, url: str, fields: list[tuple[str, str]], headers: dict[str, str]) -> processes.Answer:
        """Send a form, and keep the head of its answer."""
        answer = processes.ask(url, method="POST", headers={**SENT, **headers}, body=urlencode(fields).encode())
        self.heads.append(repr(answer.headers))
        return answer

    def see(self, url: str, headers: dict[str, str] | None = None) -> bytes:
        """Return an answer with its head."""
        answer = processes.ask(url, headers={"Authorization": USER_SECRET} if headers is None else headers)
        return repr(answer.headers).encode() + answer.body


@contextmanager
def running_both(folder: Path) -> Iterator[Scene]:
    """Run the flag server, a relay to it, and a proxy with a store and custom code; both log at every level."""
    (folder / "strategies.py").write_text(STRATEGIES)
    (folder / "enrichers.py").write_text(ENRICHERS)
    place = folder / "server"
    place.mkdir()
    port, operators = processes.free_port(), processes.free_port()
    variables = {
        "LOG_LEVEL": "debug",
        "FLAGSVC_ACCESS_LOG": "true",
        "FLAGSVC_STORAGE": f"file://{folder}/store",
        "FLAGSVC_ADMIN_ADDRESS": f"127.0.0.1:{operators}",
        "FLAGSVC_FETCH_INTERVAL": "100",
        "FLAGSVC_UPSTREAM_MODE": "polling",
        "FLAGSVC_METRICS_INTERVAL": "100",
        "FLAGSVC_CUSTOM_STRATEGIES_FILE": str(folder / "strategies.py"),
        "EXP_CUSTOM_ENRICHERS_FILE": str(folder / "enrichers.py"),
        "UNLEASH_API_TOKEN": BACKEND_SECRET,
    }
    command = [*processes.flagsvc(), "proxy"]
    pages = f"http://127.0.0.1:{operators}"
    with (
        our_flag_server(folder=place, given=GIVEN, LOG_LEVEL="debug") as server,
        wiretap(int(server.root.rpartition(":")[2])) as tap,
    ):
        env = processes.proxy_environment(f"http://127.0.0.1:{tap.port}/api", port, variables)
        with processes.running("proxy", command, env=env, folder=folder) as program:
            program.wait(lambda: processes.answers(f"http://127.0.0.1:{port}/proxy/health"), "ready")
            program.wait(lambda: processes.answers(f"{pages}/ui/status"), "pages")
            yield Scene(server, program, pages, tap)


@contextmanager
def open_pages(scene: Scene) -> Iterator[None]:
    """Keep a stream of each program open, and what it sends, until the block ends."""
    threads: list[threading.Thread] = []
    answers = []
    for place, headers in scene.places.items():
        connection = http.client.HTTPConnection(place.removeprefix("http://").partition("/")[0], timeout=30)
        connection.request("GET", "/ui/stream", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200
        answers.append((connection, answer))
        threads.append(threading.Thread(target=read_on, args=(answer, scene.streamed), daemon=True))
        threads[-1].start()
    yield


def read_on(answer: http.client.HTTPResponse, into: bytearray) -> None:
    """Keep what comes until the stream ends with its program."""
    try:
        while line := answer.readline():
            into.extend(line)
    except (OSError, http.client.HTTPException):
        return


def forms(*given: dict[str, str]) -> Iterator[list[tuple[str, str]]]:
    """Yield the forms of both programs for some contexts: named fields, pairs, and lines of JSON."""
    for fields in given:
        named = [(f"field.{name}", value) for name, value in fields.items()]
        pairs = [pair for name, value in fields.items() for pair in (("name", name), ("value", value))]
        both = [("environment", "development"), ("environment", "production"), ("why", "0:rolled-out"), *pairs]
        yield named
        yield both
        yield [("environment", "development"), ("lines", json.dumps(fields)), ("why", "0:by-plan")]
    yield [("environment", "development"), ("lines", f"{MARK} is no JSON")]
    yield [("field.userId", MARK * 2000)]
    yield [("environment", f"environment-{MARK}"), ("field.userId", MARK)]


def try_everything(scene: Scene) -> int:
    """Try all contexts in every way, and return how many answers show what was typed."""
    shown = 0
    for place, headers in scene.places.items():
        for suffix, more in (("", {}), (".json", {}), ("", PARTIAL)):
            for fields in forms(FIELDS, LATE, FIELDS | FAILS):
                answer = scene.post(f"{place}/try{suffix}", fields, {**headers, **more})
                assert answer.status in (200, 400, 404, 500), (place, fields, answer.status)
                shown += bool(found([MARK], answer.body))
    return shown


def look_around(scene: Scene) -> bytes:
    """Return what other pages and the APIs tell afterwards."""
    proxy = ("/ui/status", "/ui/traffic", "/ui/changes", "/ui/flags", "/ui/flags/rolled-out", "/ui/config", "/ui/try", "/ready")
    prometheus = "/proxy/internal-backstage/prometheus"
    server = ("/ui/flags", "/ui/history", "/ui/proxies", "/ui/try", "/api/admin/events", "/internal-backstage/prometheus")
    seen = [scene.see(scene.pages + path, {}) for path in (*proxy, *(f"{each}.json" for each in proxy[:6]), prometheus)]
    seen += [scene.see(scene.server.root + path) for path in server]
    return b"\n".join(seen)


def stored_in(folder: Path) -> bytes:
    """Return what is in all files, with their names: logs, databases, stores."""
    files = [each for each in sorted(folder.rglob("*")) if each.is_file()]
    return b"\n".join(str(each).encode() + each.read_bytes() for each in files)


def test_a_context_stays_in_its_answer(tmp_path: Path) -> None:
    """No mark is sent upstream or to open pages, logged at any level, stored, or in a head; it is in the answers themselves."""
    with running_both(tmp_path) as scene, open_pages(scene):
        shown = try_everything(scene)
        reports = scene.tap.sent.count(b"POST /api/client/")
        polls = scene.tap.sent.count(b"GET /api/client/features")
        wait_until(lambda: scene.tap.sent.count(b"GET /api/client/features") > polls + 2)
        wait_until(lambda: b"event:" in scene.streamed)
        around = look_around(scene)
    assert shown > 30, "the contexts were tried, and their answers show them"
    assert reports and polls
    files = stored_in(tmp_path)
    assert b"a context enricher raised" in files, "the logs are among the files, and say what failed"
    assert b"rolled-out" in files and b"SQLite format 3" in files and b"by-plan" in around
    assert "set-cookie" not in "".join(scene.heads).lower()
    for where, content in (
        ("sent upstream", scene.tap.sent),
        ("sent to open pages", bytes(scene.streamed)),
        ("in a head", "".join(scene.heads).encode()),
        ("told by another page", around),
        ("logged or stored", files),
    ):
        assert not found([MARK], content), f"the context is {where}: {excerpt(content)}"


def excerpt(content: bytes) -> str:
    """Return what stands around the mark."""
    at = content.find(MARK.encode())
    return repr(content[max(0, at - 300) : at + 300])


def test_a_browser_keeps_it_out_of_addresses(tmp_path: Path) -> None:
    """In a browser, with script and without, the context is in no address, cookie or store of the page, and in its answer."""
    with running_both(tmp_path) as scene:
        for scripted in (True, False):
            with browser() as page:
                page.call("Emulation.setScriptExecutionDisabled", value=not scripted)
                page.go(f"{scene.pages}/ui/try")
                page.wait_for("document.querySelector('[name^=\"field.\"]') !== null")
                page.run(f"document.querySelector('[name^=\"field.\"]').value = '{MARK}'")
                page.follow("main form[method=post] button")
                page.wait_for("document.querySelector('#result') !== null")
                kept = page.run("JSON.stringify([location.href, document.cookie, {...localStorage}, {...sessionStorage}])")
                requested = "\n".join(page.requested())
            assert not found([MARK], f"{kept}\n{requested}".encode())
            assert "/ui/try" in requested
    assert not found([MARK], stored_in(tmp_path) + scene.tap.sent)
