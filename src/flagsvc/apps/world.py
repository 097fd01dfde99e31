"""One running proxy: every part built from a plan and wired, started and stopped in one loop.

    source ─→ poller ─→ holder ─→ service ─→ counters ─→ reporter ─→ upstream
                 └→ keeper (storage)

This is the only place that knows all parts. An upstream that is a file has no one to register with or to send usage to,
and needs no storage: it is there after a restart as it was before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from random import Random

from flagsvc.api.call import Call
from flagsvc.api.http import GET, Refused, Request, Response
from flagsvc.api.refusals import headers_too_large
from flagsvc.api.service import Service
from flagsvc.apps.plan import Plan
from flagsvc.engine.compile import Compiled, compile_document
from flagsvc.engine.parse import wanted
from flagsvc.engine.snapshot import Snapshot
from flagsvc.log import where
from flagsvc.repository import Holder, Poller, Preparer, Source, State, file_path, is_file_url
from flagsvc.repository.sources import BootstrapSource, FileSource, HttpSource
from flagsvc.repository.stores import Keeper, NoStore, StorageProvider, storage_at, storage_key
from flagsvc.settings.options import ProxyOptions
from flagsvc.upstream import Limits, Outbound, Upstream, UpstreamOptions
from flagsvc.upstream.addresses import shown
from flagsvc.usage import Reporter, UsageCounters

ORIGINS: dict[str, str] = {
    State.COLD: "nowhere",
    State.RESTORED: "storage, the upstream has not answered yet",
    State.BOOTSTRAPPED: "the bootstrap document, the upstream has not answered yet",
}
"""What is said of where the configuration came from; in any other state it is the upstream's."""
STOP_S = 8.0
"""Seconds that stopping may take at most, the last metrics and the last write to storage included."""


class World:
    """The parts of one application in one loop. `previous` lends what it served and counted: a new loop begins warm."""

    def __init__(self, plan: Plan, previous: World | None = None) -> None:
        options = self.options = plan.options
        self.log = plan.log
        self.random = Random()
        self.holder: Holder[Snapshot] = Holder()
        self.counters = UsageCounters(self.variants_of, plan.clock.now, most=options.metrics_buffer)
        self.upstream = None if is_file_url(options.flagsvc_url) else make_upstream(plan)
        self.poller = self.make_poller(plan)
        self.reporter = None if self.upstream is None else self.make_reporter(plan, self.upstream)
        self.service = self.make_service(plan)
        if previous is not None:
            self.inherit(previous)

    def start(self) -> None:
        """Start polling, registering and sending in the running loop."""
        self.poller.start()
        if self.reporter is not None:
            self.reporter.start()

    async def stop(self) -> None:
        """End every loop, send the last usage metrics, finish writing to storage, close the connections.

        Each is done whatever happens to the others, all within a bound.
        """
        parts = [self.poller.stop(), *([] if self.reporter is None else [self.reporter.stop()])]
        tasks = [asyncio.ensure_future(part) for part in parts]
        try:
            _, late = await asyncio.wait(tasks, timeout=STOP_S)
            if late:
                self.log.warn("stopping took too long and was cut short", seconds=STOP_S)
        finally:
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception):
                    self.log.error("stopping failed", error=where(result))
            if self.upstream is not None:
                await self.upstream.aclose()

    def inherit(self, previous: World) -> None:
        """Take over what another loop's world served, and the counts it could not send."""
        served, document = previous.holder.current, previous.holder.document
        if served is not None and document is not None:
            self.holder.replace(served, document, previous.holder.problems)
        counted = previous.counters.drain()
        if counted is not None:
            self.counters.merge(counted)

    def variants_of(self, name: str) -> Collection[str] | None:
        """Return the names of a toggle's variants, None when the configuration knows no such toggle."""
        snapshot = self.holder.current
        return None if snapshot is None else snapshot.names.get(name)

    def summary(self) -> str:
        """Return how many toggles are served and where they came from, in words."""
        served = self.holder.current
        count = 0 if served is None else len(served.names)
        origin = ORIGINS.get(self.holder.state) or shown(self.options.flagsvc_url)
        return f"{count} toggle{'' if count == 1 else 's'} from {origin}"

    def early_refusal(self, status: int) -> Response:
        """Return the answer to what a server refuses before it is a request: no HTTP (400), a head beyond the limit (431)."""
        large = headers_too_large(self.options.header_limit)
        refused = large if status == large.status else Refused(400, "this is not an HTTP request", [])
        call = Call(Request(GET, b"", b"", []))
        call.started = self.service.clock.monotonic()
        return self.service.refuse(call, refused)

    def make_poller(self, plan: Plan) -> Poller[Snapshot]:
        """Return the loop that keeps the configuration current."""
        options = plan.options
        project, prefix = options.project_name, options.name_prefix
        chosen = partial(wanted, project=project, name_prefix=prefix) if project or prefix else None
        return Poller(
            make_source(plan, self.upstream),
            self.holder,
            Preparer(partial(compiled, plan), chosen),
            Keeper(make_storage(options), make_storage_key(options), plan.log),
            clock=plan.clock,
            log=plan.log,
            draw=self.random.random,
            refresh_ms=options.refresh_interval,
            bootstrap=make_bootstrap(plan),
        )

    def make_reporter(self, plan: Plan, upstream: Upstream) -> Reporter:
        """Return what registers and sends usage metrics."""
        return Reporter(
            self.counters,
            upstream,
            plan.identity,
            clock=plan.clock,
            log=plan.log,
            draw=self.random.random,
            interval_ms=plan.options.metrics_interval,
            jitter_ms=plan.options.metrics_jitter,
            custom_strategies=list(plan.strategies.by_name),
            synchronised=self.holder.wait_synchronised,
        )

    def make_service(self, plan: Plan) -> Service:
        """Return the HTTP contract over these parts."""
        return Service(
            plan.serving,
            holder=self.holder,
            usage=self.counters,
            log=plan.serving_log,
            clock=plan.clock,
            enrichers=plan.enrichers.functions,
            random=self.random,
        )


def compiled(plan: Plan, document: object, previous: Snapshot | None) -> Compiled:
    """Return what compiling a decoded document gives; raises DocumentError."""
    return compile_document(document, plan.compiling, previous)


def make_upstream(plan: Plan) -> Upstream:
    """Return the session with the upstream server; nothing is opened yet."""
    options = plan.options
    seconds = options.upstream_timeout / 1000
    given = UpstreamOptions(
        url=options.flagsvc_url,
        token=options.flagsvc_api_token,
        identity=plan.identity,
        refresh_interval=options.refresh_interval,
        metrics_interval=options.metrics_interval,
        project=options.project_name,
        name_prefix=options.name_prefix,
        tags=options.tags,
        reject_unauthorized=options.http_options_reject_unauthorized,
        outbound=make_outbound(options),
        limits=Limits(step_s=seconds, total_s=seconds),
    )
    return Upstream(given, clock=plan.clock, log=plan.log)


def make_outbound(options: ProxyOptions) -> Outbound:
    """Return the outbound proxies."""
    return Outbound(options.http_proxy, options.https_proxy, options.no_proxy)


def make_source(plan: Plan, upstream: Upstream | None) -> Source:
    """Return where documents come from: the upstream server, or the file that stands for it."""
    if upstream is not None:
        return HttpSource(upstream)
    options = plan.options
    return FileSource(file_path(options.flagsvc_url), clock=plan.clock, refresh_ms=options.refresh_interval)


def make_bootstrap(plan: Plan) -> Source | None:
    """Return where the document to begin with comes from, if anywhere (specification: expBootstrap)."""
    options = plan.options
    if options.exp_bootstrap_url is None:
        return None
    return BootstrapSource(
        options.exp_bootstrap_url,
        authorization=options.exp_bootstrap_authorization,
        reject_unauthorized=options.http_options_reject_unauthorized,
        outbound=make_outbound(options),
        clock=plan.clock,
    )


def make_storage(options: ProxyOptions) -> StorageProvider:
    """Return where the configuration survives a restart."""
    if options.storage_provider is not None:
        provider: StorageProvider = options.storage_provider
        return provider
    return NoStore() if is_file_url(options.flagsvc_url) else storage_at(options.storage)


def make_storage_key(options: ProxyOptions) -> str:
    """Return the name under which this configuration, and no other, is stored."""
    return storage_key(
        url=options.flagsvc_url,
        token=options.flagsvc_api_token,
        project=options.project_name,
        name_prefix=options.name_prefix,
        tags=options.tags,
    )
