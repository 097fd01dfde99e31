"""Encodes a response: the status line, the server's own headers, the answer's headers, the body. Compiled.

The part that many answers share (status, date, fixed headers) is encoded once. It is kept until the server's headers change, which
happens once a second.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final, Protocol

from flagsvc.http.messages import Headers, Response

MAX_KEPT: Final = 256
"""The most encoded beginnings that are kept."""

KEEP: Final = b"\r\n"
"""The end of a head on a connection that stays open."""
KEEP_1_0: Final = b"connection: keep-alive\r\n\r\n"
"""The same for HTTP/1.0, where a connection closes unless the answer says otherwise."""
CLOSE: Final = b"connection: close\r\n\r\n"
"""The same on a connection that closes."""

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class ServerState(Protocol):
    """What uvicorn's server keeps of its connections and reads from them.

    Every answer begins with `default_headers`, such as the date. The list is replaced, never changed.
    """

    connections: set[object]
    tasks: set[asyncio.Task[object]]
    total_requests: int
    default_headers: list[tuple[bytes, bytes]]


class Beginning:
    """The encoded beginning of all answers with one status and one list of fixed headers."""

    def __init__(self, status: int, fixed: Headers, data: bytes) -> None:
        self.status = status
        self.fixed = fixed
        self.data = data


class ResponseEncoder:
    """Encodes the answers of one server."""

    def __init__(self, server: ServerState) -> None:
        self.server = server
        self.headers: Headers = []
        self.lines: bytes = b""
        self.kept: dict[int, Beginning] = {}
        self.last: Beginning = Beginning(0, [], b"")

    def encode(self, response: Response, ending: bytes, body: list[bytes]) -> bytes:
        """Return the encoded head of an answer, followed by the pieces of `body`. `ending` is KEEP, KEEP_1_0 or CLOSE."""
        if self.server.default_headers is not self.headers:
            self.update()
        beginning = self.last
        if beginning.fixed is not response.fixed or beginning.status != response.status:
            beginning = self.beginning(response)
        parts = [beginning.data]
        for name, value in response.own:
            parts.append(name)
            parts.append(b": ")
            parts.append(value)
            parts.append(b"\r\n")
        parts.append(ending)
        parts += body
        return b"".join(parts)

    def update(self) -> None:
        """Use the present headers of the server."""
        self.headers = self.server.default_headers
        self.lines = header_lines(self.headers)
        self.kept = {}
        self.last = Beginning(0, [], b"")

    def beginning(self, response: Response) -> Beginning:
        """Return the beginning of an answer, and remember it as the last one."""
        key = id(response.fixed) * 1024 + response.status
        found = self.kept.get(key)
        if found is None:
            data = status_line(response.status) + self.lines + header_lines(response.fixed)
            found = Beginning(response.status, response.fixed, data)
            if len(self.kept) < MAX_KEPT:
                self.kept[key] = found
        self.last = found
        return found


def header_lines(headers: Headers) -> bytes:
    """Return header fields as lines."""
    return b"".join([name + b": " + value + b"\r\n" for name, value in headers])


def status_line(status: int) -> bytes:
    """Return the first line of an answer."""
    try:
        phrase = HTTPStatus(status).phrase.encode()
    except ValueError:
        phrase = b""
    return b"HTTP/1.1 " + str(status).encode() + b" " + phrase + b"\r\n"
