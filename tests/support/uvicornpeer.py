"""uvicorn's HTTP/1.1 protocol with our head limit and our messages for bytes that are not a request: a peer of our server."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from flagsvc.http.messages import Response


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol over httptools; `bounded` makes a class of it that a server can use."""

    bound: int
    """Bytes that may come in a row without the request getting on."""
    refusal: Callable[[int], Response]
    """What to answer, by status: 400 for what is no HTTP, 431 for a head beyond the bound."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._got_on = False
        self._idle_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take bytes, and count those in a row that neither begin nor complete a head nor belong to a body."""
        self._got_on = False
        super().data_received(data)
        if self._got_on:
            self._idle_bytes = 0
            return
        self._idle_bytes += len(data)
        if self._idle_bytes > self.bound and not self.transport.is_closing():
            self._refuse(self.refusal(431))

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._got_on = True

    def on_headers_complete(self) -> None:
        """Complete the head."""
        self._got_on = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._got_on = True
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP with the application's message."""
        self._refuse(self.refusal(400))

    def _refuse(self, response: Response) -> None:
        """Write an answer to a request that is not complete, and close the connection."""
        status = f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n".encode()
        headers = [*self.server_state.default_headers, *response.headers(), (b"connection", b"close")]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(status + lines + b"\r\n" + response.body)
        self.transport.close()


def bounded(limit: int, refuse: Callable[[int], Response]) -> type[BoundedProtocol]:
    """Return the protocol with a limit in bytes, and the answers, by status, to requests that the application never sees."""

    class Bounded(BoundedProtocol):
        """The protocol of one server."""

        bound = limit
        refusal = staticmethod(refuse)

    return Bounded
