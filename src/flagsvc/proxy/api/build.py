"""Builds the service: handlers by name, and the resources that the route rows describe."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger
from flagsvc.core.throttle import Throttle
from flagsvc.http.call import HEADERS, KEY, Endpoint, Handler, Resource, StatusCounts
from flagsvc.http.keys import Keys, KeySet
from flagsvc.http.reached_limits import Reached
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.cors import Cors
from flagsvc.proxy.api.dialects.dialect import Dialect, DialectParts
from flagsvc.proxy.api.enrich import CONTEXT, Enrichment
from flagsvc.proxy.api.evaluation import Evaluator
from flagsvc.proxy.api.health import Health, Ready
from flagsvc.proxy.api.ports import ConfigurationHolder, UsageCounting
from flagsvc.proxy.api.prometheus import FetchMetrics, Prometheus
from flagsvc.proxy.api.readiness import AgeField, Readiness
from flagsvc.proxy.api.route import Auth, Limit, ProxyRoute
from flagsvc.proxy.api.samples import Loops, ReplicaStatus, Sources, no_loops
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.welcome import FirstPage
from flagsvc.proxy.api.wire_format import WireFormat
from flagsvc.proxy.extensions import ContextEnricher

ENRICHER_SECONDS = 60.0
UNMATCHED = "unmatched"
OTHER = "other"


class Ports(NamedTuple):
    """The ports of a service.

    `fetch_metrics` returns the metrics of all processes, if there are several. `loops` returns the restarts of loops by name.
    `readiness` is shared with another service; None for a new one.
    """

    holder: ConfigurationHolder
    usage: UsageCounting
    clock: Clock
    log: Logger
    random: Random
    fetch_metrics: FetchMetrics | None = None
    loops: Loops = no_loops
    readiness: Readiness | None = None
    fleet: ReplicaStatus | None = None


class HandledRoute(NamedTuple):
    """A row, the handler that answers it, and the wire format of its callers."""

    row: ProxyRoute
    handler: Handler
    wire_format: WireFormat


class ServiceParts(NamedTuple):
    """The parts of a service. `headers` has the kind of each header by its name, and `rest` counts requests without an endpoint.

    `answers` makes the answers of all routes without a dialect, and `dialect_answers` those of each dialect, with its path. `keys`
    open routes, `reached` counts refusals by limit, and the metrics are read from `sources`. `readiness` tells whether callers
    should be sent here. `age` is the age field of every answer, or None.
    """

    cors: Cors
    answers: Answers
    dialect_answers: list[tuple[bytes, Answers]]
    headers: dict[bytes, int]
    resources: dict[bytes, Resource]
    preflights: StatusCounts
    rest: StatusCounts
    keys: Keys
    reached: Reached
    sources: Sources
    readiness: Readiness
    age: AgeField | None


def build(
    settings: ServiceSettings,
    ports: Ports,
    enrichers: Sequence[ContextEnricher],
    rows: Sequence[ProxyRoute],
    dialects: Sequence[Dialect],
) -> ServiceParts:
    """Return the parts of a Service with these settings and routes. A row that is not a dialect's belongs to the operations."""
    cors = Cors(settings)
    status_counts: list[StatusCounts] = [StatusCounts("OPTIONS", "any"), StatusCounts(OTHER, UNMATCHED)]
    cache = AnswerCache(settings.answer_cache_bytes)
    reached = Reached()
    sources = Sources(
        ports.holder,
        ports.usage,
        status_counts,
        ports.clock,
        cache,
        loops=ports.loops,
        reached=reached.counts,
        private=not settings.without_admin_address,
        fleet=ports.fleet,
    )
    readiness = ports.readiness or Readiness(ports.holder, ports.clock, settings.max_staleness)
    answers = Answers(cors, settings.client_keys_header_name, WireFormat())
    operations = make_operations(settings, ports, answers, sources, rows)
    operations["ready"] = Ready(readiness, answers)
    enrichment = make_enrichment(settings, ports, enrichers, reached)
    served = make_dialects(settings, ports, cors, cache, enrichment, dialects)
    known = [row for row in rows if row.is_known(settings)]
    keys = Keys(settings.client_keys, settings.server_tokens)
    return ServiceParts(
        cors=cors,
        answers=answers,
        dialect_answers=[
            (f"{settings.base_path}{dialect.prefix}".lower().encode(), parts.answers) for dialect, parts in served
        ],
        headers={**HEADERS, settings.client_keys_header_name.encode("latin-1"): KEY},
        resources=make_resources(settings, list_handled(known, operations, answers, served), status_counts, keys),
        preflights=status_counts[0],
        rest=status_counts[1],
        keys=keys,
        reached=reached,
        sources=sources,
        readiness=readiness,
        age=None if settings.age_header is None else AgeField(settings.age_header, readiness),
    )


def make_enrichment(
    settings: ServiceSettings, ports: Ports, enrichers: Sequence[ContextEnricher], reached: Reached
) -> Enrichment | None:
    """Return the enrichment, or None if there are no enrichers."""
    if not enrichers:
        return None
    return Enrichment(
        enrichers,
        ports.log,
        Throttle(ports.clock, ENRICHER_SECONDS),
        reached,
        seconds=settings.enricher_timeout / 1000.0,
        lenient=settings.enricher_failure == CONTEXT,
    )


def make_operations(
    settings: ServiceSettings, ports: Ports, answers: Answers, sources: Sources, rows: Sequence[ProxyRoute]
) -> dict[str, Handler]:
    """Return the handlers of the routes that belong to no dialect, by the names that the rows use."""
    handlers: dict[str, Handler] = {
        "welcome": FirstPage(settings, rows, answers),
        "health": Health(answers),
        "prometheus": Prometheus(sources, answers, ports.fetch_metrics),
    }
    if settings.enable_oas:
        from flagsvc.proxy.api import docs  # most deployments have no page

        handlers |= {"openapi": docs.OpenApi(settings, answers), "page": docs.DocsPage(answers), **docs.files(answers)}
    return handlers


def make_dialects(
    settings: ServiceSettings,
    ports: Ports,
    cors: Cors,
    cache: AnswerCache,
    enrichment: Enrichment | None,
    dialects: Sequence[Dialect],
) -> list[tuple[Dialect, DialectParts]]:
    """Return each dialect with the parts of its handlers. All dialects share the cache and the enrichment."""
    faults = Throttle(ports.clock, None)
    holder, usage, clock, log, random = ports[:5]
    served: list[tuple[Dialect, DialectParts]] = []
    for dialect in dialects:
        answers = Answers(cors, settings.client_keys_header_name, dialect.wire_format)
        evaluator = Evaluator(settings, holder, usage, answers, cache, enrichment, clock, random, log, faults)
        served.append((dialect, DialectParts(evaluator, answers, holder, usage)))
    return served


def list_handled(
    rows: Sequence[ProxyRoute],
    operations: dict[str, Handler],
    answers: Answers,
    served: Sequence[tuple[Dialect, DialectParts]],
) -> list[HandledRoute]:
    """Return rows with their handlers, in their order."""
    made = {
        row: HandledRoute(row, dialect.handlers[row.handler](parts), dialect.wire_format)
        for dialect, parts in served
        for row in dialect.routes
    }
    return [made.get(row) or HandledRoute(row, operations[row.handler], answers.wire_format) for row in rows]


def make_resources(
    settings: ServiceSettings, handled: Sequence[HandledRoute], status_counts: list[StatusCounts], keys: Keys
) -> dict[bytes, Resource]:
    """Return the resources by path, also in lower case. Adds the counts of each endpoint to `status_counts`."""
    key_sets = key_sets_by_auth(keys)
    resources: dict[bytes, Resource] = {}
    for route in handled:
        row = route.row
        for method in ("GET", "HEAD") if row.method == "GET" else (row.method,):
            status_counts.append(StatusCounts(method, row.template))
            endpoint = make_endpoint(route, settings, key_sets, status_counts[-1])
            for place in row.places(settings.base_path):
                resource = resources.setdefault(place.encode(), Resource(row.always))
                resource.endpoints[method.encode()] = endpoint
    for resource in resources.values():
        resource.allow = b", ".join([*resource.endpoints, b"OPTIONS"])
    return {path.lower(): resource for path, resource in resources.items()} | resources


def key_sets_by_auth(keys: Keys) -> dict[Auth, KeySet | None]:
    """Return the key set for each kind of authentication."""
    return {Auth.NONE: None, Auth.CLIENT: keys.client, Auth.SERVER: keys.server, Auth.EITHER: keys.either}


def make_endpoint(
    route: HandledRoute, settings: ServiceSettings, key_sets: dict[Auth, KeySet | None], counts: StatusCounts
) -> Endpoint:
    """Return the endpoint for one method of a row."""
    row = route.row
    key_set = key_sets[row.auth]
    if key_set is not None:
        key_set = route.wire_format.make_key_set(key_set)
    limit = 0 if row.limit is Limit.NONE else int(getattr(settings, row.limit.value))
    off = "" if row.condition is None or row.on(settings) else row.condition.hint
    return Endpoint(route.handler, key_set, limit, off, counts)
