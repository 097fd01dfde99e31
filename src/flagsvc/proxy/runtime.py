"""One running proxy in one process: the upstream side and the callers' side, around one holder.

    upstream ─→ upstream_sync ─→ holder ─→ service
                      └── counters ←──────────┘

With several workers, the parent has the upstream side (`serve_workers`) and each worker the callers' side (`worker`).
"""

from __future__ import annotations

from functools import cached_property, partial
from random import Random

from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.api.operations import ADMIN
from flagsvc.proxy.api.prometheus import FetchMetrics, exposition
from flagsvc.proxy.api.readiness import Readiness
from flagsvc.proxy.api.samples import Loops, ReplicaStatus, Sources, no_loops, readings
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.setup import ProxySetup, count_loop_restarts
from flagsvc.proxy.upstream_sync import UpstreamSync
from flagsvc.proxy.usage import UsageCounters


class ProxyRuntime(UpstreamSync):
    """The parts of one application in one event loop. It takes over configuration and counts of a `previous` runtime."""

    def __init__(self, setup: ProxySetup, previous: ProxyRuntime | None = None) -> None:
        holder: Holder[Snapshot] = Holder()
        super().__init__(setup, holder, make_counters(setup, holder), Random())
        self.setup = setup
        self.service = make_service(
            setup, self.holder, self.counters, self.random, loops=self.restarts, fleet=self.fleet
        )
        if previous is not None:
            self.inherit(previous)

    def restarts(self) -> dict[str, int]:
        """Return how often each loop of the process was restarted after an unexpected failure, by name."""
        return {**super().restarts(), **count_loop_restarts(self.setup)}

    @cached_property
    def operators(self) -> Service:
        """The HTTP service of the operators' address."""
        return make_admin_address_service(self.setup, self.service.sources, self.service.readiness)

    def inherit(self, previous: ProxyRuntime) -> None:
        """Take over the configuration that another runtime served, and the counts that it has not sent."""
        served, document = previous.holder.current, previous.holder.document
        if served is not None and document is not None:
            self.holder.replace(served, document, previous.holder.problems)
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
        self.service.keys.replace(setup.service_settings.client_keys, setup.service_settings.server_tokens)
        self.renew_token(setup.options)


def make_counters(setup: ProxySetup, holder: Holder[Snapshot]) -> UsageCounters:
    """Return usage counters for the toggles that are served."""
    max_entries, max_bytes = setup.options.metrics_buffer, setup.options.metrics_buffer_bytes
    return UsageCounters(partial(served_names, holder), setup.clock.now, max_entries=max_entries, max_bytes=max_bytes)


def served_names(holder: Holder[Snapshot]) -> dict[str, frozenset[str]]:
    """Return the names of the served toggles, each with the names of its variants."""
    snapshot = holder.current
    return {} if snapshot is None else snapshot.names


def make_service(
    setup: ProxySetup,
    holder: Holder[Snapshot],
    counters: UsageCounters,
    random: Random,
    fetch_metrics: FetchMetrics | None = None,
    loops: Loops = no_loops,
    fleet: ReplicaStatus | None = None,
) -> Service:
    """Return the HTTP service of these parts.

    `fetch_metrics` returns the metrics of all processes, if there are several. `loops` returns the restarts of loops by name.
    """
    return Service(
        setup.service_settings,
        holder=holder,
        usage=counters,
        log=setup.service_log,
        clock=setup.clock,
        enrichers=setup.enrichers.functions,
        random=random,
        fetch_metrics=fetch_metrics,
        loops=loops,
        fleet=fleet,
    )


def make_admin_address_service(
    setup: ProxySetup, sources: Sources, readiness: Readiness, fetch_metrics: FetchMetrics | None = None
) -> Service:
    """Return the HTTP service of the operators' address.

    `readiness` is that of the callers' side, and `fetch_metrics` returns the metrics of all processes, if there are several. There
    is no CORS, because no browser uses this address.
    """
    callers = setup.service_settings

    async def own_metrics() -> bytes:
        return exposition(sources, readings(sources))

    settings = ServiceSettings(
        client_keys=(),
        base_path=callers.base_path,
        cors_origin=(),
        cors_exposed_headers=(),
        header_limit=callers.header_limit,
        query_limit=callers.query_limit,
        answer_cache_bytes=0,
        access_log=callers.access_log,
    )
    return Service(
        settings,
        holder=sources.holder,
        usage=sources.usage,
        log=setup.service_log,
        clock=setup.clock,
        fetch_metrics=fetch_metrics or own_metrics,
        rows=ADMIN,
        dialects=(),
        readiness=readiness,
    )
