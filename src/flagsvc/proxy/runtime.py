"""The running proxy in one process: for each environment an upstream side and a callers' side, around one holder.

    upstream ─→ upstream_sync ─→ holder ─→ service ←─ router ←─ callers
                      └── counters ←──────────┘

With several workers, the parent has the upstream sides (`serve_workers`) and each worker the callers' sides (`worker`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import count
from random import Random

from flagsvc.core.log import Throttle
from flagsvc.core.notices import Notice
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.contract import Contract
from flagsvc.http.metrics import Readings
from flagsvc.proxy.api.samples import readings
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.sources import Sources
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.environments import Environments
from flagsvc.proxy.services import CallersSide, make_admin_address_service, make_shown_counters
from flagsvc.proxy.setup import ProxySetup, count_loop_restarts
from flagsvc.proxy.token_directory import TokenDirectory, TokenEnvironment
from flagsvc.proxy.token_lookups import TokenLookups
from flagsvc.proxy.upstream_sync import UpstreamSync
from flagsvc.settings.rows.callers import LOOKED_UP

REFUSED_TOKENS_S = 600.0
"""Seconds between two log lines about valid tokens of an environment that this process does not serve."""


class EnvironmentRuntime(UpstreamSync):
    """The parts of one environment in one event loop. Its `number` is never that of another environment."""

    def __init__(self, setup: ProxySetup, number: int, callers: CallersSide, lookups: TokenLookups) -> None:
        """Make the parts. `callers` makes the service, and `lookups` what looks up tokens."""
        holder: Holder[Snapshot] = Holder()
        super().__init__(setup, holder, make_shown_counters(setup, holder), Random(), tokens=lookups.find(setup))
        self.number = number
        self.setup = setup
        tokens = None if setup.name or self.tokens is None else lookups
        self.service = callers.make_service(
            setup,
            holder,
            self.counters,
            self.random,
            loops=self.restarts,
            storage_errors=self.storage_errors,
            tokens=tokens,
        )

    def restarts(self) -> dict[str, int]:
        """Return how often each loop was restarted after an unexpected failure, by name."""
        return {**super().restarts(), **count_loop_restarts(self.setup)}

    def inherit(self, previous: EnvironmentRuntime) -> None:
        """Take over the configuration that another runtime served, and the counts that it has not sent."""
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

    def renew(self, setup: ProxySetup) -> None:
        """Use the keys and tokens of this setup from now on."""
        self.setup = setup
        self.service.keys.replace(setup.service_settings.client_keys, setup.service_settings.server_tokens)
        self.renew_token(setup.options)


class ProxyRuntime:
    """The parts of one application in one event loop. It takes over configurations and counts of a `previous` runtime."""

    def __init__(self, setup: ProxySetup, previous: ProxyRuntime | None = None) -> None:
        self.setup = setup
        self.numbers = count()
        self.lookups = TokenLookups(setup, lambda token: self.callers.revoke(token))
        origins = [part.service_settings.cors_origin for part in setup.environments]
        admit = make_directory(setup, self._list_current, self._list_coming)
        self.callers = CallersSide(
            setup, self._list_current, origins, admit=admit, tokens=self.lookups, list_coming=self._list_coming
        )
        self.environments: Environments[EnvironmentRuntime] = Environments(
            setup,
            self._make_environment,
            self.callers.refresh,
            setup.log,
            self.callers.keep_counts,
            self.callers.reroute_tokens,
        )
        self.callers.refresh()
        for name, environment in self.environments.current.items():
            if previous is not None and name in previous.environments.current:
                environment.inherit(previous.environments.current[name])

    def _make_environment(self, part: ProxySetup) -> EnvironmentRuntime:
        return EnvironmentRuntime(part, next(self.numbers), self.callers, self.lookups)

    def _list_current(self) -> Mapping[str, EnvironmentRuntime]:
        return self.environments.current

    def _list_coming(self) -> Iterable[EnvironmentRuntime]:
        return self.environments.coming.values()

    @property
    def service(self) -> Contract:
        """What answers callers."""
        return self.callers.contract

    @cached_property
    def operators(self) -> Service:
        """The HTTP service of the operators' address."""
        return make_admin_address_service(self.setup, self.callers.sources, self.callers.readiness)

    @cached_property
    def desk(self) -> Contract:
        """What answers at the operators' address: their service, and pages."""
        from flagsvc.proxy.desk import make_desk  # most proxies have no such address

        return make_desk(self.setup, self.operators, self.sources, lambda: self.environments.current, self.read_counts)

    async def read_counts(self) -> Readings:
        """Return the present counters."""
        return readings(self.sources)

    @property
    def sources(self) -> Sources:
        """The sources of the metrics."""
        return self.callers.sources

    def start(self) -> None:
        """Start to poll, to register and to send usage metrics, in the running loop."""
        self.environments.start()

    async def stop(self) -> None:
        """Stop every loop, send the last usage metrics, finish writes to storage, and close the connections."""
        await self.environments.stop()

    def renew(self, setup: ProxySetup) -> None:
        """Use the keys, tokens and environments of this setup from now on."""
        self.callers.readiness.note_start()
        self.environments.renew(setup)
        self.setup = setup

    def drain(self) -> None:
        """Fail readiness. Requests are still answered."""
        self.callers.readiness.is_draining = True

    def poll_now(self) -> None:
        """Poll every upstream now, also within a pause that it has asked for."""
        for environment in self.environments.every:
            environment.poll_now()

    def check_tokens(self) -> None:
        """Ask every upstream again about the known tokens of callers."""
        for environment in self.environments.every:
            environment.check_tokens()

    def greeting(self) -> list[Notice]:
        """Return a notice for each environment that is ready."""
        return list_notices(self.environments.current)


def make_directory(
    setup: ProxySetup,
    list_synced: Callable[[], Mapping[str, TokenEnvironment]],
    list_coming: Callable[[], Iterable[TokenEnvironment]],
) -> TokenDirectory | None:
    """Return what looks up tokens in the environments of a process, or None if it has one, and accepts only listed keys."""
    if not setup.environments and setup.options.token_validation != LOOKED_UP:
        return None
    throttle = Throttle(setup.clock, REFUSED_TOKENS_S)
    return TokenDirectory(list_synced, setup.own_secrets, setup.log, throttle, list_coming)


def list_notices(environments: Mapping[str, UpstreamSync]) -> list[Notice]:
    """Return a notice for each environment that is ready."""
    return [
        Notice(f"flagsvc ready: {f'{name}: ' if name else ''}{each.summary()}")
        for name, each in environments.items()
        if each.holder.is_ready
    ]
