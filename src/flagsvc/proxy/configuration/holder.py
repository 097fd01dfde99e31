"""The one cell that holds the configuration being served. Requests read it, the poller replaces it, whole."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Generic

from flagsvc.core.clock import Clock
from flagsvc.proxy.configuration.lifecycle import POLLED, Event, State
from flagsvc.proxy.configuration.ports import S
from flagsvc.proxy.configuration.retire import retire


@dataclass(frozen=True)
class ConfigurationDocument:
    """The document a server-side SDK gets from this proxy, and its strong ETag, quotes included.

    behaviour: Other endpoints, GET /proxy/client/features.
    """

    body: bytes = field(repr=False)
    etag: str


class Holder(Generic[S]):
    """What is served now, and how fresh it is.

    `current` is None until the first configuration is there; read it once per request. `document` belongs to it. `state` is
    one of `lifecycle.State`; `problems` the number of malformed features left out; `last_fetch_ms` and `last_update_ms` the
    epoch ms of the upstream's last answer and last new document, 0.0 when never (specification: GET
    /proxy/internal-backstage/prometheus).

    `checked` is the moment of the last check of the upstream that went well, in the seconds of `Clock.monotonic`, None when
    never: what is served was current then. `failures` counts the checks since that failed, `events` what every one brought.
    """

    def __init__(self) -> None:
        self.current: S | None = None
        self.document: ConfigurationDocument | None = None
        self.state: str = State.COLD
        self.problems = 0
        self.last_fetch_ms = 0.0
        self.last_update_ms = 0.0
        self.checked_at: float | None = None
        self.failures = 0
        self.event_counts: dict[str, int] = {str(event): 0 for event in POLLED}
        self._ready = asyncio.Event()
        self._synchronised = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether requests can be answered (specification: States and transitions)."""
        return self.current is not None

    def replace(self, snapshot: S, document: ConfigurationDocument, problems: int) -> None:
        """Serve another configuration from now on; the one before is given back bit by bit."""
        if self.current is not snapshot:
            retire(self.current)
        self.document = document
        self.problems = problems
        self.current = snapshot
        self._ready.set()

    def set_state(self, state: State) -> None:
        """Note the state; the first one that the upstream stands behind ends `wait_synchronised`."""
        self.state = state
        if state is State.FRESH:
            self._synchronised.set()

    def record_check(self, event: Event, failures: int) -> None:
        """Note what a check brought, and how many in a row have failed now."""
        self.event_counts[event] += 1
        self.failures = failures

    def confirm(self, clock: Clock, age_s: float = 0.0) -> None:
        """Note that a check went well `age_s` seconds ago, here or where this configuration comes from.

        What is known already is never set back.
        """
        moment = clock.monotonic() - age_s
        if self.checked_at is None or moment >= self.checked_at:
            self.checked_at = moment
            self.last_fetch_ms = (clock.now() - age_s) * 1000

    async def wait_ready(self) -> None:
        """Wait until a configuration is there: synchronised, restored or bootstrapped."""
        await self._ready.wait()

    async def wait_synchronised(self) -> None:
        """Wait until the upstream has given or confirmed a configuration."""
        await self._synchronised.wait()
