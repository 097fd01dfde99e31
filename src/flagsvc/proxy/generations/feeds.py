"""Where an environment gets its configuration from, and where its usage metrics go: its upstream side, in one event loop."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from functools import partial
from random import Random

from flagsvc.core.log import Logger, locate_error
from flagsvc.engine.compile import Compiler
from flagsvc.engine.parse import is_included
from flagsvc.http.client.addresses import shown
from flagsvc.proxy.configuration import Holder, Poller, Preparer, Source, State, file_path, is_file_url
from flagsvc.proxy.configuration.change_log import ChangeLog
from flagsvc.proxy.configuration.follower import StreamFollower
from flagsvc.proxy.configuration.prepare import FeatureFilter
from flagsvc.proxy.configuration.sources import BootstrapSource, FileSource, HttpSource
from flagsvc.proxy.configuration.stores import (
    DocumentStorage,
    FileRecordStore,
    FileStore,
    NoStore,
    SingleRecordStore,
    StorageProvider,
    StorageServer,
    run_in_thread,
    storage_at,
    storage_key,
)
from flagsvc.proxy.generations.setup import ProxySetup, make_trust
from flagsvc.proxy.tokens import TokenLookup
from flagsvc.proxy.upstream import Limits, Outbound, Upstream, UpstreamSettings
from flagsvc.proxy.usage import RecordStore, Reporter, UnsentUsage, UsageCounters
from flagsvc.settings.environments import upstream_of_options
from flagsvc.settings.network import is_gitlab
from flagsvc.settings.options import ProxyOptions, with_values
from flagsvc.settings.rows.upstream import POLLING
from flagsvc.settings.storage import server_at
from flagsvc.settings.tokens import read_scope

ORIGINS: dict[str, str] = {
    State.COLD: "nowhere",
    State.RESTORED: "storage, the upstream has not answered yet",
    State.BOOTSTRAPPED: "the bootstrap document, the upstream has not answered yet",
}
"""State → where the configuration came from, in words. In any other state it came from the upstream."""


class Feed:
    """Fills `holder` and takes the counts of `counters`. No other feed of the process ever has its `number`.

    `setup` is the setup of its start. A later generation with the same upstream side has the same feed. `token` is the
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
        return self.holder.is_ready

    @property
    def project(self) -> str | None:
        """The only project of its flags; None or empty for all that its token opens."""
        return self.setup.options.project_name

    def start(self) -> None:
        """Start, in the running loop."""

    async def stop(self) -> None:
        """Stop, and send the last usage metrics."""

    def use_options(self, options: ProxyOptions) -> None:
        """Use these options from now on. They differ only in options that no new upstream side is needed for."""

    def inherit(self, previous: Feed) -> None:
        """Take over the configuration of the same upstream side in another event loop, and the counts that it has not sent."""
        served, document = previous.holder.current, previous.holder.document
        if served is not None and document is not None:
            self.holder.replace(served, document, previous.holder.problems, previous.holder.odd)
            if previous.holder.checked_at is not None:
                self.holder.note_check(previous.holder.checked_at)
            self.holder.last_fetch_ms = previous.holder.last_fetch_ms
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
        """Return how often the storage failed; None without a storage in this process."""
        return None

    def summary(self) -> str:
        """Return a text with the number of served toggles and where they came from."""
        served = self.holder.current
        count = 0 if served is None else len(served.names)
        origin = ORIGINS.get(self.holder.state) or shown(self.setup.options.flagsvc_url)
        return f"{count} toggle{'' if count == 1 else 's'} from {origin}"


STOP_S = 8.0
"""The most seconds that stopping may take, including the last usage metrics and the last write to storage."""


class UpstreamSync(Feed):
    """Keeps `holder` current and sends the counts of `counters`, from `start` to `stop`, in one event loop."""

    def __init__(
        self,
        setup: ProxySetup,
        number: int,
        holder: Holder,
        counters: UsageCounters,
        random: Random,
        prepare: Preparer | None = None,
        tokens: TokenLookup | None = None,
    ) -> None:
        """Take the holder to fill and the counters to send.

        `prepare` compiles documents; the default does so only in this process. `tokens` looks up tokens of callers, also for other
        environments of the same upstream; None if only listed keys are accepted.
        """
        super().__init__(setup, number, holder, counters)
        self.options = setup.options
        self.log = setup.log
        self.random = random
        self.storage = make_storage(setup.options)
        self.storage_key = make_storage_key(setup.options, setup.name)
        self.upstream = None if is_file_url(setup.options.flagsvc_url) else make_upstream(setup)
        self.http = None if self.upstream is None else HttpSource(self.upstream, setup.clock)
        self.follower = self.make_follower(setup)
        self.changes = ChangeLog(setup.clock.now, counters.forget_sums)
        if setup.has_pages:
            self.changes.watch(holder)
        if self.upstream is not None:
            self.upstream.calls = holder.calls
        if self.http is not None:
            holder.ask_upstream = self.http.poll_soon
        self.document_storage = DocumentStorage(self.storage, self.storage_key, setup.log)
        self.poller = self.make_poller(setup, prepare or make_preparer(setup))
        self.reporter = None if self.upstream is None else self.make_reporter(setup, self.upstream)
        self.tokens = tokens
        self.folder_check: asyncio.Task[None] | None = None

    def storage_errors(self) -> int | None:
        if isinstance(self.storage, NoStore):
            return None
        return self.storage.errors if isinstance(self.storage, StorageServer) else self.document_storage.errors

    def start(self) -> None:
        """Start to poll, to register and to send usage metrics, in the running loop."""
        self.poller.start()
        if self.follower is not None:
            self.follower.start()
        if isinstance(self.storage, FileStore) and str(self.storage.folder) not in self.setup.checked_folders:
            self.setup.checked_folders.add(str(self.storage.folder))
            self.folder_check = asyncio.create_task(warn_if_exposed(self.storage, self.log))
        if self.reporter is not None:
            self.reporter.start()
        if self.tokens is not None:
            self.tokens.start(self)

    async def stop(self) -> None:
        """Stop every loop, send the last usage metrics, finish writes to storage, and close the connections.

        Each step is done even if another one fails, and all within STOP_S seconds.
        """
        if self.folder_check is not None:
            self.folder_check.cancel()
        parts = [self.poller.stop()]
        if self.follower is not None:
            parts.append(self.follower.stop())
        if self.reporter is not None:
            parts.append(self.reporter.stop())
        if self.tokens is not None:
            parts.append(self.tokens.stop(self))
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
            if isinstance(self.storage, StorageServer):
                await self.storage.aclose()

    def restarts(self) -> dict[str, int]:
        usage = {} if self.reporter is None else {"usage": self.reporter.restarts}
        streaming = {} if self.follower is None else {"streaming": self.follower.restarts}
        return {"polling": self.poller.restarts, **streaming, **usage}

    def use_options(self, options: ProxyOptions) -> None:
        if self.follower is not None:
            self.follower.keep_fresh(options.max_staleness)
        self.use_token(options.flagsvc_api_token)

    def use_token(self, token: str) -> None:
        """Use another token of the same scope for the upstream from now on, and poll immediately.

        The configuration is then stored under the new token's key.
        """
        self.token = token
        if self.upstream is None or self.http is None or not self.upstream.renew(token):
            return
        self.http.renew()
        if self.follower is not None:
            self.follower.renew()
        options = with_values(self.options, {"flagsvc_api_token": token})
        self.document_storage.rename(make_storage_key(options, self.name))

    def poll_now(self) -> None:
        if self.http is not None:
            self.http.poll_now()

    def check_tokens(self) -> None:
        if self.tokens is not None:
            self.tokens.check_now()

    def make_poller(self, setup: ProxySetup, prepare: Preparer) -> Poller:
        options = setup.options
        return Poller(
            make_source(setup, self.http),
            self.holder,
            prepare,
            self.document_storage,
            clock=setup.clock,
            log=setup.log,
            draw=self.random.random,
            refresh_ms=options.refresh_interval,
            bootstrap=make_bootstrap(setup),
            tracer=setup.tracer,
        )

    def make_follower(self, setup: ProxySetup) -> StreamFollower | None:
        """Return what follows the upstream by a stream. None if it is to be polled alone, which the notes say."""
        self.holder.stream.since = setup.clock.now()
        self.holder.stream.why = why_no_stream(setup.options)
        if self.upstream is None or self.http is None or self.holder.stream.why:
            return None
        made = StreamFollower(
            self.upstream,
            self.http,
            self.holder,
            mode=setup.options.upstream_mode,
            clock=setup.clock,
            log=setup.log,
            draw=self.random.random,
        )
        made.keep_fresh(setup.options.max_staleness)
        return made

    def make_reporter(self, setup: ProxySetup, upstream: Upstream) -> Reporter:
        return Reporter(
            self.counters,
            upstream,
            setup.identity,
            clock=setup.clock,
            log=setup.log,
            draw=self.random.random,
            interval_ms=setup.options.metrics_interval,
            jitter_ms=setup.options.metrics_jitter,
            batch=setup.options.metrics_batch,
            unsent_usage=make_unsent_usage(setup, self.storage),
            custom_strategies=list(setup.strategies.by_name),
            synchronised=self.holder.wait_synchronised,
        )


def why_no_stream(options: ProxyOptions) -> str:
    """Return why the upstream is never asked for a stream, in words; empty if it is."""
    if is_file_url(options.flagsvc_url):
        return "a file has no stream"
    if is_gitlab(options.flagsvc_url):
        return "GitLab has no stream"
    if options.refresh_interval == 0:
        return "refreshInterval is 0"
    return "upstreamMode is polling" if options.upstream_mode == POLLING else ""


async def warn_if_exposed(store: FileStore, log: Logger) -> None:
    """Log a warning if other users can write to the storage folder, or all users can read it."""
    mode = await run_in_thread(store.find_exposed_mode)
    if mode is not None:
        remedy = f"chmod 0700 {store.folder}"
        log.warn("the storage folder is open to others", folder=str(store.folder), mode=f"{mode:04o}", remedy=remedy)


def make_preparer(setup: ProxySetup) -> Preparer:
    return Preparer(Compiler(setup.compile_options), make_feature_filter(setup.options))


def make_feature_filter(options: ProxyOptions) -> FeatureFilter | None:
    """Return a function that tells whether a feature belongs to this proxy's project and name prefix; None for all features."""
    project, prefix = options.project_name, options.name_prefix
    return partial(is_included, project=project, name_prefix=prefix) if project or prefix else None


def make_upstream(setup: ProxySetup) -> Upstream:
    """Return the session with the upstream server. It opens no connection yet."""
    return Upstream(make_upstream_settings(setup), clock=setup.clock, log=setup.log, tracer=setup.tracer)


def make_upstream_settings(setup: ProxySetup) -> UpstreamSettings:
    options = setup.options
    seconds = options.upstream_timeout / 1000
    return UpstreamSettings(
        url=options.flagsvc_url,
        token=options.flagsvc_api_token,
        identity=replace(setup.identity, app_name=upstream_name(options)),
        headers=options.upstream_headers,
        auth_header=options.upstream_auth_header,
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


def upstream_name(options: ProxyOptions) -> str:
    """Return the application name in the headers of requests. GitLab reads the name of an environment there."""
    return options.environment or options.flagsvc_app_name if is_gitlab(options.flagsvc_url) else options.flagsvc_app_name


def make_outbound(options: ProxyOptions) -> Outbound:
    return Outbound(options.http_proxy, options.https_proxy, options.no_proxy)


def make_source(setup: ProxySetup, http: HttpSource | None) -> Source:
    """Return the source of documents: the upstream server, or the file that replaces it."""
    if http is not None:
        return http
    options = setup.options
    return FileSource(file_path(options.flagsvc_url), clock=setup.clock, refresh_ms=options.refresh_interval)


def make_bootstrap(setup: ProxySetup) -> Source | None:
    """Return the source of the first document, or None (specification: Experimental options)."""
    options = setup.options
    if options.exp_bootstrap_url is None:
        return None
    return BootstrapSource(
        options.exp_bootstrap_url,
        authorization=options.exp_bootstrap_authorization,
        trust=make_trust(options).nameless,
        outbound=make_outbound(options),
        clock=setup.clock,
    )


def make_storage(options: ProxyOptions) -> StorageProvider:
    """Return the storage in which the configuration survives a restart."""
    if options.storage_provider is not None:
        provider: StorageProvider = options.storage_provider
        return provider
    if is_file_url(options.flagsvc_url):
        return NoStore()
    server = server_at(options.storage)
    if server is None:
        return storage_at(options.storage)
    from flagsvc.proxy.redis import make_store

    return make_store(options, server)


def make_storage_key(options: ProxyOptions, name: str = "") -> str:
    """Return the key under which only this configuration is stored. `name` is the name of the environment, if there are several."""
    token = options.flagsvc_api_token or caller_of(options)
    return storage_key(
        url=options.flagsvc_url,
        token=f"{name} {token}" if name else token,
        project=options.project_name,
        name_prefix=options.name_prefix,
        tags=options.tags,
    )


def caller_of(options: ProxyOptions) -> str:
    """Return what decides the answer of an upstream that reads no token: the names in the headers."""
    return f"{options.flagsvc_instance_id} {upstream_name(options)}" if is_gitlab(options.flagsvc_url) else ""


def make_unsent_usage(setup: ProxySetup, provider: StorageProvider) -> UnsentUsage | None:
    """Return the store of unsent usage metrics, or None if nothing is stored."""
    options = setup.options
    key = make_usage_key(options, setup.name)
    record_store = make_record_store(provider, key, options.flagsvc_instance_id)
    # not shorter than the timeout: a request that is being sent must end before the record is written again
    interval_ms = max(options.metrics_interval, options.upstream_timeout)
    if record_store is None:
        return None
    return UnsentUsage(record_store, clock=setup.clock, log=setup.log, interval_ms=interval_ms)


def make_usage_key(options: ProxyOptions, name: str = "") -> str:
    """Return the name under which unsent counts are stored: a digest of the options that decide where the upstream adds them.

    Any process with the same options may send these counts. Of a token only its scope counts, `project:environment`, if it has
    one. So counts that wait because a token is no longer accepted are sent with its replacement. `name` is the name of the
    environment, if the process has several: no environment sends the counts of another.
    """
    token = options.flagsvc_api_token
    identity = [
        "usage",
        options.flagsvc_url,
        scope_of(token) or token,
        options.flagsvc_app_name,
        *([name] if name else []),
    ]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:40]


def scope_of(token: str) -> str:
    """Return the part of a token that is not secret, `project:environment.`; an empty text if it has none."""
    named = read_scope(token)
    return "" if named is None else named.prefix


def make_record_store(provider: StorageProvider, key: str, instance_id: str) -> RecordStore | None:
    """Return the store of usage records in a storage; None if nothing is stored.

    A provider with a method `record_store(key)` returns its own; any other provider keeps a single record.
    """
    if isinstance(provider, NoStore):
        return None
    if isinstance(provider, FileStore):
        return FileRecordStore(provider.folder, key)
    own = getattr(provider, "record_store", None)
    if own is not None:
        record_store: RecordStore = own(key)
        return record_store
    return SingleRecordStore(provider, key, instance_id)
