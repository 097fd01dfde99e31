"""What a handler of the flag server gets and gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger
from flagsvc.http.call import Call as Head
from flagsvc.http.limits import Reached
from flagsvc.http.messages import Request
from flagsvc.server.api.counts import AnswerCounts
from flagsvc.server.store.access import Keyring
from flagsvc.server.store.actors import Actor, ClientToken
from flagsvc.server.store.store import Store

if TYPE_CHECKING:
    from flagsvc.server.store.documents import Documents


@dataclass
class ProcessStatus:
    """How far the process is: `draining` tells that it is about to end."""

    draining: bool = False


@dataclass(frozen=True)
class ApiContext:
    """What handlers may use. `url` is the address the server is reached at, without a slash at the end; `base` the path that
    everything is below; `counts` counts answers, `reached` what was turned away at a limit, `life` is how far the process is.
    """

    store: Store
    documents: Documents
    keyring: Keyring
    clock: Clock
    log: Logger
    url: str = ""
    base: str = ""
    counts: AnswerCounts = field(default_factory=AnswerCounts)
    reached: Reached = field(default_factory=Reached)
    life: ProcessStatus = field(default_factory=ProcessStatus)


@dataclass
class ApiCall:
    """One request that passed the checks of its route.

    `head` is what the head of the request says. `params` are the path's parameters, decoded; `query` the query string's, each in
    the order sent; `body` the coerced JSON body as it may be stored, `sent` the same with texts as they were sent. `actor` is who
    asks on the admin API, `token` what asks on the client API.
    """

    head: Head
    server: ApiContext
    params: dict[str, str] = field(default_factory=dict)
    query: dict[str, list[str]] = field(default_factory=dict)
    body: Any = None
    sent: Any = None
    known_actor: Actor | None = None
    known_token: ClientToken | None = None

    @property
    def request(self) -> Request:
        """The request itself: its method, path and place."""
        return self.head.request

    @property
    def store(self) -> Store:
        """The database of flags."""
        return self.server.store

    @property
    def actor(self) -> Actor:
        """Who asks; there on every route of the admin API."""
        if self.known_actor is None:
            raise LookupError("a route without Auth.ADMIN has no actor")
        return self.known_actor

    @property
    def token(self) -> ClientToken:
        """The backend token that asks; there on every route of the client API."""
        if self.known_token is None:
            raise LookupError("a route without Auth.CLIENT has no token")
        return self.known_token

    def first(self, name: str) -> str | None:
        """Return the first value of a parameter of the query string; None without one."""
        values = self.query.get(name)
        return values[0] if values else None


@dataclass(frozen=True)
class ApiAnswer:
    """What a handler answers: `body` is a JSON value, bytes that already are JSON, or None for no body at all.

    `packed` is the gzip form of a body of bytes, where it is there already; `tag` its entity tag, where the handler knows it.
    """

    body: Any = None
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    packed: bytes | None = None
    tag: bytes | None = None
