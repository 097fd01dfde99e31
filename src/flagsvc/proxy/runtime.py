"""The running proxy in one process: for each environment an upstream side and a callers' side, around one holder.

    upstream ─→ upstream_sync ─→ holder ─→ service ←─ router ←─ callers
                      └── counters ←──────────┘

With several workers, the parent has the upstream sides (`serve_workers`) and each worker the callers' sides (`worker`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import count
from random import Random

from flagsvc.core.log import Throttle
from flagsvc.core.notices import Notice
from flagsvc.http.contract import Contract
from flagsvc.http.metrics import Readings
from flagsvc.proxy.api.samples import readings
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.environment import Environment, make_shown_counters
from flagsvc.proxy.generation import Generations
from flagsvc.proxy.setup import ProxySetup
from flagsvc.proxy.token_directory import TokenDirectory
from flagsvc.proxy.token_lookups import TokenLookups
from flagsvc.proxy.upstream_sync import UpstreamSync

REFUSED_TOKENS_S = 600.0
"""Seconds between two log lines about valid tokens of an environment that this process does not serve."""


class ProxyRuntime:
    """The parts of one application in one event loop. It takes over configurations and counts of a `previous` runtime."""

    def __init__(self, setup: ProxySetup, previous: ProxyRuntime | None = None) -> None:
        self.numbers = count()
        self.lookups = TokenLookups(setup, lambda token: self.generations.revoke(token))
        directory = make_directory(setup, lambda: self.generations)
        self.generations = Generations(setup, self._make_feed, admit=directory, tokens=self.lookups)
        former = {} if previous is None else {each.name: each.feed for each in previous.generations}
        for environment in self.generations:
            feed = former.get(environment.name)
            if feed is not None:
                environment.feed.inherit(feed)

    def _make_feed(self, part: ProxySetup) -> UpstreamSync:
        holder = Holder()
        counters = make_shown_counters(part, holder)
        return UpstreamSync(part, next(self.numbers), holder, counters, Random(), tokens=self.lookups.find(part))

    @property
    def service(self) -> Contract:
        """What answers callers."""
        return self.generations.entrance

    @cached_property
    def desk(self) -> Contract:
        """What answers at the operators' address: their service, and pages."""
        from flagsvc.proxy.desk import make_desk  # most proxies have no such address

        return make_desk(self.generations, self.read_counts)

    async def read_counts(self) -> Readings:
        """Return the present counters."""
        return readings(self.generations.sources)


def make_directory(setup: ProxySetup, generations: Callable[[], Generations]) -> TokenDirectory:
    """Return what looks up tokens in the environments of a process."""
    return TokenDirectory(
        lambda: {each.name: each.feed for each in generations()},
        setup.own_secrets,
        setup.log,
        Throttle(setup.clock, REFUSED_TOKENS_S),
        lambda: [each.feed for each in generations().current.waiting.values()],
    )


def list_notices(environments: Iterable[Environment]) -> list[Notice]:
    """Return a notice for each environment that is ready."""
    return [
        Notice(f"flagsvc ready: {f'{each.name}: ' if each.name else ''}{each.feed.summary()}")
        for each in environments
        if each.feed.is_ready
    ]
