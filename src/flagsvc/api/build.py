"""Puts the contract together: handlers by name, and the table of resources that the route rows describe."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from flagsvc.api import docs
from flagsvc.api.answers import Answers
from flagsvc.api.cache import AnswerCache
from flagsvc.api.call import HEADERS, KEY, Endpoint, Handler, Resource, Tally
from flagsvc.api.client import Features, Metrics, Register
from flagsvc.api.cors import Cors
from flagsvc.api.enrich import Enrichment
from flagsvc.api.evaluation import Evaluator, Listing, Lookup
from flagsvc.api.health import Health
from flagsvc.api.keys import KeyRing
from flagsvc.api.log import Sparing
from flagsvc.api.ports import Holder, Usage
from flagsvc.api.prometheus import Elsewhere, Prometheus, Sources
from flagsvc.api.routes import ROUTES, Auth, Limit, Row
from flagsvc.api.settings import ServiceSettings
from flagsvc.clock import Clock
from flagsvc.extensions import ContextEnricher
from flagsvc.log import Logger

ENRICHER_SECONDS = 60.0
UNMATCHED = "unmatched"
OTHER = "other"


class Ports(NamedTuple):
    """What the contract is connected to. `elsewhere` gives the metrics of all processes where this is one of several."""

    holder: Holder
    usage: Usage
    clock: Clock
    log: Logger
    random: Random
    elsewhere: Elsewhere | None = None


class Parts(NamedTuple):
    """What a Service works with. `headers` has the kind of each header's name; `rest` counts what found no endpoint.

    `sources` is what the metrics are read from.
    """

    cors: Cors
    answers: Answers
    headers: dict[bytes, int]
    resources: dict[bytes, Resource]
    preflights: Tally
    rest: Tally
    sources: Sources


def build(settings: ServiceSettings, ports: Ports, enrichers: Sequence[ContextEnricher]) -> Parts:
    """Return the parts of a Service with these settings."""
    cors = Cors(settings)
    answers = Answers(cors, settings.client_keys_header_name)
    tallies: list[Tally] = [Tally("OPTIONS", "any"), Tally(OTHER, UNMATCHED)]
    sources = Sources(ports.holder, ports.usage, tallies, ports.clock, AnswerCache(settings.answer_cache_bytes))
    handlers = make_handlers(settings, ports, answers, sources, enrichers)
    return Parts(
        cors=cors,
        answers=answers,
        headers={**HEADERS, settings.client_keys_header_name.encode("latin-1"): KEY},
        resources=make_resources(settings, handlers, tallies),
        preflights=tallies[0],
        rest=tallies[1],
        sources=sources,
    )


def make_handlers(
    settings: ServiceSettings,
    ports: Ports,
    answers: Answers,
    sources: Sources,
    enrichers: Sequence[ContextEnricher],
) -> dict[str, Handler]:
    """Return who answers, by the names that the route rows use."""
    enrichment = Enrichment(enrichers, ports.log, Sparing(ports.clock, ENRICHER_SECONDS)) if enrichers else None
    faults = Sparing(ports.clock, None)
    holder, usage, clock, log, random, _ = ports
    evaluator = Evaluator(settings, holder, usage, answers, sources.cache, enrichment, clock, random, log, faults)
    handlers: dict[str, Handler] = {
        "enabled": Listing(evaluator, False),
        "all": Listing(evaluator, True),
        "lookup": Lookup(evaluator, False),
        "lookup-all": Lookup(evaluator, True),
        "metrics": Metrics(ports.usage, answers),
        "register": Register(answers),
        "features": Features(ports.holder, answers),
        "health": Health(answers),
        "prometheus": Prometheus(sources, answers, ports.elsewhere),
    }
    if settings.enable_oas:
        handlers |= {"openapi": docs.OpenApi(settings, answers), "page": docs.Page(answers), **docs.files(answers)}
    return handlers


def make_resources(
    settings: ServiceSettings, handlers: dict[str, Handler], tallies: list[Tally]
) -> dict[bytes, Resource]:
    """Return the resources by path, also in lower case; adds a tally for each endpoint. What is off and 404 then is left out."""
    rings = make_rings(settings)
    resources: dict[bytes, Resource] = {}
    for row in ROUTES:
        if not row.on(settings) and row.condition is not None and row.condition.status == 404:
            continue
        resource = resources.setdefault((settings.base_path + row.path).encode(), Resource(row.always))
        for method in ("GET", "HEAD") if row.method == "GET" else (row.method,):
            tallies.append(Tally(method, row.template))
            resource.endpoints[method.encode()] = make_endpoint(row, settings, handlers, rings, tallies[-1])
    for resource in resources.values():
        resource.allow = b", ".join([*resource.endpoints, b"OPTIONS"])
    return {path.lower(): resource for path, resource in resources.items()} | resources


def make_rings(settings: ServiceSettings) -> dict[Auth, KeyRing | None]:
    """Return the keys for each kind of authentication."""
    return {
        Auth.NONE: None,
        Auth.CLIENT: KeyRing(settings.client_keys),
        Auth.SERVER: KeyRing(settings.server_tokens),
        Auth.EITHER: KeyRing(settings.client_keys + settings.server_tokens),
    }


def make_endpoint(
    row: Row, settings: ServiceSettings, handlers: dict[str, Handler], rings: dict[Auth, KeyRing | None], tally: Tally
) -> Endpoint:
    """Return the endpoint of one method of a row."""
    limit = 0 if row.limit is Limit.NONE else int(getattr(settings, row.limit.value))
    off = "" if row.condition is None or row.on(settings) else row.condition.hint
    return Endpoint(handlers[row.handler], rings[row.auth], limit, off, tally)
