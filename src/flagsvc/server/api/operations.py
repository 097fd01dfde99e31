"""The endpoints for operators: the first page, health, readiness and metrics, a row for each metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

from sqlalchemy import func, select

from flagsvc.core.errors import DatabaseError, UnwritableError
from flagsvc.core.log import describe_error
from flagsvc.core.version import VERSION
from flagsvc.http.answers import Answer
from flagsvc.http.counts import Traffic
from flagsvc.http.first_page import Place, as_json, as_text, prefers_json
from flagsvc.http.messages import JSON, TEXT
from flagsvc.http.metrics import (
    CONTENT_TYPE,
    COUNTER,
    GAUGE,
    HISTOGRAM,
    OPEN_METRICS,
    VARY,
    Labels,
    Measured,
    MetricRow,
    by_bucket,
    by_name,
    count_durations,
    count_requests,
    durations_row,
    limits_row,
    measure,
    prefers_open_metrics,
    requests_row,
    streams_rows,
    traffic_rows,
)
from flagsvc.http.reached_limits import COMMON_LIMITS
from flagsvc.http.shapes import Array, Object, String
from flagsvc.http.streams import Streams
from flagsvc.server.api.call import ENTRIES, ApiCall, ApiContext
from flagsvc.server.api.errors import RETRY_S, unknown_path
from flagsvc.server.api.pollers import count_arrived, newest_digests
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.schema import features
from flagsvc.server.store.store import read_revision

METRICS_PATH = "/internal-backstage/prometheus"
GOOD = Answer({"health": "GOOD"})
BAD = Answer({"health": "BAD"}, 503, ((b"retry-after", str(RETRY_S).encode()),))
ALIVE, READY = Answer(b"ok"), Answer(b"ready")
DRAINING = "draining"
"""The process is about to end."""
DATABASE = "database"
"""The database does not answer."""
NAME = "flagsvc server"
ABOUT = "holds feature flags, and gives them to proxies and SDKs"
PLACES = (
    Place("GET", "/ui", "The pages: see flags and switch them", "token of a user"),
    Place("GET", "/docs/openapi", "Every endpoint, to read and to try"),
    Place("GET", "/api/client/features", "The flags, for proxies and server-side SDKs", "backend token"),
    Place("GET", "/api/frontend", "The flags that are on for a context, for SDKs in browsers and apps", "frontend token"),
    Place("GET", "/api/admin/projects", "The admin API begins here", "token of a user, or admin token"),
    Place("GET", "/health", "Tell that the server runs"),
    Place("GET", "/ready", "Tell whether the server and its database answer"),
    Place("GET", METRICS_PATH, "Metrics of the server in Prometheus text format"),
)
"""The endpoints on the first page."""
LASTING: tuple[tuple[bytes, bytes], ...] = ((b"cache-control", b"no-cache"),)
FIRST_PAGE = (*LASTING, (b"vary", b"Accept"))


def welcome(call: ApiCall) -> Answer:
    """Return the name and the endpoints of the server, as JSON or as text by `Accept`; a browser goes to the pages."""
    root = call.root
    if b"text/html" in (call.head.accept or b""):
        return Answer(None, 302, (*FIRST_PAGE, (b"location", f"{root}/ui/".encode())))
    here = [each for each in PLACES if not (call.server.metrics_apart and each.path == METRICS_PATH)]
    places = [each._replace(path=root + each.path) for each in here]
    if prefers_json(call.head.accept):
        return Answer(as_json(NAME, ABOUT, places), headers=(*FIRST_PAGE, (b"content-type", JSON)))
    return Answer(as_text(NAME, ABOUT, places).encode(), headers=(*FIRST_PAGE, (b"content-type", TEXT)))


def health(call: ApiCall) -> Answer:
    """Return that the server runs. It does not check the database, because the server can serve flags from memory."""
    return GOOD


def find_objection(server: ApiContext) -> str:
    """Return the reason why callers should not be sent here, as one word; empty if the server is ready."""
    if server.process.draining:
        return DRAINING
    try:
        server.store.revision()
    except UnwritableError:  # the file was moved, and this read would have opened another file
        return ""
    except DatabaseError as error:
        server.log.warn("not ready", error=describe_error(error))
        return DATABASE
    return ""


def find_word(server: ApiContext) -> str:
    """Return the word for what keeps changes out of the database; empty if it takes them."""
    obstacle = server.store.writability.obstacle
    return "" if obstacle is None else obstacle.word


def ready(call: ApiCall) -> Answer:
    """Return readiness: 200 if the database answers and the server is not draining, else 503.

    A server whose database takes no changes is ready, because it serves flags; the body says so (decision 0023).
    """
    if find_objection(call.server):
        return BAD
    word = find_word(call.server)
    return replace(GOOD, body=GOOD.body | {"writable": False, "reason": word}) if word else GOOD


def livez(call: ApiCall) -> Answer:
    """Return that the server runs, as a word."""
    return ALIVE


def readyz(call: ApiCall) -> Answer:
    """Return readiness as a word; if the server is not ready, the reason."""
    objection = find_objection(call.server)
    word = find_word(call.server)
    ready = replace(READY, body=f"ready, read-only: {word}".encode()) if word else READY
    return replace(BAD, body=objection.encode()) if objection else ready


def scrape(call: ApiCall) -> Answer:
    """Return every metric: in Prometheus text format, or as OpenMetrics if `Accept` asks for it."""
    is_open = prefers_open_metrics(call.head.accept)
    own = ((b"content-type", OPEN_METRICS.encode()),) if is_open else ()
    return Answer(text(call.server, is_open=is_open), headers=((b"vary", VARY), *own))


def scrape_here(call: ApiCall) -> Answer:
    """Return every metric to callers. Raises ApiError (404) where operators have an address of their own."""
    if call.server.metrics_apart:
        raise unknown_path(call.request.path.decode("latin-1"))
    return scrape(call)


FIRST = Object(
    {
        "name": String(),
        "description": String(),
        "endpoints": Array(Object({name: String() for name in Place._fields}, required=Place._fields)),
    },
    required=("name", "description", "endpoints"),
)
route = partial(Route, tag="Operational", auth=Auth.NONE)
WELCOME = route(
    path="/",
    handler=welcome,
    operation="getFirstPage",
    summary="Say what this is and where to go, as text or JSON.",
    media=TEXT.decode(),
    as_json=FIRST,
    in_memory=True,
)
PROBES = (
    route(
        path="/health",
        handler=health,
        operation="getHealth",
        summary="Tell that the server runs.",
        in_memory=True,
    ),
    route(
        path="/ready",
        handler=ready,
        operation="getReady",
        summary="Tell whether the server and its database answer.",
    ),
    route(
        path="/livez",
        handler=livez,
        operation="getLivez",
        summary="Tell that the server runs, wherever the base path is.",
        media=TEXT.decode(),
        in_memory=True,
        rooted=True,
        listed=False,
    ),
    route(
        path="/readyz",
        handler=readyz,
        operation="getReadyz",
        summary="Tell whether callers should be sent here, wherever the base path is.",
        media=TEXT.decode(),
        rooted=True,
        listed=False,
    ),
)
METRICS = (
    route(
        path=METRICS_PATH,
        handler=scrape_here,
        operation="getMetrics",
        summary="Metrics of the server in Prometheus text format.",
        media=CONTENT_TYPE,
    ),
    route(
        path="/metrics",
        handler=scrape_here,
        operation="getMetricsOfRoot",
        summary="Metrics, where most scrapers look for them.",
        media=CONTENT_TYPE,
        rooted=True,
        listed=False,
    ),
)
ROUTES = (WELCOME, *PROBES, *METRICS)
ADMIN = (*PROBES, *(replace(row, handler=scrape) for row in METRICS))
"""The routes of adminAddress."""


class Stored(NamedTuple):
    """The values from the database: its revision, and the number of features that are not archived."""

    revision: int
    features: int


class Scrape:
    """The sources of one scrape. A scrape reads the database once."""

    def __init__(self, server: ApiContext) -> None:
        self.server = server

    @cached_property
    def stored(self) -> Stored | None:
        """The values from the database; None if the database cannot be read."""
        active = select(func.count()).select_from(features).where(features.c.archived_at.is_(None))
        try:
            with self.server.store.reading() as tx:
                return Stored(read_revision(tx.db), tx.db.execute(active).scalar_one())
        except DatabaseError:
            return None

    @cached_property
    def instances(self) -> dict[Labels, float] | None:
        """How many instances poll, and have the newest flags or older ones; None if the database cannot be read."""
        if self.stored is None:
            return None
        now = self.server.clock.now()
        there = [each for each in self.server.pollers.list_all() if not each.is_gone(now)]
        try:
            newest, every = count_arrived(there, newest_digests(self.server.documents, there), now)
        except DatabaseError:
            return None
        return {("newest",): newest, ("older",): every - newest}


Row: TypeAlias = MetricRow[Scrape]


def requests(scrape: Scrape) -> dict[Labels, float]:
    """Return how often each route answered with each status."""
    with scrape.server.counts.lock:
        return count_requests(scrape.server.counts.every)


def durations(scrape: Scrape) -> dict[Labels, float]:
    """Return how long each route took to answer."""
    with scrape.server.counts.lock:
        return count_durations(scrape.server.counts.every)


def limits(scrape: Scrape) -> dict[Labels, float]:
    """Return how often each limit of this program was reached."""
    return {(limit,): scrape.server.reached.counts[limit] for limit in COMMON_LIMITS}


def traffic(scrape: Scrape) -> Traffic:
    return scrape.server.traffic


def streams(scrape: Scrape) -> Streams:
    return scrape.server.caller_streams


def attempts(scrape: Scrape) -> dict[Labels, float]:
    """Return how attempts of webhooks came out."""
    return {(outcome,): count for outcome, count in scrape.server.attempts.read().items()}


def turns(scrape: Scrape) -> dict[Labels, float]:
    """Return how long changes waited for those before them."""
    with scrape.server.store.figures.lock:
        return by_bucket({(): scrape.server.store.figures.turns})


def connections(scrape: Scrape) -> dict[Labels, float]:
    """Return the connections of the pool by their state."""
    pool = scrape.server.store.pool
    return {("in-use",): pool.checkedout(), ("idle",): pool.checkedin()}


def one(kind: str, name: str, help: str, read: Callable[[Scrape], float]) -> Row:
    """Return a row with a single number, which has no labels."""
    return Row(name, kind, help, lambda of: {(): read(of)})


OWN: tuple[Row, ...] = (
    Row("flagsvc_build_info", GAUGE, "The running version.", lambda _: {(VERSION,): 1}, ("version",)),
    requests_row(requests),
    durations_row(durations),
    limits_row(limits),
    *traffic_rows(traffic),
    *streams_rows(streams),
    Row(
        "flagsvc_revision",
        GAUGE,
        "Changes of flags that were committed.",
        lambda of: None if of.stored is None else {(): of.stored.revision},
    ),
    Row(
        "flagsvc_features",
        GAUGE,
        "Feature flags that are not archived.",
        lambda of: None if of.stored is None else {(): of.stored.features},
    ),
    one(
        GAUGE,
        "flagsvc_database_writable",
        "1 while the database takes changes, else 0.",
        lambda of: of.server.store.writability.obstacle is None,
    ),
    one(
        GAUGE,
        "flagsvc_ready",
        "1 while callers should be sent here, as /readyz says, else 0.",
        lambda of: of.stored is not None and not of.server.process.draining,
    ),
    one(GAUGE, "flagsvc_database_reachable", "1 while the database answers, else 0.", lambda of: of.stored is not None),
    Row(
        "flagsvc_database_commits",
        COUNTER,
        "Transactions of this server that were committed: a change of flags, or a record of usage and the like.",
        lambda of: by_name(of.server.store.figures.commits),
        ("kind",),
    ),
    Row(
        "flagsvc_database_turn_seconds",
        HISTOGRAM,
        "Time that each change of flags waited for the changes before it.",
        turns,
    ),
    one(COUNTER, "flagsvc_database_errors", "Transactions that the database failed.", lambda of: of.server.store.figures.errors),
    Row(
        "flagsvc_database_connections",
        GAUGE,
        "Connections to the database: in-use or idle.",
        connections,
        ("state",),
    ),
    one(
        GAUGE,
        "flagsvc_database_connections_max",
        "The most connections to the database.",
        lambda of: of.server.store.pool.size(),
    ),
    one(
        GAUGE,
        "flagsvc_database_connections_waiting",
        "Threads that wait for a connection to the database.",
        lambda of: of.server.store.figures.waiting,
    ),
    Row(
        "flagsvc_polling_instances",
        GAUGE,
        "Proxies and server-side SDKs that poll this server: those with the newest flags, and those with older flags.",
        lambda of: of.instances,
        ("flags",),
    ),
    Row(
        "flagsvc_webhook_attempts",
        COUNTER,
        "Requests to receivers of webhooks: delivered, retried (another one follows), or failed for good.",
        attempts,
        ("outcome",),
    ),
    one(
        COUNTER,
        "flagsvc_usage_malformed",
        "Entries of reports left out: they cannot be read.",
        lambda of: of.server.malformed.read()[ENTRIES],
    ),
)
"""The metrics that only the flag server defines, and those that it shares with the proxy."""


def read_metrics(server: ApiContext) -> list[Measured]:
    """Return every metric; without the database, without the metrics that need it."""
    return measure(OWN, Scrape(server))


def text(server: ApiContext, *, is_open: bool = False) -> bytes:
    """Return every metric as text, as OpenMetrics if `is_open`; without the database, without the metrics that need it."""
    from flagsvc.http.metric_families import exposition, this_collector, this_process

    return exposition(read_metrics(server), [*this_process(), *this_collector()], is_open=is_open)
