"""Event streams for browsers of whole processes: environments, workers, TLS, tokens, tickets, reload (dialects: Event streams)."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import statistics
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from support import scene
from support.environment_samples import write_toml
from support.event_streams import Listener, count, listening, wait_streams
from support.fake_upstream import fake_upstream
from support.flagservers import BACKEND_SECRET, our_flag_server
from support.pki import HOST, Authority, written
from support.processes import KEY, ask, our_proxy
from support.token_scene import FRONT_A, UP, knowing_upstream
from support.worker_pools import document, samples, workers

EACH_WORKER = 4
"""Streams of each kind, so that most likely each of two workers has one."""
STREAMS = 24
"""So many streams that each of two workers has some."""
CHANGES = 5
NOTHING = {"UNLEASH_API_TOKEN": "", "UNLEASH_PROXY_CLIENT_KEYS": "", "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": ""}
KEY_A, NEW_KEY, KEY_B = "hidden-key-a", "hidden-key-of-tomorrow", "hidden-key-b"
BASE = "/base"


class Caller:
    """A caller of one environment, by its key in the header or by a ticket in the URL. It comes back when its stream ends."""

    def __init__(self, root: str, tls: ssl.SSLContext | None, key: str, *, by_ticket: bool) -> None:
        self.root = root
        self.tls, self.key, self.by_ticket = tls, key, by_ticket
        self.stack = ExitStack()
        self.known = ""
        self.listener = self.open()
        self.known = str(self.listener.version())

    def open(self) -> Listener:
        """Open a stream, with the version that the caller has."""
        path = self.find_path() if self.by_ticket else f"{BASE}/proxy/stream?at="
        self.url = self.root + (path.rpartition("at=")[0] + f"at={self.known}" if self.known else path)
        return self.stack.enter_context(listening(self.url, "" if self.by_ticket else self.key, tls=self.tls))

    def find_path(self) -> str:
        """Return the path of the stream in the answer with all flags."""
        host = self.root.removeprefix("https://")
        with closing(http.client.HTTPSConnection(host, context=self.tls, timeout=20)) as connection:
            headers = {"Authorization": self.key, "Content-Type": "application/json"}
            connection.request("POST", f"{BASE}/ofrep/v1/evaluate/flags", b'{"context":{}}', headers)
            answer = connection.getresponse()
            content = json.loads(answer.read())
        assert answer.status == 200, content
        return str(content["eventStreams"][0]["endpoint"]["requestUri"])

    def hear(self) -> str:
        """Return the next version, also if the stream ends before."""
        while (told := self.listener.version()) in (None, self.known):
            if told is None:
                self.listener = self.open()
        self.known = str(told)
        return self.known

    @property
    def ticket(self) -> str:
        """The ticket of the present stream."""
        return parse_qs(urlsplit(self.url).query)["ticket"][0]


def knows(root: str, key: str, tls: ssl.SSLContext) -> bool:
    """Return whether the process that answers takes a key."""
    with listening(f"{root}{BASE}/proxy", key, tls=tls) as answer:
        return answer.status == 200


def test_each_environment_tells_its_own_callers(tmp_path: Path) -> None:
    """A change reaches the keys, the looked-up tokens and the tickets of its environment, in each worker, also over a reload.

    Over our own TLS and below a base path. A ticket with another environment in it opens nothing, and no secret is written.
    """
    authority = Authority()
    tls = authority.client()
    with knowing_upstream() as of_a, fake_upstream(document("b.one")) as of_b, ExitStack() as stack:
        tables: dict[str, Mapping[str, object]] = {
            "a": {"flagsvcUrl": of_a.url, "flagsvcApiToken": UP, "clientKeys": [KEY_A]},
            "b": {"flagsvcUrl": of_b.url, "flagsvcApiToken": "*:b.hidden-up-b", "clientKeys": [KEY_B]},
        }
        given = {
            "FLAGSVC_CONFIG": str(write_toml(tmp_path / "flagsvc.toml", tables)),
            "FLAGSVC_TLS_CERT": written(tmp_path, "pair.pem", authority.issue().both),
            "FLAGSVC_WORKERS": "2",
            "FLAGSVC_TOKEN_VALIDATION": "upstream",
            "PROXY_BASE_PATH": BASE,
            "FLAGSVC_OFREP": "true",
            "FLAGSVC_FETCH_INTERVAL": "1000",
            "FLAGSVC_WATCH_INTERVAL": "1",
            "FLAGSVC_ACCESS_LOG": "true",
            **NOTHING,
        }
        proxy = stack.enter_context(our_proxy("http://127.0.0.1:1/api", wait_ready=False, **given))
        proxy.program.wait(lambda: all(f"flagsvc ready: {name}: " in proxy.program.output() for name in "ab"), "ready")
        root = f"https://{HOST}:{proxy.port}"
        callers = {
            name: [Caller(root, tls, key, by_ticket=by) for key in keys for by in (False, True) for _ in range(EACH_WORKER)]
            for name, keys in {"a": (KEY_A, FRONT_A), "b": (KEY_B,)}.items()
        }
        for caller in (*callers["a"], *callers["b"]):
            stack.callback(caller.stack.close)
        for number in range(2):
            of_a.replace(scene.document(scene.toggle(f"of-a-{number}", project="a")))
            of_b.replace(document(f"b.{number}"))
            told = {name: {caller.hear() for caller in some} for name, some in callers.items()}
            assert [len(each) for each in told.values()] == [1, 1] and told["a"] != told["b"]
            if number == 0:
                tables["a"] = {**tables["a"], "clientKeys": [KEY_A, NEW_KEY]}
                write_toml(tmp_path / "flagsvc.toml", tables)
                proxy.program.wait(lambda: {knows(root, NEW_KEY, tls) for _ in range(8)} == {True}, "reading the file")
        tickets = {name: next(caller.ticket for caller in some if caller.by_ticket) for name, some in callers.items()}
        forged = f"{tickets['b'].split('.')[0]}.{tickets['a'].split('.')[1]}"
        with listening(f"{root}{BASE}/ofrep/v1/stream?ticket={forged}", "", tls=tls) as listener:
            assert listener.status == 401
        output = proxy.program.output()
        assert "/ofrep/v1/stream" in output and "Traceback" not in output
        assert not [secret for secret in ("hidden", *tickets.values(), forged) if secret in output]


def test_workers_follow_one_stream_of_the_upstream() -> None:
    """A change at the flag server is a hint at every worker, mostly within a second. The callers of a killed worker come back and
    hear what they missed. The metrics are sums over the workers, also of the killed worker."""
    options = {"FLAGSVC_WORKERS": "2", "FLAGSVC_FETCH_INTERVAL": "60000", "UNLEASH_API_TOKEN": BACKEND_SECRET}
    with (
        our_flag_server(given={"features": [{"name": "plain", "enabled": []}]}) as server,
        our_proxy(server.url, PROXY_BASE_PATH=BASE, **options) as proxy,
        ExitStack() as stack,
    ):

        def upstream_has(*samples: str) -> bool:
            return {f"flagsvc_streams_{each}" for each in samples} <= {*ask(f"{server.root}/metrics").text.splitlines()}

        def change(number: int) -> set[str]:
            """Switch the flag, and return the versions that the callers hear."""
            server.admin(f"/projects/default/features/plain/environments/development/{'off' if number % 2 else 'on'}", {})
            return {caller.hear() for caller in callers}

        proxy.program.wait(lambda: upstream_has("open 1.0"), "following the flag server")
        callers = [Caller(f"http://127.0.0.1:{proxy.port}", None, KEY, by_ticket=False) for _ in range(STREAMS)]
        for caller in callers:
            stack.callback(caller.stack.close)
        times = []
        for number in range(CHANGES):
            began = time.monotonic()
            assert len(change(number)) == 1
            times.append(time.monotonic() - began)
        assert statistics.median(times) < 1.0
        wait_streams(proxy, CHANGES * STREAMS, "told_total")
        before = [caller.listener for caller in callers]
        killed = workers(proxy)[0]
        os.kill(killed, signal.SIGKILL)
        proxy.program.wait(lambda: killed not in workers(proxy) and samples(proxy)["flagsvc_workers"] == 2, "replacing the worker")
        assert len(change(CHANGES)) == 1
        back = sum(caller.listener is not old for caller, old in zip(callers, before, strict=True))
        assert 0 < back < STREAMS
        wait_streams(proxy, STREAMS)
        wait_streams(proxy, STREAMS + back, "opened_total")
        assert 0 <= (CHANGES + 1) * STREAMS - count(proxy, "told_total") <= back, "those who come back may have missed nothing"
        assert upstream_has("open 1.0", "opened_total 1.0")
