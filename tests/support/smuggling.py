"""Shared by the tests of smuggling: balancers that share connections among callers, applications mounted in uvicorn."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import uvicorn

from support.balancers import haproxy_as, nginx_as

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
