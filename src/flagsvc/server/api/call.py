"""The input of the flag server's handlers.

It has no NUL characters, which PostgreSQL cannot store in texts (ours: the real server answers 500).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger
from flagsvc.http.call import Call
from flagsvc.http.counts import RouteCounts, Traffic
from flagsvc.http.messages import Request, below
from flagsvc.http.openapi import Operation
from flagsvc.http.reached_limits import Reached
from flagsvc.http.streams import StreamLimits, Streams
from flagsvc.http.trust import TrustedProxies
from flagsvc.pages.forms import Form
from flagsvc.pages.live import EventStreams
from flagsvc.pages.sign_in_tries import SignInTries
from flagsvc.server.api.deltas import Deltas
from flagsvc.server.api.errors import invalid
from flagsvc.server.api.pollers import Pollers
from flagsvc.server.sign_in.ways import NamedPerson, SignInWays
from flagsvc.server.store.actors import Actor, ClientToken
from flagsvc.server.store.batch.differences import DifferingFlags
from flagsvc.server.store.documents import UnfoldedDocuments
from flagsvc.server.store.keyring import KeyRenewal, Keyring
from flagsvc.server.store.store import Store
from flagsvc.server.webhooks.reach import Reach
from flagsvc.server.webhooks.sender import OUTCOMES, Counts
from flagsvc.server.webhooks.trials import Trials

if TYPE_CHECKING:
    from flagsvc.server.store.documents import Documents


ENTRIES = "entries"
"""The key of what reports have that cannot be read."""


@dataclass
class ProcessStatus:
    """The state of the process; `draining` means that it will end soon."""

    draining: bool = False


@dataclass(frozen=True)
class ApiContext:
    """The services for handlers. `url` is the server's public address, without a slash at the end; `base` is its base path.

    `counts` counts answers by route, method and status, `reached` counts requests that were rejected at a limit, and `traffic` what
    connections do. `pollers` knows who polls, and what each has. `unfolded` has documents for explanations, `differing` what
    differs between environments. `streams` are the open streams of pages, `caller_streams` those of callers of the APIs, and
    `deltas` what they hear. `trust` is the option trustProxy, and `tries` are the tries to sign in that are left, `ways` the ways
    to sign in beside tokens and links. `renewal` makes new tokens known. `attempts` counts those of webhooks, `trials` sends tests
    of webhooks that are not stored, `malformed` counts the ENTRIES of reports that cannot be read. `described` are the operations
    of the OpenAPI document that another contract answers. `metrics_apart` tells that callers get no metrics, because operators have
    an address of their own, and `offers_streaming` that SDKs hear of streams.
    """

    store: Store
    documents: Documents
    keyring: Keyring
    clock: Clock
    log: Logger
    url: str = ""
    base: str = ""
    counts: RouteCounts = field(default_factory=RouteCounts)
    reached: Reached = field(default_factory=Reached)
    pollers: Pollers = field(default_factory=Pollers)
    process: ProcessStatus = field(default_factory=ProcessStatus)
    unfolded: UnfoldedDocuments = field(default_factory=UnfoldedDocuments)
    differing: DifferingFlags = field(default_factory=DifferingFlags)
    streams: EventStreams = field(default_factory=EventStreams)
    caller_streams: Streams = field(default_factory=lambda: Streams(StreamLimits()))
    trust: TrustedProxies = field(default_factory=lambda: TrustedProxies(False))
    described: list[Operation] = field(default_factory=list)
    ways: SignInWays = field(default_factory=SignInWays)
    attempts: Counts[str] = field(default_factory=lambda: Counts(OUTCOMES))
    trials: Trials = field(default_factory=lambda: Trials(Reach(())))
    metrics_apart: bool = False
    offers_streaming: bool = False
    traffic: Traffic = field(default_factory=Traffic)
    malformed: Counts[str] = field(default_factory=lambda: Counts([ENTRIES]))
    renewal: KeyRenewal = field(init=False)
    tries: SignInTries = field(init=False)
    provider_tries: SignInTries = field(init=False)
    deltas: Deltas = field(init=False)

    def __post_init__(self) -> None:
        """Make what needs other parts: the renewal of tokens, the limit on tries to sign in, and the changes of documents."""
        object.__setattr__(self, "renewal", KeyRenewal(self.store, self.clock))
        for name in ("tries", "provider_tries"):
            object.__setattr__(self, name, SignInTries(self.clock, self.reached))
        object.__setattr__(self, "deltas", Deltas(self.documents, self.pollers, self.caller_streams, self.clock, self.log))


class Caller(NamedTuple):
    """The caller of a request: a user or an admin token, a backend token, or neither.

    `session` is the secret of the session that told the user; empty if a token did. `person` is the user that a proxy names, on
    pages. That alone opens nothing.
    """

    actor: Actor | None = None
    token: ClientToken | None = None
    session: str = ""
    person: NamedPerson | None = None

    @property
    def is_known(self) -> bool:
        """Whether a token or a session has told who it is."""
        return self.actor is not None or self.token is not None


ANONYMOUS = Caller()


@dataclass
class ApiCall:
    """One request that passed the checks of its route.

    `head` is the parsed head. `params` are the decoded parameters of the path, `query` those of the query string, in the order
    sent. `body` is the coerced JSON body as it can be stored, `sent` the same with its original texts. `form` are the fields of a
    form. `actor` is the caller of the admin API or of a page, `token` that of the client API. `as_data` tells that the data of a
    page is wanted.
    """

    head: Call
    server: ApiContext
    caller: Caller = ANONYMOUS
    params: dict[str, str] = field(default_factory=dict)
    query: dict[str, list[str]] = field(default_factory=dict)
    body: Any = None
    sent: Any = None
    form: Form = field(default_factory=Form)
    as_data: bool = False

    @property
    def root(self) -> str:
        """The path below which the server is, as a part of an address."""
        return quote(self.request.root) + self.server.base

    @property
    def request(self) -> Request:
        return self.head.request

    @property
    def address(self) -> str | None:
        """The address of the caller; None without one."""
        return self.server.trust.address(self.request.peer, self.head.forwarded)

    @property
    def store(self) -> Store:
        return self.server.store

    @property
    def actor(self) -> Actor:
        """The caller; set on every route of the admin API."""
        if self.caller.actor is None:
            raise LookupError("a route without Auth.ADMIN has no actor")
        return self.caller.actor

    @property
    def token(self) -> ClientToken:
        """The caller's backend token; set on every route of the client API."""
        if self.caller.token is None:
            raise LookupError("a route without Auth.CLIENT has no token")
        return self.caller.token

    def first_value(self, name: str) -> str | None:
        """Return the first value of a parameter of the query string; None without one."""
        values = self.query.get(name)
        return values[0] if values else None


NUL = "\0"


def refuse_nul(call: ApiCall, *, also_in_body: bool) -> None:
    """Raise ApiError (400), with the first place, if a parameter contains a NUL; with `also_in_body`, check the body too."""
    for name, value in call.params.items():
        if NUL in value:
            raise invalid([make_nul_detail(f"/params/{name}")])
    for name, values in call.query.items():
        if any(NUL in value for value in (name, *values)):
            raise invalid([make_nul_detail(f"/query/{name.replace(NUL, '')}")])
    for place in find_nul_pointers("/body", call.body) if also_in_body else ():
        raise invalid([make_nul_detail(place)])


def find_nul_pointers(place: str, value: Any) -> Iterator[str]:
    """Yield the JSON Pointer of every text with a NUL at or below `place`."""
    if isinstance(value, str):
        if NUL in value:
            yield place
    elif isinstance(value, dict):
        for key, each in value.items():
            if NUL in key:
                yield place
            yield from find_nul_pointers(below(place, key), each)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from find_nul_pointers(f"{place}/{index}", each)


def make_nul_detail(place: str) -> dict[str, str]:
    return {"message": f"The `{place}` property must not contain a NUL character.", "path": place}
