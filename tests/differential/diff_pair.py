"""The two proxies beside each other on one upstream server, and connections that stay open."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import diff_documents
from diff_requests import Question

from support import processes
from support.fake_upstream import FakeUpstream, fake_upstream

Json = dict[str, Any]
INTERVAL = {"UNLEASH_FETCH_INTERVAL": "20", "UNLEASH_METRICS_INTERVAL": "60000", "LOG_LEVEL": "fatal"}


@dataclass(frozen=True)
class Reply:
    """The answer of a proxy. Status 0 is a connection that ended without an answer."""

    status: int
    body: bytes = b""

    def toggles(self) -> list[Json]:
        """Return the toggles of an evaluation's answer."""
        return list(json.loads(self.body)["toggles"])


class Connection:
    """A connection to one proxy, opened again whenever it was closed. Answers are read in the order of the requests."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._socket: socket.socket | None = None
        self._buffer = b""

    def send(self, content: bytes) -> None:
        """Send the bytes of requests."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), 30)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(content)

    def receive(self, method: str = "GET") -> Reply:
        """Return the next answer, one to a request of `method`; one of status 0 when the proxy hung up instead."""
        try:
            head = self._until(b"\r\n\r\n").decode("latin-1").lower()
            status = int(head[9:12])
            body = b"" if status in (204, 304) or method == "HEAD" else self._body(head)
        except ConnectionError:
            self.close()
            return Reply(0)
        if "\r\nconnection: close" in head:
            self.close()
        return Reply(status, body)

    def ask(self, question: Question) -> Reply:
        """Send one request and return its answer; once more where an idle connection had been closed meanwhile."""
        fresh, content, method = self._socket is None, question.content(), question.method
        with contextlib.suppress(ConnectionError):
            self.send(content)
            reply = self.receive(method)
            if reply.status or fresh:
                return reply
        self.close()
        try:
            self.send(content)
            return self.receive(method)
        except ConnectionError:
            self.close()
            return Reply(0)

    def close(self) -> None:
        """Close the connection; what was not read is lost."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._buffer = None, b""

    def _body(self, head: str) -> bytes:
        if "\r\ntransfer-encoding: chunked" in head:
            return b"".join(iter(self._chunk, b""))
        if "\r\ncontent-length:" not in head:
            return self._rest()
        return self._exactly(int(head.partition("\r\ncontent-length:")[2].partition("\r\n")[0]))

    def _rest(self) -> bytes:
        """Return all that comes until the proxy closes the connection."""
        with contextlib.suppress(ConnectionError):
            while True:
                self._more()
        found, self._buffer = self._buffer, b""
        return found

    def _chunk(self) -> bytes:
        size = int(self._until(b"\r\n"), 16)
        return self._exactly(size + 2)[:-2]

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._more()
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _more(self) -> None:
        assert self._socket is not None
        received = self._socket.recv(1 << 16)
        if not received:
            raise ConnectionResetError("the proxy closed the connection")
        self._buffer += received


class Pair:
    """Both proxies, their upstream server, and one open connection to each."""

    def __init__(self, upstream: FakeUpstream, settings: Mapping[str, str], stack: ExitStack) -> None:
        self.upstream = upstream
        self._settings = {**INTERVAL, **settings}
        self._stack = stack
        self._reference_stack = stack.enter_context(ExitStack())
        self._loads = 0
        self.ours = stack.enter_context(processes.our_proxy(upstream.url, **self._settings))
        self.our_connection = Connection(self.ours.port)
        stack.callback(self.our_connection.close)
        self.restart_reference()

    def restart_reference(self) -> None:
        """Start the reference proxy, for the first time or after it has ended."""
        self._reference_stack.close()
        self.reference = self._reference_stack.enter_context(processes.reference_proxy(self.upstream.url, **self._settings))
        self.reference_connection = Connection(self.reference.port)
        self._reference_stack.callback(self.reference_connection.close)

    def load(self, document: Json) -> None:
        """Give both proxies `document` and return when both answer from it."""
        self._loads += 1
        content = diff_documents.with_marker(document, f"load-{self._loads}")
        name = content["features"][-1]["name"]
        self.upstream.replace(content)
        body = json.dumps({"toggles": [name]}).encode()
        question = Question("POST", "", body)
        for connection, program in self._sides():
            program.wait(lambda c=connection: _on(c.ask(question)), f"serving document {name}", 20)  # type: ignore[misc]

    def _sides(self) -> list[tuple[Connection, processes.Program]]:
        return [(self.reference_connection, self.reference.program), (self.our_connection, self.ours.program)]

    def ask(self, question: Question) -> tuple[Reply, Reply]:
        """Return the reference's answer and ours; the reference is started again if the question ended it."""
        replies = self.reference_connection.ask(question), self.our_connection.ask(question)
        if replies[0].status == 0:
            self._after_a_crash()
        return replies

    def _after_a_crash(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.reference.program.process.wait(5)
        self.restart_reference()

    def ask_all(self, questions: Sequence[Question]) -> list[tuple[Reply, Reply]]:
        """Return both answers to each question, the questions sent behind each other without waiting."""
        content = b"".join(question.content() for question in questions)
        sides = []
        for connection, _ in self._sides():
            connection.send(content)
        for connection, _ in self._sides():
            sides.append([connection.receive() for _ in questions])
        return list(zip(*sides, strict=True))


def _on(reply: Reply) -> bool:
    return reply.status == 200 and reply.toggles()[0]["enabled"]


@contextmanager
def pair(document: Json, settings: Mapping[str, str] | None = None) -> Iterator[Pair]:
    """Run both proxies on one upstream server that serves `document`, with the same `settings` in both environments."""
    with ExitStack() as stack:
        upstream = stack.enter_context(fake_upstream(document))
        yield Pair(upstream, settings or {}, stack)
