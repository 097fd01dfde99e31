"""The side of a proxy that faces the upstream: what fetches, stores and replaces the configuration, and what sends usage.

    source ─→ poller ─→ holder        counters ─→ reporter ─→ upstream
                 └→ keeper (storage)

An upstream that is a file has no one to register with or to send usage to, and needs no storage: it is there after a restart
as it was before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from flagsvc.core.log import Logger, locate_error
from flagsvc.engine.compile import Compiler
from flagsvc.engine.parse import wanted
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.client.addresses import shown
from flagsvc.proxy.configuration import Holder, Poller, Preparer, Source, State, file_path, is_file_url
from flagsvc.proxy.configuration.prepare import Wanted
from flagsvc.proxy.configuration.sources import BootstrapSource, FileSource, HttpSource
from flagsvc.proxy.configuration.stores import (
    DocumentStorage,
    FileStore,
    NoStore,
    StorageProvider,
    storage_at,
    storage_key,
)
from flagsvc.proxy.configuration.stores.provider import in_thread
from flagsvc.proxy.setup import ProxySetup, make_trust
from flagsvc.proxy.unsent_usage import make_unsent_usage, scope_of
from flagsvc.proxy.upstream import Limits, Outbound, Upstream, UpstreamOptions
from flagsvc.proxy.usage import Reporter, UsageCounters
from flagsvc.settings.fleet import server_at
from flagsvc.settings.options import ProxyOptions

if TYPE_CHECKING:
    from flagsvc.proxy.replication import SharedConfiguration

ORIGINS: dict[str, str] = {
    State.COLD: "nowhere",
    State.RESTORED: "storage, the upstream has not answered yet",
    State.BOOTSTRAPPED: "the bootstrap document, the upstream has not answered yet",
}
"""What is said of where the configuration came from; in any other state it is the upstream's."""
STOP_S = 8.0
"""Seconds that stopping may take at most, the last metrics and the last write to storage included."""


class UpstreamSync:
    """Keeps `holder` current and sends what `counters` have, from `start` to `stop`, in one loop."""

    def __init__(
        self,
        plan: ProxySetup,
        holder: Holder[Snapshot],
        counters: UsageCounters,
        random: Random,
        prepare: Preparer[Snapshot] | None = None,
    ) -> None:
        """Take where the configuration goes and where counts come from; `prepare` makes documents ready, by default just here."""
        self.options = plan.options
        self.token = plan.options.flagsvc_api_token
        self.log = plan.log
        self.random = random
        self.holder = holder
        self.counters = counters
        self.storage = make_storage(plan.options)
        self.storage_key = make_storage_key(plan.options)
        self.shared = make_shared(plan, self.storage, self.storage_key, holder, random.random)
        self.fleet = None if self.shared is None else self.shared.fleet
        self.upstream = None if is_file_url(plan.options.flagsvc_url) else make_upstream(plan)
        self.http = None if self.upstream is None else HttpSource(self.upstream)
        shared = self.shared
        self.document_storage = (
            DocumentStorage(self.storage, self.storage_key, plan.log) if shared is None else shared.document_storage()
        )
        self.poller = self.make_poller(plan, prepare or make_preparer(plan))
        self.reporter = None if self.upstream is None else self.make_reporter(plan, self.upstream)
        self.looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start polling, registering and sending in the running loop."""
        if self.fleet is not None:
            self.fleet.start()
        self.poller.start()
        if isinstance(self.storage, FileStore):
            self.looking = asyncio.create_task(look_at(self.storage, self.log))
        if self.reporter is not None:
            self.reporter.start()

    async def stop(self) -> None:
        """End every loop, send the last usage metrics, finish writing to storage, close the connections.

        Each is done whatever happens to the others, all within a bound.
        """
        if self.looking is not None:
            self.looking.cancel()
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
                    self.log.error("stopping failed", error=locate_error(result))
            if self.upstream is not None:
                await self.upstream.aclose()
            if self.fleet is not None:
                await self.fleet.stop()

    def restarts(self) -> dict[str, int]:
        """Return how often each loop failed for a reason nobody thought of and was started again."""
        usage = {} if self.reporter is None else {"usage": self.reporter.restarts}
        fleet = {} if self.fleet is None else {"fleet": self.fleet.restarts}
        return {"polling": self.poller.restarts, **usage, **fleet}

    def renew_token(self, options: ProxyOptions) -> None:
        """Ask the upstream with the token of these options from now on, and at once if it is another one.

        What it gives is kept under that token's name. A fleet keeps its name, which all its replicas know, until they start again.
        A token of another project or environment is not taken: what was counted, and what a fleet shares, are of this one.
        """
        token = options.flagsvc_api_token
        old, new = scope_of(self.token), scope_of(token)
        if old and new and old != new:
            self.log.warn("flagsvcApiToken is of another project or environment now and needs a restart")
            return
        self.token = token
        if self.upstream is None or self.http is None or not self.upstream.renew(token):
            return
        self.http.renew()
        if self.fleet is None:
            self.document_storage.rename(make_storage_key(options))
        else:
            self.fleet.news.set()

    def look_again(self) -> None:
        """Ask the upstream at once, whatever pause it has asked for; in a fleet whoever asks for all does."""
        if self.http is not None:
            self.http.look_again()
            if self.fleet is not None:
                self.fleet.news.set()

    def summary(self) -> str:
        """Return how many toggles are served and where they came from, in words."""
        served = self.holder.current
        count = 0 if served is None else len(served.names)
        origin = ORIGINS.get(self.holder.state) or shown(self.options.flagsvc_url)
        return f"{count} toggle{'' if count == 1 else 's'} from {origin}"

    def make_poller(self, plan: ProxySetup, prepare: Preparer[Snapshot]) -> Poller[Snapshot]:
        """Return the loop that keeps the configuration current."""
        options, source = plan.options, make_source(plan, self.http)
        return Poller(
            source if self.shared is None else self.shared.source(source),
            self.holder,
            prepare,
            self.document_storage,
            clock=plan.clock,
            log=plan.log,
            draw=self.random.random,
            refresh_ms=options.refresh_interval,
            bootstrap=make_bootstrap(plan),
        )

    def make_reporter(self, plan: ProxySetup, upstream: Upstream) -> Reporter:
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
            batch=plan.options.metrics_batch,
            unsent_usage=make_unsent_usage(plan, self.storage),
            custom_strategies=list(plan.strategies.by_name),
            synchronised=self.holder.wait_synchronised,
        )


async def look_at(store: FileStore, log: Logger) -> None:
    """Say so where others can write what is served, or everybody can read it."""
    mode = await in_thread(store.exposed)
    if mode is not None:
        remedy = f"chmod 0700 {store.folder}"
        log.warn("the storage folder is open to others", folder=str(store.folder), mode=f"{mode:04o}", remedy=remedy)


def make_preparer(plan: ProxySetup) -> Preparer[Snapshot]:
    """Return what makes documents ready to be served."""
    return Preparer(Compiler(plan.compiling), make_wanted(plan.options))


def make_wanted(options: ProxyOptions) -> Wanted | None:
    """Return what tells which features belong to this proxy; None: all of them."""
    project, prefix = options.project_name, options.name_prefix
    return partial(wanted, project=project, name_prefix=prefix) if project or prefix else None


def make_upstream(plan: ProxySetup) -> Upstream:
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
        trust=make_trust(options),
        outbound=make_outbound(options),
        limits=Limits(step_s=seconds, total_s=seconds),
        retry_after_limit_s=options.retry_after_limit / 1000,
    )
    return Upstream(given, clock=plan.clock, log=plan.log)


def make_outbound(options: ProxyOptions) -> Outbound:
    """Return the outbound proxies."""
    return Outbound(options.http_proxy, options.https_proxy, options.no_proxy)


def make_source(plan: ProxySetup, http: HttpSource | None) -> Source:
    """Return where documents come from: the upstream server, or the file that stands for it."""
    if http is not None:
        return http
    options = plan.options
    return FileSource(file_path(options.flagsvc_url), clock=plan.clock, refresh_ms=options.refresh_interval)


def make_bootstrap(plan: ProxySetup) -> Source | None:
    """Return where the document to begin with comes from, if anywhere (specification: expBootstrap)."""
    options = plan.options
    if options.exp_bootstrap_url is None:
        return None
    return BootstrapSource(
        options.exp_bootstrap_url,
        authorization=options.exp_bootstrap_authorization,
        trust=make_trust(options).nameless,
        outbound=make_outbound(options),
        clock=plan.clock,
    )


def make_storage(options: ProxyOptions) -> StorageProvider:
    """Return where the configuration survives a restart."""
    if options.storage_provider is not None:
        provider: StorageProvider = options.storage_provider
        return provider
    if is_file_url(options.flagsvc_url):
        return NoStore()
    server = server_at(options.storage)
    if server is None:
        return storage_at(options.storage)
    from flagsvc.proxy.replication import make_store

    return make_store(options, server)


def make_shared(
    plan: ProxySetup, storage: StorageProvider, key: str, holder: Holder[Snapshot], draw: Callable[[], float]
) -> SharedConfiguration | None:
    """Return what replicas share that keep their configuration on one server, None where it is kept elsewhere."""
    if server_at(plan.options.storage) is None:
        return None
    from flagsvc.proxy.replicas import ServerStore
    from flagsvc.proxy.replication import SharedConfiguration

    return SharedConfiguration(plan, storage, key, holder, draw) if isinstance(storage, ServerStore) else None


def make_storage_key(options: ProxyOptions) -> str:
    """Return the name under which this configuration, and no other, is stored."""
    return storage_key(
        url=options.flagsvc_url,
        token=options.flagsvc_api_token,
        project=options.project_name,
        name_prefix=options.name_prefix,
        tags=options.tags,
    )
