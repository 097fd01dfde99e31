"""The one cell that holds the served configuration. Requests read it, and the poller replaces it as a whole."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Protocol
from weakref import WeakSet

from flagsvc.core.clock import Clock
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.counts import Calls, Histogram
from flagsvc.http.etag import short_revision
from flagsvc.proxy.configuration.lifecycle import POLL_EVENTS, Event, State
from flagsvc.proxy.configuration.retire import retire
from flagsvc.proxy.configuration.stream_notes import StreamNotes

MARKED: Final = re.compile(rb'"meta":\{"revisionId":\d+,"etag":"\\"([0-9a-f]{16}):\d+:v1\\"","queryHash":"[0-9a-f]{16}"\}\}$')
"""The end of a document of our flag server. It has the digest of the flags."""
END_BYTES: Final = 200
VERSION_DIGITS: Final = 16
FETCH, COMPILE, SWITCH = "fetch", "compile", "switch"
PHASES: Final = (FETCH, COMPILE, SWITCH)
"""The phases of a refresh."""


@dataclass(frozen=True)
class ConfigurationDocument:
    """The document that a server-side SDK gets from this proxy, and its strong ETag with its quotes.

    It answers server-side SDKs (behaviour: GET /proxy/client/features).
    """

    body: bytes = field(repr=False)
    etag: str

    @property
    def digest(self) -> str:
        """The digest that our flag server has put into the document; empty for any other document."""
        found = MARKED.search(self.body[-END_BYTES:])
        return "" if found is None else found[1].decode()

    @property
    def revision(self) -> str:
        """The revision as people compare it: of a document of our flag server as the server shows it, else by the ETag."""
        return short_revision(self.digest or self.etag.strip('"'))

    @property
    def version(self) -> str:
        """The version in 16 hexadecimal digits: in all processes with the same content the same, as far as the document tells."""
        return self.digest or sha256(self.etag.encode()).hexdigest()[:VERSION_DIGITS]


class ConfigurationHolder(Protocol):
    """What a service answers from: the served configuration, or a part of it."""

    @property
    def current(self) -> Snapshot | None:
        """The snapshot to answer from; None until there is a configuration."""

    @property
    def document(self) -> ConfigurationDocument | None:
        """The document of that snapshot."""

    @property
    def whole(self) -> Holder:
        """The cell of all of the configuration, which tells how fresh it is."""


class Part(Protocol):
    """What keeps a part of the served configuration."""

    def follow(self) -> None:
        """Keep nothing of a configuration that is no longer served."""


class Holder:
    """The served configuration, and how fresh it is.

    `current` is None until there is a first configuration; a request reads it once. `document` belongs to it. `state` is
    one of `lifecycle.State`; `problems` the number of malformed features and segments left out, `odd` of those that are
    served with an odd value. `last_fetch_ms` and `last_update_ms` are the epoch ms of the last successful check of the
    upstream and of the last new document, 0.0 when never
    (specification: GET /proxy/internal-backstage/prometheus).

    `checked_at` is the moment of the last successful check of the upstream, in seconds of `Clock.monotonic`, or None. The
    configuration was current then. `failures` counts the failed checks since, and `event_counts` the results of all checks. `parts`
    are told when another configuration is served, and `on_state` the former and the new state when that changes. `stream` tells how
    news of the upstream arrive, `calls` are the requests to it, and `phases` the times of refreshes. `ask_upstream` polls the
    upstream now; where another process polls, it does nothing.
    """

    def __init__(self) -> None:
        self.current: Snapshot | None = None
        self.document: ConfigurationDocument | None = None
        self.state: str = State.COLD
        self.problems = 0
        self.odd = 0
        self.last_fetch_ms = 0.0
        self.last_update_ms = 0.0
        self.checked_at: float | None = None
        self.failures = 0
        self.event_counts: dict[str, int] = {str(event): 0 for event in POLL_EVENTS}
        self.parts: WeakSet[Part] = WeakSet()
        self.on_state: Callable[[str, str], object] | None = None
        self.ask_upstream: Callable[[], object] = lambda: None
        self.stream = StreamNotes()
        self.calls = Calls()
        self.phases = {phase: Histogram() for phase in PHASES}
        self._ready = asyncio.Event()
        self._synchronised = asyncio.Event()
        self._tried = asyncio.Event()
        self._checked = asyncio.Event()

    @property
    def whole(self) -> Holder:
        return self

    @property
    def is_ready(self) -> bool:
        """Whether requests can be answered (specification: States and transitions)."""
        return self.current is not None

    @property
    def is_tried(self) -> bool:
        """Whether `wait_tried` has ended: there is a configuration, or the first check of the upstream has failed."""
        return self._tried.is_set()

    def replace(self, snapshot: Snapshot, document: ConfigurationDocument, problems: int, odd: int = 0) -> None:
        """Serve another configuration from now on. The memory of the old one is released in slices."""
        if self.current is not snapshot:
            retire(self.current)
        self.document = document
        self.problems = problems
        self.odd = odd
        self.current = snapshot
        for part in list(self.parts):
            part.follow()
        self._ready.set()
        self._tried.set()

    def set_state(self, state: State) -> None:
        """Set the state. The first FRESH one, which the upstream has confirmed, ends `wait_synchronised`."""
        if self.on_state is not None and state != self.state:
            self.on_state(self.state, state)
        self.state = state
        if state is State.FRESH:
            self._synchronised.set()

    def record_check(self, event: Event, failures: int) -> None:
        """Record the result of a check, and how many checks in a row have failed."""
        self.event_counts[event] += 1
        self.failures = failures
        self._tried.set()

    def confirm(self, clock: Clock) -> None:
        """Record that a check has succeeded now."""
        self.note_check(clock.monotonic())
        self.last_fetch_ms = clock.now() * 1000

    def note_check(self, moment: float) -> None:
        """Record when the last successful check was."""
        self.checked_at = moment
        self._checked.set()

    @property
    def is_confirmed(self) -> bool:
        """Whether there is a configuration, and the upstream has answered once."""
        return self.is_ready and self._checked.is_set()

    async def wait_confirmed(self) -> None:
        """Wait until then. A stored configuration, or that of the bootstrap address, is not enough."""
        await self._ready.wait()
        await self._checked.wait()

    async def wait_ready(self) -> None:
        """Wait for a configuration: synchronised, restored or bootstrapped."""
        await self._ready.wait()

    async def wait_tried(self) -> None:
        """Wait for a configuration, or for the first check of the upstream that fails."""
        await self._tried.wait()

    async def wait_synchronised(self) -> None:
        """Wait until the upstream has sent or confirmed a configuration."""
        await self._synchronised.wait()
