"""One running proxy in one process: the side that faces the upstream and the side that faces callers, around one holder.

    upstream ─→ supply ─→ holder ─→ service
                   └── counters ←──────┘

With several workers the parent has the first side (`serve_workers`), each worker the second (`worker`).
"""

from __future__ import annotations

from functools import cached_property, partial
from random import Random

from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.api.prometheus import Elsewhere, exposition
from flagsvc.proxy.api.readiness import Readiness
from flagsvc.proxy.api.routes import ADMIN
from flagsvc.proxy.api.samples import Loops, ReplicaStatus, Sources, no_loops, readings
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.setup import ProxySetup, survived
from flagsvc.proxy.upstream_sync import UpstreamSync
from flagsvc.proxy.usage import UsageCounters


class ProxyRuntime(UpstreamSync):
    """The parts of one application in one loop. `previous` lends what it served and counted: a new loop begins warm."""

    def __init__(self, plan: ProxySetup, previous: ProxyRuntime | None = None) -> None:
        holder: Holder[Snapshot] = Holder()
        super().__init__(plan, holder, make_counters(plan, holder), Random())
        self.plan = plan
        self.service = make_service(
            plan, self.holder, self.counters, self.random, loops=self.restarts, fleet=self.fleet
        )
        if previous is not None:
            self.inherit(previous)

    def restarts(self) -> dict[str, int]:
        """Return how often each loop of the process failed for a reason nobody thought of and was started again."""
        return {**super().restarts(), **survived(self.plan)}

    @cached_property
    def operators(self) -> Service:
        """The HTTP contract of the operators' own address."""
        return make_operators(self.plan, self.service.sources, self.service.standing)

    def inherit(self, previous: ProxyRuntime) -> None:
        """Take over what another loop's world served, and the counts it could not send."""
        served, document = previous.holder.current, previous.holder.document
        if served is not None and document is not None:
            self.holder.replace(served, document, previous.holder.problems)
            self.holder.checked, self.holder.last_fetch_ms = previous.holder.checked, previous.holder.last_fetch_ms
        counted = previous.counters.drain()
        if counted is not None:
            self.counters.merge(counted)

    def renew(self, plan: ProxySetup) -> None:
        """Work with the keys and tokens of this plan from now on."""
        self.service.keys.replace(plan.serving.client_keys, plan.serving.server_tokens)
        self.renew_token(plan.options)


def make_counters(plan: ProxySetup, holder: Holder[Snapshot]) -> UsageCounters:
    """Return counters of the toggles that are served."""
    most, most_bytes = plan.options.metrics_buffer, plan.options.metrics_buffer_bytes
    return UsageCounters(partial(names_of, holder), plan.clock.now, most=most, most_bytes=most_bytes)


def names_of(holder: Holder[Snapshot]) -> dict[str, frozenset[str]]:
    """Return the toggles that are served, by name the names of their variants."""
    snapshot = holder.current
    return {} if snapshot is None else snapshot.names


def make_service(
    plan: ProxySetup,
    holder: Holder[Snapshot],
    counters: UsageCounters,
    random: Random,
    elsewhere: Elsewhere | None = None,
    loops: Loops = no_loops,
    fleet: ReplicaStatus | None = None,
) -> Service:
    """Return the HTTP contract over these parts; `elsewhere` gives the metrics of all processes, `loops` what befell theirs."""
    return Service(
        plan.serving,
        holder=holder,
        usage=counters,
        log=plan.serving_log,
        clock=plan.clock,
        enrichers=plan.enrichers.functions,
        random=random,
        elsewhere=elsewhere,
        loops=loops,
        fleet=fleet,
    )


def make_operators(
    plan: ProxySetup, sources: Sources, standing: Readiness, elsewhere: Elsewhere | None = None
) -> Service:
    """Return the HTTP contract of the operators' own address.

    `standing` is that of the callers' side, `elsewhere` gives the metrics of all processes where there are several. No browser has
    any business here: there is no CORS.
    """
    serving = plan.serving

    async def text() -> bytes:
        return exposition(sources, readings(sources))

    settings = ServiceSettings(
        client_keys=(),
        base_path=serving.base_path,
        cors_origin=(),
        cors_exposed_headers=(),
        header_limit=serving.header_limit,
        query_limit=serving.query_limit,
        answer_cache_bytes=0,
        access_log=serving.access_log,
    )
    return Service(
        settings,
        holder=sources.holder,
        usage=sources.usage,
        log=plan.serving_log,
        clock=plan.clock,
        elsewhere=elsewhere or text,
        rows=ADMIN,
        standing=standing,
    )
