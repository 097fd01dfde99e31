"""Nothing about an end user leaves the proxy but in its answers: not towards the upstream, not in logs, not in storage.

A busy run in which every place a caller can write to holds a word of its own. Every byte that the upstream was sent, everything
the proxy printed and stored, and its Prometheus page are searched for those words (specification: What the service does, point 6).
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from support.fake_upstream import FEATURES, METRICS, REGISTER, FakeUpstream, Reply, fake_upstream
from support.processes import KEY, SERVER_SIDE_TOKEN, UPSTREAM_TOKEN, Proxy, our_proxy
from support.wiretap import Wiretap, found, wiretap

CALLER = "127.0.0.77"
FORWARDED = "198.51.100.177"
CLAIMED = "203.0.113.177"
MOMENT, MILLISECONDS = "2031-07-23T11:12:13.456Z", 1_942_571_533_456
NAMES = (
    *("user", "session", "app", "environment", "region", "property", "nested", "number", "enriched", "unwrapped"),
    *("cookie", "agent", "referer", "origin", "language", "etag", "host", "trace", "sdkapp", "sdkinstance", "header"),
    *("wrongkey", "path", "badquery", "badbody", "toolong", "toggle", "variant", "metricsapp", "metricsinstance"),
    *("registerapp", "registerinstance", "strategy", "garbage", "boom"),
)
MARKS = {name: f"mark{name}q7x9zk" for name in NAMES}
WORDS = [*MARKS.values(), CALLER, FORWARDED, CLAIMED, MOMENT[:19], str(MILLISECONDS), KEY, SERVER_SIDE_TOKEN]

NOISE = {
    "Cookie": f"sid={MARKS['cookie']}",
    "User-Agent": MARKS["agent"],
    "Referer": f"https://{MARKS['referer']}.example/x",
    "Origin": f"https://{MARKS['origin']}.example",
    "Accept-Language": MARKS["language"],
    "If-None-Match": f'"{MARKS["etag"]}"',
    "X-Forwarded-For": FORWARDED,
    "Forwarded": f"for={FORWARDED}",
    "X-Forwarded-Host": MARKS["host"],
    "X-Real-IP": FORWARDED,
    "X-Request-Id": MARKS["trace"],
    "traceparent": MARKS["trace"],
    "Unleash-AppName": MARKS["sdkapp"],
    "Unleash-InstanceId": MARKS["sdkinstance"],
    f"X-{MARKS['header']}": MARKS["header"],
}
CONTEXT: dict[str, Any] = {
    "userId": MARKS["user"],
    "sessionId": MARKS["session"],
    "appName": MARKS["app"],
    "environment": MARKS["environment"],
    "remoteAddress": CLAIMED,
    "currentTime": MOMENT,
    "properties": {"region": MARKS["region"], MARKS["property"]: MARKS["property"]},
}
STRATEGIES = """
class Odd:
    name = "odd"

    def is_enabled(self, parameters, context):
        raise ValueError(f"no luck with {context.user_id} at {context.remote_address}: {context.as_dict()}")

strategies = [Odd()]
"""
ENRICHERS = f"""
async def add(context):
    if context.user_id == "{MARKS["boom"]}":
        raise RuntimeError(f"cannot look up {{context.as_dict()}}")
    return context.replace(properties={{**context.properties, "tier": "{MARKS["enriched"]}"}})

enrichers = [add]
"""
TOGGLES = ("by-user", "by-rollout", "by-region", "by-address", "by-code", "with-variants")


def feature(name: str, strategy: str = "default", **more: Any) -> dict[str, Any]:
    """Return a toggle with one strategy."""
    return {"name": name, "enabled": True, "strategies": [{"name": strategy, **more}]}


def constraint(field: str, *values: str) -> dict[str, Any]:
    """Return what makes a toggle look at a field of the context."""
    return {"constraints": [{"contextName": field, "operator": "NOT_IN", "values": list(values)}]}


DOCUMENT = {
    "version": 2,
    "features": [
        feature("by-user", **constraint("userId", "nobody")),
        feature("by-rollout", "flexibleRollout", parameters={"rollout": "50", "stickiness": "default", "groupId": "g"}),
        feature("by-region", **constraint("region", "nowhere")),
        feature("by-address", "remoteAddress", parameters={"IPs": "10.0.0.0/8"}),
        feature("by-code", "odd"),
        feature("with-variants") | {"variants": [{"name": "blue", "weight": 1}, {"name": "green", "weight": 1}]},
        {"enabled": True, "strategies": "not a list"},
    ],
}


@dataclass
class Caller:
    """Somebody who calls the proxy from an address of its own, with headers full of words."""

    port: int

    def send(self, method: str, target: str, body: object = None, *, key: str | None = KEY, **more: str) -> tuple[int, bytes]:
        """Send a request and return status and body of the answer."""
        headers = {**NOISE, **({} if key is None else {"Authorization": key}), **more}
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20, source_address=(CALLER, 0))
        with contextlib.closing(connection):
            connection.request(method, target, content, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def garbage(self) -> None:
        """Send bytes that are not HTTP, and wait for the end of the connection."""
        with socket.create_connection(("127.0.0.1", self.port), source_address=(CALLER, 0)) as client:
            client.settimeout(20)
            client.sendall(f"GET /{MARKS['garbage']} HTTP/9.9\r\n{MARKS['garbage']}\r\n\r\n".encode())
            while client.recv(65536):
                pass

    def evaluate(self) -> None:
        """Ask for toggles in every form."""
        fields = {**CONTEXT, MARKS["nested"]: MARKS["nested"]}
        nested = fields.pop("properties")
        query = urlencode({**fields, **{f"properties[{name}]": value for name, value in nested.items()}})
        posted = {"context": CONTEXT | {"currentTime": MILLISECONDS}, **CONTEXT, "userId": MARKS["unwrapped"]}
        numbered = {"userId": 7, "properties": {"number": MARKS["number"]}}
        for target in ("/proxy", "/proxy/all"):
            status, body = self.send("GET", f"{target}?{query}")
            assert status == 200 and b"by-region" in body
            assert self.send("POST", target, posted)[0] == 200
            assert self.send("POST", target, {"context": numbered})[0] == 200
            assert self.send("HEAD", f"{target}?{query}")[0] == 200
        named = {"toggles": [*TOGGLES, MARKS["toggle"]], "context": CONTEXT}
        status, body = self.send("POST", "/proxy", named)
        assert status == 200 and json.loads(body)["toggles"][0]["enabled"] is True

    def report(self) -> None:
        """Do what SDKs do beside: report usage, register, read the configuration."""
        counts = {"yes": 1, "no": 1, "variants": {"blue": 1, MARKS["variant"]: 1}}
        bucket = {"start": MOMENT, "stop": MOMENT, "toggles": {"with-variants": counts, MARKS["toggle"]: counts}}
        usage = {"appName": MARKS["metricsapp"], "instanceId": MARKS["metricsinstance"], "bucket": bucket}
        assert self.send("POST", "/proxy/client/metrics", usage)[0] == 200
        who = {"appName": MARKS["registerapp"], "instanceId": MARKS["registerinstance"]}
        sdk = {**who, "interval": 1000, "started": MOMENT, "strategies": ["default", MARKS["strategy"]]}
        assert self.send("POST", "/proxy/client/register", sdk)[0] == 200
        assert self.send("GET", "/proxy/client/features", key=SERVER_SIDE_TOKEN)[0] == 200

    def err(self) -> None:
        """Make every kind of mistake."""
        bad = MARKS["badbody"]
        attempts = (
            ("GET", f"/proxy?userId={MARKS['boom']}", None, 500),
            ("POST", "/proxy", {"context": {"userId": MARKS["boom"]}}, 500),
            ("GET", f"/{MARKS['path']}?userId={MARKS['user']}", None, 404),
            ("DELETE", f"/proxy?userId={MARKS['user']}", None, 405),
            ("GET", f"/proxy?userId={MARKS['badquery']}&userId={MARKS['badquery']}", None, 400),
            ("GET", f"/proxy?properties={MARKS['badquery']}", None, 400),
            ("POST", "/proxy", f'{{"context": {bad}'.encode(), 400),
            ("POST", "/proxy", {"toggles": bad, "context": {"userId": [bad]}}, 400),
            ("POST", "/proxy/client/metrics", {"appName": bad, "bucket": {bad: bad}}, 400),
            ("POST", "/proxy/client/register", {"appName": bad}, 400),
            ("POST", "/proxy", (MARKS["toolong"] * 20_000).encode(), 413),
            ("GET", f"/proxy?userId={quote(MARKS['toolong'] * 2000)}", None, 414),
        )
        for method, target, body, status in attempts:
            assert self.send(method, target, body)[0] == status, (method, target[:60])
        assert self.send("GET", "/proxy", key=MARKS["wrongkey"])[0] == 401
        assert self.send("GET", f"/proxy/client/features?token={MARKS['wrongkey']}", key=KEY)[0] == 401
        self.garbage()

    def everything(self) -> None:
        """Do all of it."""
        self.evaluate()
        self.report()
        self.err()


@dataclass
class Run:
    """A busy run: the surroundings of the proxy, and its results."""

    proxy: Proxy
    upstream: FakeUpstream
    tap: Wiretap
    folder: Path

    def output(self) -> bytes:
        """Return the proxy's output."""
        return self.proxy.program.output().encode()

    def stored(self) -> bytes:
        """Return the stored data of the proxy."""
        return b"\n".join(path.read_bytes() for path in self.folder.rglob("*.flags"))


def variables(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the proxy: it polls and reports without pause, and has extensions that fail."""
    (folder / "strategies.py").write_text(STRATEGIES)
    (folder / "enrichers.py").write_text(ENRICHERS)
    return {
        "FLAGSVC_FETCH_INTERVAL": "50",
        "FLAGSVC_METRICS_INTERVAL": "50",
        "FLAGSVC_CUSTOM_STRATEGIES_FILE": str(folder / "strategies.py"),
        "EXP_CUSTOM_ENRICHERS_FILE": str(folder / "enrichers.py"),
        "FLAGSVC_STORAGE": (folder / "state").as_uri(),
        "TRUST_PROXY": "true",
        "ENABLE_OAS": "true",
        **settings,
    }


@contextmanager
def started(folder: Path, settings: Mapping[str, str]) -> Iterator[Run]:
    """Start a proxy whose way to the upstream is tapped."""
    with fake_upstream(DOCUMENT) as upstream, wiretap(int(upstream.url.split(":")[2].split("/")[0])) as tap:
        url = f"http://127.0.0.1:{tap.port}/api"
        with our_proxy(url, **variables(folder, settings)) as proxy:
            yield Run(proxy, upstream, tap, folder)


def fail(run: Run, caller: Caller) -> None:
    """Let the upstream fail in every way while callers go on."""
    upstream = run.upstream
    for reply in (Reply(500, b"oops"), Reply(401), Reply(429), Reply(200, b"<html>"), Reply(200, b'{"features": 7}')):
        upstream.replies |= {FEATURES: reply, METRICS: Reply(500)}
        upstream.forget()
        caller.everything()
        upstream.wait(lambda: upstream.received(FEATURES))
    run.tap.cut = True
    run.tap.hang_up()
    caller.everything()
    run.tap.cut = False
    upstream.replies.clear()


def busy(run: Run) -> bytes:
    """Keep the proxy busy, through failures and back, until the upstream has had everything; return the Prometheus page."""
    caller, upstream = Caller(run.proxy.port), run.upstream
    upstream.wait(lambda: upstream.received(REGISTER))
    caller.everything()
    upstream.wait(lambda: upstream.received(METRICS))
    fail(run, caller)
    upstream.wait(lambda: upstream.received(FEATURES, 200) and upstream.received(METRICS, 202))
    page = caller.send("GET", "/proxy/internal-backstage/prometheus", key=None)[1]
    caller.everything()
    assert run.proxy.program.stop() == 0
    return page


SETTINGS = {
    "info": {"LOG_LEVEL": "info", "FLAGSVC_ACCESS_LOG": "true"},
    "debug": {"LOG_LEVEL": "debug", "FLAGSVC_ACCESS_LOG": "true", "JSON_LOGGER": "true"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_nothing_about_callers_leaves(settings: dict[str, str], tmp_path: Path) -> None:
    """No word of a caller is in the upstream's requests, in logs of any level, in storage or in Prometheus samples."""
    with started(tmp_path, settings) as run:
        page = busy(run)
        sent, printed, stored = run.tap.sent, run.output(), run.stored()
    assert found(WORDS, sent) == []
    assert found([*WORDS, UPSTREAM_TOKEN], printed) == []
    assert found([*WORDS, UPSTREAM_TOKEN], stored) == []
    assert found([*WORDS, UPSTREAM_TOKEN], page) == []
    check_token(sent)
    check_busy(run, printed, stored)


def check_token(sent: bytes) -> None:
    """The token is in one header of each request, and nowhere else."""
    lines = sent.split(b"\r\n")
    where = {line.partition(b":")[0].lower() for line in lines if UPSTREAM_TOKEN.encode() in line}
    assert where == {b"authorization"}
    assert found([UPSTREAM_TOKEN], b"\r\n".join(line for line in lines if not line.lower().startswith(b"auth"))) == []


def check_busy(run: Run, printed: bytes, stored: bytes) -> None:
    """There was something to find: requests of every kind were sent, failures were logged, the document was stored."""
    for start in (b"GET /api/client/features ", b"POST /api/client/register ", b"POST /api/client/metrics "):
        assert start in run.tap.sent
    assert all(seen.body in run.tap.sent for seen in run.upstream.requests)
    counts = [name for seen in run.upstream.received(METRICS) for name in seen.json()["bucket"]["toggles"]]
    assert set(counts) == set(TOGGLES)
    assert b"content-encoding" not in run.tap.sent.lower(), "packed bodies could not be searched"
    for event in (b"a custom strategy raised", b"a context enricher raised", b"could not be fetched", b"left out"):
        assert event in printed, event
    assert b"by-region" in stored


def test_every_word_is_used() -> None:
    """Each word is in some request, so that its absence elsewhere says something."""
    source = Path(__file__).read_text()
    assert [name for name in NAMES if f'MARKS["{name}"]' not in source and f"MARKS['{name}']" not in source] == []


@pytest.mark.parametrize("word", WORDS)
def test_the_search_finds(word: str) -> None:
    """A word is found however it is packed: in other letters, percent-encoded, as base64 at any offset, in hexadecimal."""
    for packed in (
        word.encode(),
        word.upper().encode(),
        "".join(f"%{ord(char):02x}" for char in word).encode(),
        quote(word).encode(),
        word.encode().hex().upper().encode(),
        *(base64.b64encode(start + word.encode() + b"+tail") for start in (b"", b"1", b"12", b"123")),
    ):
        assert found([word, "never-there"], b'{"a": "' + packed + b'"}') == [word], packed
