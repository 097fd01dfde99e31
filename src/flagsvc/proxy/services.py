"""The callers' side of a process: the services of its environments, and the service of the process itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from random import Random
from typing import Any, Protocol

from flagsvc.engine.compile import compile_document
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.call import RouteCounts
from flagsvc.http.contract import Contract
from flagsvc.proxy.api.build import Surroundings
from flagsvc.proxy.api.cors import ANY_ORIGIN
from flagsvc.proxy.api.operations import ADMIN
from flagsvc.proxy.api.prometheus import FetchMetrics, exposition
from flagsvc.proxy.api.readiness import EnvironmentsReadiness, Readiness
from flagsvc.proxy.api.router import Router
from flagsvc.proxy.api.samples import count_former, readings
from flagsvc.proxy.api.server_side import describe_listed
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.sources import (
    FormerCounts,
    Loops,
    Sources,
    StorageErrors,
    TokenStatus,
    no_loops,
    no_storage_errors,
)
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.scoped_services import SCOPED_CACHE_SHARE, ScopedServices
from flagsvc.proxy.scopes import ScopedHolder
from flagsvc.proxy.service_finder import AdmitToken, ServiceFinder
from flagsvc.proxy.setup import ProxySetup, count_loop_restarts, keys_of_setup
from flagsvc.proxy.token_directory import Admission
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.usage.counters import UsageSums
from flagsvc.settings.network import Origin


class ServedEnvironment(Protocol):
    """One environment, as callers see it."""

    @property
    def number(self) -> int:
        """Its number, which no other environment of this process ever has."""

    @property
    def setup(self) -> ProxySetup:
        """Its setup."""

    @property
    def holder(self) -> Holder:
        """The cell of its configuration."""

    @property
    def counters(self) -> UsageCounters:
        """Its usage counters."""

    @property
    def service(self) -> Service:
        """Its service."""


ListServed = Callable[[], Mapping[str, ServedEnvironment]]
"""Returns the environments that answer requests, by name."""
ListComing = Callable[[], Iterable[ServedEnvironment]]
"""Returns the environments that are to take the place of others. Of several with one name, the last one comes first."""


class CallersSide:
    """What answers the callers of one process: its only service, or a router over the services that different keys open."""

    def __init__(
        self,
        setup: ProxySetup,
        list_served: ListServed,
        origins: Iterable[Origin],
        fetch_metrics: FetchMetrics | None = None,
        admit: AdmitToken | None = None,
        tokens: TokenStatus | None = None,
        list_coming: ListComing = tuple,
    ) -> None:
        """Take the setup of the process. `origins` are those that each environment allows; none if there is a single one.

        `fetch_metrics` returns the metrics of all processes, if there are several. `admit` looks up tokens; None if only listed
        keys are accepted. `tokens` tells about the tokens of several environments. A single environment is served after the first
        `refresh`. Keys that open only an environment of `list_coming` get its answer: 503.
        """
        self._setup = setup
        self._list_served = list_served
        self._list_coming = list_coming
        self._fetch_metrics = fetch_metrics
        self._tokens = tokens
        self.revocations = 0
        self._counts: dict[str, RouteCounts] = {}
        self._former: dict[str, FormerCounts] = {}
        self._origins = set(origins)
        self._enables_all = setup.service_settings.enable_all_endpoint
        self._scoped: ScopedServices[ServedEnvironment] = ScopedServices(self._make_scoped_service, self._end_service)
        self._finder = None if admit is None else ServiceFinder(self, admit)
        self._process = self._make_process_service() if self._origins else None
        self.router = None if self._process is None else Router(self._process, self._finder)

    @property
    def contract(self) -> Contract:
        """What answers callers."""
        return self.router or self._first

    @property
    def readiness(self) -> Readiness:
        """Whether callers should be sent to this process."""
        return self._first.readiness

    @property
    def sources(self) -> Sources:
        """The sources of the metrics of the process."""
        return self._first.sources

    @property
    def _first(self) -> Service:
        """The service of the process; if there is a single environment, its service."""
        return self._process or next(iter(self._list_served().values())).service

    def refresh(self) -> None:
        """Pass requests on to the environments that there are now, by the keys that they have now.

        Tokens that were looked up are forgotten, also by the services: another one may be theirs now, or none.
        """
        served = self._list_served()
        if self.router is None and self._finder is not None:
            self.router = Router(self._first, self._finder)
        if self.router is None:
            return
        origins = {each.setup.service_settings.cors_origin for each in served.values()}
        enables_all = any(each.setup.service_settings.enable_all_endpoint for each in served.values())
        if self._process is not None and (origins, enables_all) != (self._origins, self._enables_all):
            self._origins, self._enables_all = origins, enables_all
            self._process = self.router.process = self._make_process_service(self._process)
        self._scoped.keep(served.values())
        for service in self._list_services():
            service.keys.forget_added()
        self.router.use(list(list_keys(self._list_every())))

    def reroute_tokens(self) -> None:
        """Have tokens that were looked up placed again: an environment has its first configuration, and they may open it now."""
        self.revocations += 1
        if self.router is not None and self.router.table.admitted:
            self.refresh()

    def _list_services(self) -> Iterator[Service]:
        """Yield the services that tokens may open: of environments, and of projects."""
        return chain((each.service for each in self._list_served().values()), self._scoped)

    def _list_every(self) -> Iterator[ServedEnvironment]:
        """Yield the environments that are coming, then those that answer: the latter open keys that both have."""
        yield from self._list_coming()
        yield from self._list_served().values()

    def admit(self, token: str, admission: Admission) -> Service | None:
        """Return the service that a token opens, and pass its requests on to it from now on.

        Returns None if the environment is no longer there, also if another one has its name now.
        """
        found = (each for each in self._list_served().values() if each.number == admission.environment)
        environment = next(found, None)
        if environment is None or self.router is None:
            return None
        service = environment.service
        if admission.projects is not None:
            service = self._scoped.find(environment, admission.projects)
        service.keys.add(token.encode("utf-8", "surrogateescape"), admission.is_server)
        self.router.admit_token(token, service)
        return service

    def revoke(self, token: str) -> None:
        """Accept a token no longer that was looked up."""
        self.revocations += 1
        if self.router is None:
            return
        self.router.revoke_token(token)
        for service in self._list_services():
            service.keys.remove(token.encode("utf-8", "surrogateescape"))

    def _end_service(self, service: Service) -> None:
        """Pass requests on to a service no longer. Its tokens open another one when they are used again."""
        if self.router is not None:
            self.router.forget_service(service)

    def _make_scoped_service(self, environment: ServedEnvironment, holder: ScopedHolder) -> Service:
        """Return a service for the part of an environment that is in `holder`."""
        setup = environment.setup
        settings = replace(
            setup.service_settings,
            client_keys=(),
            server_tokens=(),
            answer_cache_bytes=setup.service_settings.answer_cache_bytes // SCOPED_CACHE_SHARE,
        )
        made_of = replace(setup, service_settings=settings)
        return self.make_service(made_of, holder, environment.counters, Random(), self._fetch_metrics)

    async def _describe_tokens(self, tokens: list[str], network: bytes) -> list[dict[str, Any]]:
        """Return what each of these tokens opens, in the words of the real server. Raises HttpError (503)."""
        listed = {token: told for token in tokens if (told := self._describe_listed(token)) is not None}
        others = [token for token in tokens if token not in listed]
        found = [] if self._finder is None else await self._finder.describe(others, network)
        return [*listed.values(), *found]

    def _describe_listed(self, token: str) -> dict[str, Any] | None:
        """Return what a listed key opens; None if it is none."""
        service = None if self.router is None else self.router.table.find_listed(token.encode("utf-8", "surrogatepass"))
        return None if service is None else describe_listed(service.keys, token, service.settings.upstream_environment)

    def _make_process_service(self, former: Service | None = None) -> Service:
        """Return the service of a process with several environments, which may take the place of a former one.

        It has no keys: it answers what belongs to no environment. A path that any environment has is known.
        """
        setup, list_served = self._setup, self._list_served
        holder = AnyHolder(setup, lambda: (each.holder for each in list_served().values()))
        origin = join_origins(self._origins)
        return Service(
            replace(
                setup.service_settings,
                client_keys=(),
                server_tokens=(),
                cors_origin=origin,
                enable_all_endpoint=self._enables_all,
            ),
            holder=holder,
            usage=make_counters(setup, holder),
            log=setup.service_log,
            clock=setup.clock,
            fetch_metrics=self._fetch_metrics,
            loops=partial(count_loop_restarts, setup),
            readiness=EnvironmentsReadiness(holder, setup.clock, lambda: list_readiness(list_served()))
            if former is None
            else former.readiness,
            shared=former,
            surroundings=Surroundings(
                counts=self._counts.setdefault("", RouteCounts()),
                environments=lambda: {name: each.service.sources for name, each in list_served().items()},
                find_tokens=self._describe_tokens,
                tokens=self._tokens,
                former=self._former,
                pending=lambda: {each.setup.name for each in self._list_coming()},
            ),
        )

    def keep_counts(self, former: ServedEnvironment) -> None:
        """Count on where an environment ends that another one replaces now."""
        name = former.setup.name
        self._former[name] = count_former(former.service.sources, self._former.get(name, {}))

    def make_service(
        self,
        setup: ProxySetup,
        holder: Holder | ScopedHolder,
        counters: UsageCounters,
        random: Random,
        fetch_metrics: FetchMetrics | None = None,
        loops: Loops = no_loops,
        storage_errors: StorageErrors = no_storage_errors,
        tokens: TokenStatus | None = None,
    ) -> Service:
        """Return the service of one environment. Its requests are counted on where those of another one of its name ended.

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
            storage_errors=storage_errors,
            shared=self._process or (None if self.router is None else self.router.process),
            surroundings=Surroundings(
                counts=self._counts.setdefault(setup.name, RouteCounts()),
                find_tokens=None if self._finder is None else self._describe_tokens,
                tokens=tokens,
            ),
        )


def list_keys(environments: Iterable[ServedEnvironment]) -> Iterator[tuple[str, Service]]:
    """Yield each key with the service that it opens. Of several with one key, the last one counts."""
    for environment in environments:
        for key in keys_of_setup(environment.setup):
            yield key, environment.service


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


def list_readiness(served: Mapping[str, ServedEnvironment]) -> list[Readiness]:
    """Return the readiness of each environment."""
    return [each.service.readiness for each in served.values()]


def join_origins(origins: Iterable[Origin]) -> Origin:
    """Return the origins that any environment allows. A preflight has no key, so it cannot tell which environment it is for."""
    listed = {each for origin in origins for each in ((origin,) if isinstance(origin, str) else origin)}
    return ANY_ORIGIN if ANY_ORIGIN in listed else tuple(sorted(listed))


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
