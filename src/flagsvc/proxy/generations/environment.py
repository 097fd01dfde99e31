"""One environment of a generation: its setup, its upstream side, and the service that answers its callers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from flagsvc.engine.compile import compile_document
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.counts import RouteCounts
from flagsvc.http.streams import StreamLimits, Streams
from flagsvc.proxy.api.answers import ANY_ORIGIN
from flagsvc.proxy.api.build import Surroundings
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.metrics import FetchMetrics, Sources
from flagsvc.proxy.api.operations import ADMIN
from flagsvc.proxy.api.readiness import Readiness
from flagsvc.proxy.api.route import FindTokens
from flagsvc.proxy.api.scopes import SCOPED_CACHE_SHARE, ScopedHolder
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.streams import OpenTicket, Tickets, make_secrets
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.generations.feeds import Feed
from flagsvc.proxy.generations.setup import ProxySetup
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.usage.counters import UsageSums
from flagsvc.settings.network import Origin
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.rows.callers import LOOKED_UP


@dataclass(frozen=True, eq=False)
class Environment:
    """One environment as callers meet it. When its keys or other options change, another environment takes its place.

    Two of them have the same `number` if they differ in nothing but their keys.
    """

    setup: ProxySetup
    feed: Feed
    service: Service
    number: int

    @property
    def name(self) -> str:
        return self.setup.name

    @property
    def holder(self) -> Holder:
        return self.feed.holder

    @property
    def looks_up_tokens(self) -> bool:
        """Whether it accepts tokens that no option lists."""
        return self.setup.options.token_validation == LOOKED_UP

    def is_like(self, setup: ProxySetup) -> bool:
        """Return whether an environment with this setup gives the callers who may ask the same answers."""
        return (
            without_keys(self.setup.service_settings) == without_keys(setup.service_settings)
            and self.setup.enrichers is setup.enrichers
        )


def without_keys(settings: ServiceSettings) -> ServiceSettings:
    return replace(settings, client_keys=(), server_tokens=())


class Services:
    """Makes the services of the environments of one process. Requests are counted by the names of the environments.

    `find_tokens` tells about the keys of the whole process. `fetch_metrics` returns the metrics of all environments, and of all
    processes if there are several. `is_pending` tells by name whether an environment is being replaced. `streams` are the event
    streams of the process, and `open_ticket` finds the service that a ticket opens.
    """

    def __init__(
        self,
        fetch_metrics: FetchMetrics,
        find_tokens: FindTokens,
        is_pending: Callable[[str], bool],
        streams: Streams,
        open_ticket: OpenTicket,
    ) -> None:
        self._streams = streams
        self._open_ticket = open_ticket
        self.counts: dict[str, RouteCounts] = {}
        self._fetch_metrics = fetch_metrics
        self._find_tokens = find_tokens
        self._is_pending = is_pending
        self._numbers = count()

    def make_environment(self, setup: ProxySetup, feed: Feed, before: Environment | None, shared: Service | None) -> Environment:
        """Return an environment. If `before` has the same feed, what that has counted and keeps is taken over.

        The service limits callers together with `shared`.
        """
        cache = readiness = None
        number = next(self._numbers)
        if before is not None:
            cache = before.service.sources.cache
            if before.is_like(setup):
                number, readiness = before.number, before.service.readiness
            else:
                cache = cache.successor()
        service = self.make(setup, feed, feed.holder, shared, cache, readiness)
        if before is not None:
            service.readiness.began = before.service.readiness.began
        return Environment(setup, feed, service, number)

    def make_scoped(self, environment: Environment, holder: ScopedHolder) -> Service:
        """Return a service for the part of an environment that is in `holder`."""
        settings = environment.setup.service_settings
        bytes_of_part = settings.answer_cache_bytes // SCOPED_CACHE_SHARE
        settings = replace(without_keys(settings), answer_cache_bytes=bytes_of_part)
        setup = replace(environment.setup, service_settings=settings)
        return self.make(setup, environment.feed, holder, environment.service)

    def make(
        self,
        setup: ProxySetup,
        feed: Feed,
        holder: Holder | ScopedHolder,
        shared: Service | None,
        cache: AnswerCache | None = None,
        readiness: Readiness | None = None,
    ) -> Service:
        return Service(
            setup.service_settings,
            holder=holder,
            usage=feed.counters,
            log=setup.service_log,
            clock=setup.clock,
            enrichers=setup.enrichers.functions,
            fetch_metrics=self._fetch_metrics,
            loops=feed.restarts,
            storage_errors=feed.storage_errors,
            shared=shared,
            readiness=readiness,
            surroundings=Surroundings(
                self.counts_of(setup.name),
                self._find_tokens,
                cache,
                partial(self._is_pending, setup.name),
                self._streams,
                make_tickets(setup),
                self._open_ticket,
            ),
        )

    def make_for_process(
        self,
        setup: ProxySetup,
        parts: Iterable[ProxySetup],
        holder: Holder,
        readiness: Readiness,
        before: Service | None,
    ) -> Service:
        """Return the service of a process with several environments, which may take the place of another one.

        It has no keys: it answers what belongs to no environment. A path that any environment has is known.
        """
        of_parts = [each.service_settings for each in parts]
        settings = replace(
            without_keys(setup.service_settings),
            cors_origin=join_origins(each.cors_origin for each in of_parts),
            enable_all_endpoint=any(each.enable_all_endpoint for each in of_parts),
            ofrep=any(each.ofrep for each in of_parts),
        )
        if before is not None and before.settings == settings:
            return before
        return Service(
            settings,
            holder=holder,
            usage=make_counters(setup, holder),
            log=setup.service_log,
            clock=setup.clock,
            fetch_metrics=self._fetch_metrics,
            shared=before,
            readiness=readiness,
            surroundings=Surroundings(self.counts_of(""), self._find_tokens, streams=self._streams, open_ticket=self._open_ticket),
        )

    def counts_of(self, name: str) -> RouteCounts:
        """Return the counts of the requests to an environment; those that belong to no environment count under an empty name."""
        return self.counts.setdefault(name, RouteCounts())


def make_streams(options: ProxyOptions) -> Streams:
    """Return the event streams of a process."""
    limits = StreamLimits(options.max_streams, options.max_streams_per_network, options.stream_window)
    return Streams(limits, grace_s=options.shutdown_grace)


def make_tickets(setup: ProxySetup) -> Tickets:
    """Return what signs the tickets of an environment, in every process that shares a client key or the upstream token."""
    options = setup.options
    secrets = make_secrets(options.client_keys or filter(None, [options.flagsvc_api_token]))
    return Tickets(lambda: secrets, setup.name, setup.clock)


class AnyHolder(Holder):
    """The holder of the process. While any environment has a configuration it has one, too: without a toggle."""

    def __init__(self, setup: ProxySetup, list_holders: Callable[[], Iterable[Holder]]) -> None:
        self._empty = compile_document({"features": []}, setup.compile_options).snapshot
        self._list_holders = list_holders
        super().__init__()

    @property
    def current(self) -> Snapshot | None:
        """The empty configuration, or None while no environment has one."""
        return self._empty if any(each.is_ready for each in self._list_holders()) else None

    @current.setter
    def current(self, snapshot: Snapshot | None) -> None:
        """Do nothing: it follows from the environments."""


def join_origins(origins: Iterable[Origin]) -> Origin:
    """Return the origins that any environment allows. A preflight has no key, so its environment is not known."""
    listed = {each for origin in origins for each in ((origin,) if isinstance(origin, str) else origin)}
    return ANY_ORIGIN if ANY_ORIGIN in listed else tuple(sorted(listed))


def make_admin_address_service(setup: ProxySetup, sources: Sources, readiness: Readiness, fetch_metrics: FetchMetrics) -> Service:
    """Return the HTTP service of the operators' address.

    `readiness` is that of the callers' side, and `fetch_metrics` returns the metrics of all processes. There is no CORS, because
    no browser uses this address.
    """
    callers = setup.service_settings
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
        fetch_metrics=fetch_metrics,
        rows=ADMIN,
        dialects=(),
        readiness=readiness,
    )


def make_counters(setup: ProxySetup, holder: Holder) -> UsageCounters:
    """Return usage counters for the toggles that are served."""
    max_entries, max_bytes = setup.options.metrics_buffer, setup.options.metrics_buffer_bytes
    return UsageCounters(partial(served_names, holder), setup.clock.now, max_entries=max_entries, max_bytes=max_bytes)


def make_shown_counters(setup: ProxySetup, holder: Holder) -> UsageCounters:
    """Return usage counters of the process that has the pages, which show their sums."""
    made = make_counters(setup, holder)
    if setup.has_pages:
        made.sums = UsageSums()
    return made


def served_names(holder: Holder) -> dict[str, frozenset[str]]:
    """Return the names of the served toggles, each with the names of its variants."""
    snapshot = holder.current
    return {} if snapshot is None else snapshot.names
