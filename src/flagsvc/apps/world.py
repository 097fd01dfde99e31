"""One running proxy in one process: the side that faces the upstream and the side that faces callers, around one holder.

    upstream ─→ supply ─→ holder ─→ service
                   └── counters ←──────┘

With several workers the parent has the first side (`serve_workers`), each worker the second (`worker`).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from random import Random

from flagsvc.api.prometheus import Elsewhere
from flagsvc.api.service import Service
from flagsvc.apps.plan import Plan
from flagsvc.apps.supply import Supply
from flagsvc.engine.snapshot import Snapshot
from flagsvc.repository import Holder
from flagsvc.usage import UsageCounters


class World(Supply):
    """The parts of one application in one loop. `previous` lends what it served and counted: a new loop begins warm."""

    def __init__(self, plan: Plan, previous: World | None = None) -> None:
        holder: Holder[Snapshot] = Holder()
        super().__init__(plan, holder, make_counters(plan, holder), Random())
        self.service = make_service(plan, self.holder, self.counters, self.random)
        if previous is not None:
            self.inherit(previous)

    def inherit(self, previous: World) -> None:
        """Take over what another loop's world served, and the counts it could not send."""
        served, document = previous.holder.current, previous.holder.document
        if served is not None and document is not None:
            self.holder.replace(served, document, previous.holder.problems)
        counted = previous.counters.drain()
        if counted is not None:
            self.counters.merge(counted)


def make_counters(plan: Plan, holder: Holder[Snapshot]) -> UsageCounters:
    """Return counters of the toggles that are served."""
    return UsageCounters(partial(variants_of, holder), plan.clock.now, most=plan.options.metrics_buffer)


def variants_of(holder: Holder[Snapshot], name: str) -> Collection[str] | None:
    """Return the names of a toggle's variants, None when the configuration knows no such toggle."""
    snapshot = holder.current
    return None if snapshot is None else snapshot.names.get(name)


def make_service(
    plan: Plan,
    holder: Holder[Snapshot],
    counters: UsageCounters,
    random: Random,
    elsewhere: Elsewhere | None = None,
) -> Service:
    """Return the HTTP contract over these parts; `elsewhere` gives the metrics of all processes."""
    return Service(
        plan.serving,
        holder=holder,
        usage=counters,
        log=plan.serving_log,
        clock=plan.clock,
        enrichers=plan.enrichers.functions,
        random=random,
        elsewhere=elsewhere,
    )
