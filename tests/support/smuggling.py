"""Shared by the tests of smuggling: balancers that share connections among callers, both programs, mounted in uvicorn or not."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from flagsvc import ProxyOptions, create_app
from flagsvc.server.application import create_flag_server
from flagsvc.settings.server import ServerOptions
from support.balancers import haproxy_as, nginx_as
from support.flagservers import GIVEN, our_flag_server
from support.processes import our_proxy

WEBSOCKETS = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;"
"""The lines of nginx's own page on WebSockets, as they stand before many a service."""
HAPROXY = """
global
    maxconn 200
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
    timeout queue 5s
    http-reuse always
frontend callers
    bind 127.0.0.1:{port}
    default_backend servers
backend servers
{servers}
"""


def before(port: int, health: str, lines: str) -> AbstractContextManager[int]:
    """Run nginx before a port, with a single connection that stays."""
    return nginx_as(f"    server 127.0.0.1:{port};", health, f"proxy_set_header Host $host; {lines}", kept=1)


Run = Callable[[int, str], AbstractContextManager[int]]
BALANCERS: dict[str, Run] = {
    "nginx": lambda port, health: before(port, health, 'proxy_set_header Connection "";'),
    "nginx with WebSocket lines": lambda port, health: before(port, health, WEBSOCKETS),
    "HAProxy": lambda port, health: haproxy_as(HAPROXY, f"    server one 127.0.0.1:{port} maxconn 1", health),
}
"""What runs a balancer before a port until the block ends, given the path of health; it gives its own port."""


@contextmanager
def mounted(app: Any) -> Iterator[int]:
    """Run an application in uvicorn as it is, in a thread; give its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, http="httptools", log_config=None, log_level="critical"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)


def written(folder: Path, content: Mapping[str, Any]) -> str:
    """Write some content as JSON, and return the path of the file."""
    (folder / "content.json").write_text(json.dumps(content))
    return str(folder / "content.json")


@contextmanager
def proxy_process(folder: Path, document: Mapping[str, Any]) -> Iterator[int]:
    with our_proxy(f"file://{written(folder, document)}", UNLEASH_PROXY_CLIENT_KEYS="client-key") as proxy:
        yield proxy.port


@contextmanager
def proxy_mounted(folder: Path, document: Mapping[str, Any]) -> Iterator[int]:
    url = f"file://{written(folder, document)}"
    options = ProxyOptions(flagsvc_url=url, flagsvc_api_token="none", client_keys="client-key", storage="none")
    with mounted(create_app(options)) as port:
        yield port


@contextmanager
def server_process(folder: Path, given: Mapping[str, Any]) -> Iterator[int]:
    with our_flag_server(folder=folder, given=given) as server:
        yield int(server.root.rpartition(":")[2])


@contextmanager
def server_mounted(folder: Path, given: Mapping[str, Any]) -> Iterator[int]:
    options = ServerOptions(database=str(folder / "mounted.db"), seed=written(folder, {**GIVEN, **given}))
    with mounted(create_flag_server(options)) as port:
        yield port


PROXIES = {"proxy": proxy_process, "proxy, mounted": proxy_mounted}
SERVERS = {"flag server": server_process, "flag server, mounted": server_mounted}
"""What runs a program until the block ends, and gives its port: a proxy of a document for the key of the odd heads, and a flag
server with GIVEN and more."""
