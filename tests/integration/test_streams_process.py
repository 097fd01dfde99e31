"""Event streams for browsers of whole processes: environments, workers, TLS, tokens, tickets, reload (dialects: Event streams)."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

from support import scene
from support.environment_samples import write_toml
from support.event_streams import listening
from support.fake_upstream import fake_upstream
from support.pki import HOST, Authority, written
from support.processes import Proxy, our_proxy
from support.token_scene import FRONT_A, UP, knowing_upstream
from support.worker_pools import document

EACH_WORKER = 4
"""Streams of each kind, so that most likely each of two workers has one."""
NOTHING = {"UNLEASH_API_TOKEN": "", "UNLEASH_PROXY_CLIENT_KEYS": "", "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": ""}
KEY_A, KEY_B = "hidden-key-a", "hidden-key-b"
BASE = "/base"


def stream_of(proxy: Proxy, key: str, tls: ssl.SSLContext) -> str:
    """Return the path of the stream in the answer with all flags for a key."""
    with closing(http.client.HTTPSConnection(HOST, proxy.port, context=tls, timeout=20)) as connection:
        body, headers = b'{"context":{}}', {"Authorization": key, "Content-Type": "application/json"}
        connection.request("POST", f"{BASE}/ofrep/v1/evaluate/flags", body, headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
    assert answer.status == 200, content
    return str(content["eventStreams"][0]["endpoint"]["requestUri"])


def test_each_environment_tells_its_own_callers(tmp_path: Path) -> None:
    """A change reaches the keys, the looked-up tokens and the tickets of its environment, in each worker, also after a reload.

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
            "FLAGSVC_FETCH_INTERVAL": "200",
            "FLAGSVC_ACCESS_LOG": "true",
            **NOTHING,
        }
        proxy = stack.enter_context(our_proxy("http://127.0.0.1:1/api", wait_ready=False, **given))
        proxy.program.wait(lambda: all(f"flagsvc ready: {name}: " in proxy.program.output() for name in "ab"), "ready")
        root = f"https://{HOST}:{proxy.port}"
        tickets = {key: stream_of(proxy, key, tls) for key in (KEY_A, KEY_B, FRONT_A)}
        paths = [(f"{BASE}/proxy/stream", key) for key in tickets] + [(path, "") for path in tickets.values()]
        opened = [stack.enter_context(listening(root + path, key, tls=tls)) for path, key in paths * EACH_WORKER]
        assert {each.status for each in opened} == {200}
        of_key_b = {number for number, (_, key) in enumerate(paths * EACH_WORKER) if key == KEY_B or number % 6 == 4}

        def hear() -> tuple[set[str | None], set[str | None]]:
            """Return the next versions of the callers of both environments."""
            a = {each.version() for number, each in enumerate(opened) if number not in of_key_b}
            return a, {opened[number].version() for number in of_key_b}

        first = hear()
        for number in range(2):
            of_a.replace(scene.document(scene.toggle(f"of-a-{number}", project="a")))
            of_b.replace(document(f"b.{number}"))
            told = hear()
            assert [len(each) for each in told] == [1, 1] and not (told[0] | told[1]) & {None, *first[0], *first[1]}, number
            first = told
            if number == 0:
                tables["a"] = {**tables["a"], "clientKeys": [KEY_A, "hidden-key-a-2"]}
                write_toml(tmp_path / "flagsvc.toml", tables)
                os.kill(proxy.program.process.pid, signal.SIGHUP)
                proxy.program.wait(lambda: "environments have changed" in proxy.program.output(), "reading the file")
        (start, ticket), (_, other) = (tickets[key].split("ticket=") for key in (KEY_A, KEY_B))
        forged = f"{other.split('.')[0]}.{ticket.split('.')[1]}"
        with listening(f"{root}{start}ticket={forged}", "", tls=tls) as listener:
            assert listener.status == 401
        assert proxy.program.stop() == 0
        output = proxy.program.output()
        assert "/ofrep/v1/stream" in output and "Traceback" not in output
        assert not [secret for secret in ("hidden", ticket, other, forged) if secret in output]
