"""Where an environment gets its configuration from, and where its usage metrics go: its upstream side, in one event loop."""

from __future__ import annotations

from flagsvc.http.client.addresses import shown
from flagsvc.proxy.configuration import Holder, State
from flagsvc.proxy.setup import ProxySetup
from flagsvc.proxy.tokens import TokenLookup
from flagsvc.proxy.usage import UsageCounters
from flagsvc.settings.upstreams import upstream_of_options

ORIGINS: dict[str, str] = {
    State.COLD: "nowhere",
    State.RESTORED: "storage, the upstream has not answered yet",
    State.BOOTSTRAPPED: "the bootstrap document, the upstream has not answered yet",
}
"""State → where the configuration came from, in words. In any other state it came from the upstream."""


class Feed:
    """Fills `holder` and takes the counts of `counters`. Its `number` is never that of another feed of the process.

    `setup` is the setup that it was made with. A later generation with the same upstream side has the same feed. `token` is the
    token that the upstream is asked with, and `upstream_id` the identity of the upstream: its address, and what else decides who
    answers there, and as whose. `tokens` looks up tokens of callers; None if only listed keys are accepted.
    """

    def __init__(self, setup: ProxySetup, number: int, holder: Holder, counters: UsageCounters) -> None:
        self.setup = setup
        self.name = setup.name
        self.number = number
        self.holder = holder
        self.counters = counters
        self.token = setup.options.flagsvc_api_token
        self.upstream_id = upstream_of_options(setup.options)
        self.tokens: TokenLookup | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there is a configuration."""
        return self.holder.is_ready

    @property
    def project(self) -> str | None:
        """The only project of its flags; None or empty for all that its token opens."""
        return self.setup.options.project_name

    def start(self) -> None:
        """Start, in the running loop."""

    async def stop(self) -> None:
        """Stop, and send the last usage metrics."""

    def use_token(self, token: str) -> None:
        """Use another token of the same scope for the upstream from now on."""

    def inherit(self, previous: Feed) -> None:
        """Take over the configuration of a feed in another event loop, and the counts that it has not sent."""
        served, document = previous.holder.current, previous.holder.document
        if served is not None and document is not None:
            self.holder.replace(served, document, previous.holder.problems, previous.holder.odd)
            self.holder.checked_at, self.holder.last_fetch_ms = (
                previous.holder.checked_at,
                previous.holder.last_fetch_ms,
            )
        own = previous.counters.drain()
        for bucket in (*([] if own is None else [own]), *previous.counters.drain_sources()):
            self.counters.merge(bucket)
        for source, registration in previous.counters.take_registrations().items():
            self.counters.register(source, registration)

    def poll_now(self) -> None:
        """Poll the upstream now, also within a pause that it has asked for."""

    def check_tokens(self) -> None:
        """Ask the upstream again about every known token of callers, also within a pause."""

    def restarts(self) -> dict[str, int]:
        """Return how often each loop was restarted after an unexpected failure, by name."""
        return {}

    def storage_errors(self) -> int | None:
        """Return how often a request to the storage server failed; None without such a server."""
        return None

    def summary(self) -> str:
        """Return a text with the number of served toggles and where they came from."""
        served = self.holder.current
        count = 0 if served is None else len(served.names)
        origin = ORIGINS.get(self.holder.state) or shown(self.setup.options.flagsvc_url)
        return f"{count} toggle{'' if count == 1 else 's'} from {origin}"
