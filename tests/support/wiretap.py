"""A relay on a loopback port that passes bytes on to a server and records all sent bytes.

It also searches bytes for words that must not appear, in any packing.
"""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar
from urllib.parse import unquote_to_bytes


class Record(Protocol):
    """Takes the bytes of one direction of a connection."""

    def extend(self, data: bytes, /) -> None:
        """Take the next bytes."""


class Wiretap:
    """The bytes sent to the server at `port`, by connection.

    While `cut` is set, new connections end at once; `refused` is how many did. `far` is the server's port.
    """

    def __init__(self, far: int) -> None:
        self.port = 0
        self.cut = False
        self.refused = 0
        self.connections: list[bytearray] = []
        self.far = far
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def sent(self) -> bytes:
        return b"\n".join(bytes(each) for each in self.connections)

    def record(self) -> tuple[Record, Record]:
        """Return what takes the bytes of a new connection: those to the server, and those from it."""
        kept = bytearray()
        self.connections.append(kept)
        return kept, bytearray()

    def accept(self, listener: socket.socket) -> None:
        """Take connections until the listener is closed."""
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            if self.cut:
                self.refused += 1
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.far))
            except OSError:  # nobody is there any more
                near.close()
                continue
            self._sockets += [near, far]
            thread = threading.Thread(target=pass_on, args=(near, far, *self.record()))
            self._threads.append(thread)
            thread.start()

    def hang_up(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        self.hang_up()
        for thread in self._threads:
            thread.join(10)


def pass_on(near: socket.socket, far: socket.socket, to_server: Record, from_server: Record) -> None:
    """Hand on bytes in both directions until there are no more, and close both ends."""
    with near, far:
        back = threading.Thread(target=copy, args=(far, near, from_server))
        back.start()
        copy(near, far, to_server)
        back.join()


def copy(source: socket.socket, sink: socket.socket, record: Record) -> None:
    """Hand on bytes until there are no more, and record them."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            record.extend(data)
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


T = TypeVar("T", bound=Wiretap)


@contextmanager
def relaying(tap: T) -> Iterator[T]:
    """Run a relay until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tap.port = listener.getsockname()[1]
        accepting = threading.Thread(target=tap.accept, args=(listener,))
        accepting.start()
        try:
            yield tap
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            accepting.join(10)
            tap.end()


def wiretap(far: int) -> AbstractContextManager[Wiretap]:
    return relaying(Wiretap(far))


def found(words: Iterable[str], content: bytes) -> list[str]:
    """Return the words that are in the bytes in any letter case: as they are, percent-encoded, as base64, in hexadecimal."""
    variants = (content.lower(), unquote_to_bytes(content.replace(b"+", b" ")).lower())
    return [
        word
        for word in words
        if any(word.lower().encode() in each for each in variants)
        or any(part in content for part in base64_of(word))
        or word.encode().hex().encode() in variants[0]
    ]


def base64_of(word: str) -> list[bytes]:
    """Return the base64 text of a word at each possible offset, without the ends that depend on its neighbours."""
    return [
        packed[keep:-4] for shift, keep in ((0, 0), (1, 4), (2, 4)) for packed in [base64.b64encode(b"x" * shift + word.encode())]
    ]
