"""Builds the service: handlers by name, and the resources that the route rows describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from random import Random
from typing import NamedTuple

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, Throttle
from flagsvc.engine.fragments import AnswerShape
from flagsvc.http.call import HEADERS, KEY, Endpoint, FunctionHandler, Handler, Resource
from flagsvc.http.counts import RouteCounts, StatusCounts
from flagsvc.http.keys import KeyCheck, Keys, KeySet
from flagsvc.http.messages import UNREAD
from flagsvc.http.metrics import METHODS, UNMATCHED, method_label
from flagsvc.http.reached_limits import Reached
from flagsvc.http.streams import StreamLimits, Streams
from flagsvc.proxy.api.answers import Answers, Cors
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.deltas import DeltaScopes
from flagsvc.proxy.api.enrich import CONTEXT, Enrichment
from flagsvc.proxy.api.evaluation import Evaluator
from flagsvc.proxy.api.metrics import (
    FetchMetrics,
    Loops,
    Prometheus,
    Sources,
    StorageErrors,
)
from flagsvc.proxy.api.operations import FirstPage, answer_alive, answer_ready
from flagsvc.proxy.api.readiness import AgeField, Readiness
from flagsvc.proxy.api.route import Auth, Dialect, DialectParts, FindTokens, Limit, ProxyRoute
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.streams import Hints, OpenTicket, StreamParts, Tickets, make_secrets
from flagsvc.proxy.api.wire_format import WireFormat
from flagsvc.proxy.configuration.holder import ConfigurationHolder
from flagsvc.proxy.extensions import ContextEnricher
from flagsvc.proxy.usage import UsageCounters

ENRICHER_SECONDS = 60.0


class Surroundings(NamedTuple):
    """What a service has to do with the rest of its process. Each is None if there is nothing of the kind.

    `counts` are the requests that are counted already. `find_tokens` tells about the keys of the whole process. `cache` keeps
    answers of a service whose place this service takes. `is_pending` tells whether another service is to take this one's place.
    `streams` are the event streams of the process. `tickets` signs those of the service, and `open_ticket` finds the service that a
    ticket opens.
    """

    counts: RouteCounts | None = None
    find_tokens: FindTokens | None = None
    cache: AnswerCache | None = None
    is_pending: Callable[[], bool] = bool
    streams: Streams | None = None
    tickets: Tickets | None = None
    open_ticket: OpenTicket | None = None


ALONE = Surroundings()
"""The surroundings of the only service of a process."""


class Ports(NamedTuple):
    """The ports of a service.

    `fetch_metrics` returns the metrics of all processes, if there are several. `loops` returns the restarts of loops by name.
    `readiness` and `reached` are shared with another service; None for new ones.
    """

    holder: ConfigurationHolder
    usage: UsageCounters
    clock: Clock
    log: Logger
    random: Random
    fetch_metrics: FetchMetrics | None = None
    loops: Loops = dict
    readiness: Readiness | None = None
    storage_errors: StorageErrors = lambda: None
    reached: Reached | None = None
    surroundings: Surroundings = ALONE


class ServiceParts(NamedTuple):
    """The parts of a service. `headers` has the kind of each header by its name, and `rest` counts requests without an endpoint by
    method, those of an unusual method as UNREAD.

    `named_resources` are those whose path ends with a name, by the path before it. `hints` tell for a path that is no route what a
    caller may have meant.

    `answers` makes the answers of all routes without a dialect, and `dialect_answers` those of each dialect, with its path. `keys`
    open routes, `reached` counts refusals by limit, and the metrics are read from `sources`. `readiness` tells whether callers
    should be sent here. `age` is the age field of every answer, or None. `stream` has the event stream of the configuration.
    """

    cors: Cors
    answers: Answers
    dialect_answers: list[tuple[bytes, Answers]]
    headers: dict[bytes, int]
    resources: dict[bytes, Resource]
    named_resources: list[tuple[bytes, Resource]]
    hints: dict[bytes, str]
    preflights: StatusCounts
    rest: dict[bytes, StatusCounts]
    keys: Keys
    reached: Reached
    sources: Sources
    readiness: Readiness
    age: AgeField | None
    stream: StreamParts


def build(
    settings: ServiceSettings,
    ports: Ports,
    enrichers: Sequence[ContextEnricher],
    rows: Sequence[ProxyRoute],
    dialects: Sequence[Dialect],
) -> ServiceParts:
    """Return the parts of a Service with these settings and routes. A row that is not a dialect's belongs to the operations."""
    cors = Cors(settings)
    counts = ports.surroundings.counts or RouteCounts()
    preflights, rest = counts.of("OPTIONS", "any"), count_unmatched(counts)
    cache = ports.surroundings.cache or AnswerCache(settings.answer_cache_bytes)
    reached = ports.reached or Reached()
    readiness = ports.readiness or Readiness(ports.holder.whole, ports.clock, settings.max_staleness)
    sources = Sources(
        ports.holder.whole,
        ports.usage,
        counts.every,
        ports.clock,
        cache,
        loops=ports.loops,
        reached=reached.counts,
        private=not settings.without_admin_address,
        storage_errors=ports.storage_errors,
        is_pending=ports.surroundings.is_pending,
        readiness=readiness,
    )
    answers = Answers(cors, settings.client_keys_header_name, WireFormat())
    hints = make_hints(settings, rows, dialects)
    operations = make_operations(settings, ports, answers, sources, readiness, rows, hints)
    enrichment = make_enrichment(settings, ports, enrichers, reached)
    keys = Keys(settings.client_keys, settings.server_tokens)
    streams = make_streams(settings, ports)
    served = make_dialects(settings, ports, cors, cache, enrichment, keys, streams, reached, dialects)
    handlers = {row: dialect.handlers[row.handler](parts) for dialect, parts in served for row in dialect.routes}
    known = {row: handlers.get(row) or operations[row.handler] for row in rows if row.is_known(settings)}
    resources = make_resources(settings, known, counts, keys)
    return ServiceParts(
        cors=cors,
        answers=answers,
        dialect_answers=[
            (f"{settings.base_path}{prefix}".lower().encode(), parts.answers)
            for dialect, parts in served
            for prefix in dialect.prefixes
        ],
        headers={**HEADERS, settings.client_keys_header_name.encode("latin-1"): KEY},
        resources=resources,
        named_resources=[(path.rpartition(b"{")[0], resource) for path, resource in resources.items() if path.endswith(b"}")],
        hints=hints,
        preflights=preflights,
        rest=rest,
        keys=keys,
        reached=reached,
        sources=sources,
        readiness=readiness,
        age=None if settings.age_header is None else AgeField(settings.age_header, readiness),
        stream=streams,
    )


def count_unmatched(counts: RouteCounts) -> dict[bytes, StatusCounts]:
    """Return the counts of requests without an endpoint, by method; those of unusual methods under UNREAD."""
    return {method: counts.of(method_label(method), UNMATCHED) for method in (*sorted(METHODS), UNREAD)}


def make_enrichment(
    settings: ServiceSettings, ports: Ports, enrichers: Sequence[ContextEnricher], reached: Reached
) -> Enrichment | None:
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
    settings: ServiceSettings,
    ports: Ports,
    answers: Answers,
    sources: Sources,
    readiness: Readiness,
    rows: Sequence[ProxyRoute],
    hints: dict[bytes, str],
) -> dict[str, Handler]:
    """Return the handlers of the routes that belong to no dialect, by the names that the rows use."""
    handlers: dict[str, Handler] = {
        "welcome": FirstPage(settings, rows, answers, hints.get(settings.base_path.lower().encode(), "")),
        "health": FunctionHandler(partial(answer_alive, answers)),
        "ready": FunctionHandler(partial(answer_ready, answers, readiness)),
        "prometheus": Prometheus(sources, answers, ports.fetch_metrics),
    }
    if settings.enable_oas:
        from flagsvc.proxy.api import docs  # most deployments have no page

        handlers |= docs.make_handlers(settings, answers)
    return handlers


def make_dialects(
    settings: ServiceSettings,
    ports: Ports,
    cors: Cors,
    cache: AnswerCache,
    enrichment: Enrichment | None,
    keys: Keys,
    streams: StreamParts,
    reached: Reached,
    dialects: Sequence[Dialect],
) -> list[tuple[Dialect, DialectParts]]:
    """Return each dialect with the parts of its handlers. All dialects share the cache and the enrichment."""
    fault_throttle = Throttle(ports.clock, None)
    holder, usage, clock, log, random = ports[:5]

    def make_parts(dialect: Dialect) -> DialectParts:
        answers = Answers(cors, settings.client_keys_header_name, dialect.wire_format)

        def make_evaluator(shape: AnswerShape) -> Evaluator:
            return Evaluator(settings, holder, usage, answers, shape, cache, enrichment, clock, random, log, fault_throttle)

        evaluator = make_evaluator(dialect.wire_format.shape)
        find_tokens, open_ticket = ports.surroundings.find_tokens, ports.surroundings.open_ticket
        return DialectParts(
            settings, evaluator, answers, holder, usage, keys, streams, reached, make_evaluator, find_tokens, open_ticket
        )

    return [(dialect, make_parts(dialect)) for dialect in dialects]


def make_streams(settings: ServiceSettings, ports: Ports) -> StreamParts:
    """Return the event streams of a service: they share the streams of the process, if there are other services."""
    around = ports.surroundings
    limits = StreamLimits(settings.max_streams, settings.max_streams_per_network, settings.stream_window)
    streams = around.streams or Streams(limits, ports.random)
    secrets = make_secrets(settings.client_keys)
    tickets = around.tickets or Tickets(lambda: secrets, "", ports.clock)
    holder, clock = ports.holder, ports.clock
    return StreamParts(streams, Hints(streams, holder, clock), tickets, DeltaScopes(streams, holder, clock))


def make_hints(settings: ServiceSettings, rows: Sequence[ProxyRoute], dialects: Sequence[Dialect]) -> dict[bytes, str]:
    """Return what callers of paths that are no routes may have meant, by path in lower case."""
    base = settings.base_path
    spoken = (each for each in dialects if each.name in settings.dialects)
    pairs = chain(
        ((row.place(base), row.hint_while_off(settings)) for row in rows),
        ((f"{base}{path}", text.format(base=base)) for each in spoken for path, text in each.hints.items()),
    )
    return {path.rstrip("/").lower().encode(): text for path, text in pairs if text}


def make_resources(
    settings: ServiceSettings, handlers: Mapping[ProxyRoute, Handler], counts: RouteCounts, keys: Keys
) -> dict[bytes, Resource]:
    """Return the resources by path, also in lower case. Each endpoint has its place in `counts`."""
    resources: dict[bytes, Resource] = {}
    for row, handler in handlers.items():
        for method in ("GET", "HEAD") if row.method == "GET" else (row.method,):
            endpoint = make_endpoint(row, handler, settings, keys, counts.of(method, row.template))
            for place in row.places(settings.base_path):
                resource = resources.setdefault(place.encode(), Resource(row.always, row.wire_format.merges_slashes))
                resource.endpoints[method.encode()] = endpoint
    for resource in resources.values():
        resource.allow = b", ".join([*resource.endpoints, b"OPTIONS"])
    return {path.lower(): resource for path, resource in resources.items()} | resources


def make_key_check(row: ProxyRoute, keys: Keys) -> KeyCheck | None:
    """Return the check of the keys that open a row; None if no key is needed."""
    accepted: dict[Auth, KeySet] = {Auth.CLIENT: keys.client, Auth.SERVER: keys.server, Auth.EITHER: keys.either}
    found = accepted.get(row.auth)
    if found is None:
        return None
    form = row.wire_format
    return KeyCheck(found, keys.either if form.tells_key_types else None, form.reads_bearer)


def make_endpoint(row: ProxyRoute, handler: Handler, settings: ServiceSettings, keys: Keys, counts: StatusCounts) -> Endpoint:
    limit = 0 if row.limit is Limit.NONE else int(getattr(settings, row.limit.value))
    off = "" if row.condition is None or row.on(settings) else row.condition.hint
    endpoint = Endpoint(handler, make_key_check(row, keys), limit, off, counts, row.wire_format.needs_content_type)
    endpoint.counts_address = row.tells_keys
    return endpoint
