"""Sends the same bytes to our HTTP server and to uvicorn's protocol around the ASGI application, and returns both replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from flagsvc.http.server import ConnectionFactory, ConnectionLimits
from flagsvc.http.server.asgi import AsgiApp
from flagsvc.http.server.connection import EXTRA_BYTES
from flagsvc.proxy.api.service import Service
from support.frontkit import FakeTransport, Fields, State
from support.uvicornpeer import bounded

QUIET_TURNS = 4
"""Turns of the loop in which no task gets on, until nothing more is waited for: callbacks of tasks take some."""


@dataclass(frozen=True)
class Reply:
    """One answer. Its length tells where the next one begins."""

    status: int
    fields: Fields
    body: bytes

    @property
    def closes(self) -> bool:
        """Whether it says that it is the last."""
        return ("connection", "close") in self.fields


@dataclass(frozen=True)
class Talk:
    """The result of one connection: the answers, and whether the other side closed it."""

    replies: tuple[Reply, ...]
    ended: bool


async def nothing() -> None:
    """Measuring for a start and a stop that need nothing."""


def over_front(service: Service) -> Any:
    """Return a connection of the front."""
    return ConnectionFactory(lambda: service, ConnectionLimits())(None, State(), {})


def over_uvicorn(service: Service) -> Any:
    """Return a connection of uvicorn's protocol with our head limit and our messages for bytes that are not a request."""
    return under(bounded(service.header_limit + service.query_limit + EXTRA_BYTES, service.early_refusal), service)


def over_uvicorn_alone(service: Service) -> Any:
    """Return a connection of uvicorn's protocol as it is."""
    return under(HttpToolsProtocol, service)


def under(protocol: Any, service: Service) -> Any:
    """Return a connection of a protocol of uvicorn's around the ASGI application."""
    app = AsgiApp(service, nothing, nothing)
    config = uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None, access_log=False)
    config.load()
    return protocol(config, State(), {}, asyncio.get_running_loop())


async def talk(make: Callable[[Service], Any], service: Service, pieces: list[bytes]) -> Talk:
    """Send the pieces over a connection one by one, and return the result."""
    connection = make(service)
    transport = FakeTransport(quiet=True)
    transport.protocol = connection
    connection.connection_made(transport)
    for piece in pieces:
        if transport.over:
            break
        assert transport.reading, "it still does not read although everything has settled"
        connection.data_received(piece)
        await settle()
    ended = transport.over
    connection.connection_lost(None)
    await settle()
    return Talk(replies(bytes(transport.data)), ended)


async def settle() -> None:
    """Let every answer that can be made be made."""
    own = asyncio.current_task()
    quiet = 0
    while quiet < QUIET_TURNS:
        await asyncio.sleep(0)
        busy = any(not task.done() and not waits(task) for task in asyncio.all_tasks() if task is not own)
        quiet = 0 if busy else quiet + 1


def waits(task: asyncio.Task[Any]) -> bool:
    """Return whether a task waits for something that only more bytes bring about."""
    waiter = getattr(task, "_fut_waiter", None)
    return waiter is not None and not waiter.done()


def replies(data: bytes) -> tuple[Reply, ...]:
    """Return the answers in received bytes, without interim answers."""
    found = []
    while data:
        first, _, rest = data.partition(b"\r\n\r\n")
        line, *lines = first.split(b"\r\n")
        assert line.startswith(b"HTTP/1.1 "), line
        status = int(line.split(b" ")[1])
        fields = [
            (name.decode(), value.decode("latin-1")) for name, _, value in (each.partition(b": ") for each in lines)
        ]
        length = int(dict(fields).get("content-length", "0"))
        body = b"" if status in (100, 204, 304) or not rest or rest.startswith(b"HTTP/1.1 ") else rest[:length]
        data = rest[len(body) :]
        if status != 100:
            found.append(Reply(status, [pair for pair in fields if pair[0] not in ("date", "server")], body))
    return tuple(found)
