"""An HTTP server in a thread, whose answers a function gives. The fake servers of tests that stay within HTTP are made of it."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Request:
    """One request as it came; header names in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """The path without the query."""
        return urlsplit(self.target).path

    @property
    def query(self) -> list[tuple[str, str]]:
        """The query parameters in order."""
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)

    def json(self) -> Any:
        """Return the body read as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """An answer. The server adds the length."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def json_reply(value: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 30
    server: _Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = None if self.server.is_over else self.server.answer(Request(self.command, self.path, headers, body))
        if reply is None:
            self.close_connection = True
            return
        lines = [f"HTTP/1.1 {reply.status} Fake", *(f"{name}: {value}" for name, value in reply.headers.items())]
        if reply.status != 304:
            lines.append(f"Content-Length: {len(reply.body)}")
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + reply.body)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = _serve  # noqa: N815 - the names http.server looks for

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    is_over = False

    def __init__(self, port: int, answer: Callable[[Request], Reply | None]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answer = answer

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing about a caller that went away in the middle, or that does not trust the certificate."""


@contextmanager
def http_server(answer: Callable[[Request], Reply | None], *, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Answer requests at a loopback port, by default a free port, until the block ends; over TLS with these settings.

    Yields the address without a path. Each connection has a thread of its own, and `answer` is called there. If `answer` returns
    None, the connection ends without an answer.
    """
    server = _Server(port, answer)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.is_over = True
        server.shutdown()
        thread.join()
        server.server_close()


def serving(files: Mapping[str, tuple[str, bytes]]) -> AbstractContextManager[str]:
    """Serve files by path, with their media types, on a loopback port; gives the address. Any other path is an empty answer.

    A file that is added while the block runs is served, too.
    """

    def answer(request: Request) -> Reply:
        media, content = files.get(request.path, ("", b""))
        return Reply(200, content, {"Content-Type": media}) if media else Reply(204)

    return http_server(answer)
