"""A proxy with two environments, `a` and `b`, each with an upstream server of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from flagsvc import ProxyOptions
from support.loopback import Answer, Loopback, Request, Writer
from support.scene import Proxy, Scene, answer_as_server, document, scene, toggle

KEYS = {"a": "key-of-a", "b": "key-of-b"}
SERVERS = {"a": "sdk-token-of-a", "b": "sdk-token-of-b"}
TOKENS = {"a": "*:production.token-of-a", "b": "*:staging.token-of-b"}


@dataclass
class Server:
    """What an upstream server answers: its document, unless `special` has an answer for the last part of a path."""

    loopback: Loopback
    served: object
    special: dict[str, Answer] = field(default_factory=dict)

    async def answer(self, request: Request, reader: Any, writer: Writer) -> None:
        """Answer as a flag server does."""
        await answer_as_server(self.served, self.special, request, reader, writer)

    def received(self, what: str) -> list[Request]:
        """Return the requests so far whose path ends in `what`."""
        return [request for request in self.loopback.requests if request.path.endswith(f"/{what}")]

    def counted(self) -> dict[str, dict[str, int]]:
        """Return the toggles of all metrics posts, with how often they were on and off."""
        sums: dict[str, dict[str, int]] = {}
        for request in self.received("metrics"):
            for name, tally in json.loads(request.body)["bucket"]["toggles"].items():
                known = sums.setdefault(name, {"yes": 0, "no": 0})
                sums[name] = {state: known[state] + tally[state] for state in known}
        return sums


class Both:
    """A scene with a server for each environment. Each serves a toggle of its own, and `shared`, which only one has on."""

    def __init__(self, around: Scene) -> None:
        self.around = around
        off = toggle("shared", enabled=False)
        self.a = Server(around.upstream, document(toggle("of-a"), toggle("shared")))
        self.b = Server(around.other, document(toggle("of-b"), off))
        around.upstream.script(self.a.answer)
        around.other.script(self.b.answer)

    def options(self, *, b: dict[str, object] | None = None, **more: Any) -> ProxyOptions:
        """Return options of both environments, the second one with more options of its own."""
        urls = {"a": self.around.upstream.url, "b": self.around.other.url}
        environments: dict[str, dict[str, object]] = {
            name: {
                "flagsvc_url": f"{url}/api",
                "flagsvc_api_token": TOKENS[name],
                "client_keys": KEYS[name],
                "exp_server_side_sdk_config_tokens": SERVERS[name],
                **((b or {}) if name == "b" else {}),
            }
            for name, url in urls.items()
        }
        return ProxyOptions(**{"storage": "none", "environments": environments, **more})

    @asynccontextmanager
    async def proxy(self, **more: Any) -> AsyncIterator[Proxy]:
        """Run the proxy until the block ends."""
        async with self.around.proxy(self.options(**more)) as proxy:
            yield proxy


@asynccontextmanager
async def both(folder: Path) -> AsyncIterator[Both]:
    """Run the two servers until the block ends."""
    async with scene(folder) as around:
        yield Both(around)


async def get(proxy: Proxy, path: str, key: str, **headers: str) -> httpx.Response:
    """Return the answer to a GET with a key."""
    return await proxy.ask(
        "GET", path, {"authorization": key, **{name.replace("_", "-"): each for name, each in headers.items()}}
    )


async def post(proxy: Proxy, path: str, key: str, body: object) -> int:
    """Return the status of the answer to a POST with a key."""
    return (await proxy.ask("POST", path, {"authorization": key}, body)).status_code


def names(answer: httpx.Response) -> list[str]:
    """Return the names of the toggles or features of an answer."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return [each["name"] for each in body.get("toggles", body.get("features"))]
