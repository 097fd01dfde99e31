"""A relay to an HTTP server that tells which requests went over it, and how each was answered."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from httptools import HttpRequestParser, HttpResponseParser

from support.wiretap import Record, Wiretap, relaying


@dataclass(frozen=True)
class Exchange:
    """One request and its answer. Names of headers are in lower case; `target` has the query."""

    method: str
    target: str
    headers: dict[str, str]
    status: int
    answered: dict[str, str]

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


class Heads:
    """Reads the messages of one direction of a connection. `done` is called at the end of each head."""

    def __init__(self, parser: Callable[[object], Any], done: Callable[[Heads], None]) -> None:
        self.parser = parser(self)
        self.done = done
        self.url = b""
        self.headers: dict[str, str] = {}

    def extend(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Tell the head, and begin the next one."""
        self.done(self)
        self.url, self.headers = b"", {}


class HttpTap(Wiretap):
    """The exchanges with the server at `port`, in the order of their answers."""

    def __init__(self, far: int) -> None:
        super().__init__(far)
        self.exchanges: list[Exchange] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def record(self) -> tuple[Record, Record]:
        """Return the readers of a new connection."""
        waiting: deque[tuple[str, str, dict[str, str]]] = deque()

        def asked(head: Heads) -> None:
            waiting.append((head.parser.get_method().decode(), head.url.decode("latin-1"), head.headers))

        def answered(head: Heads) -> None:
            if (status := head.parser.get_status_code()) >= 200:
                self.exchanges.append(Exchange(*waiting.popleft(), status, head.headers))

        return Heads(HttpRequestParser, asked), Heads(HttpResponseParser, answered)

    def statuses(self, method: str = "", path: str = "") -> Counter[int]:
        """Return how often each status was answered, to a method and a path if they are given."""
        return Counter(each.status for each in self.exchanges if method in ("", each.method) and path in ("", each.path))


@contextmanager
def http_tap(far: int) -> Iterator[HttpTap]:
    """Run a relay to the loopback port `far` until the block ends."""
    with relaying(HttpTap(far)) as tap:
        yield tap
