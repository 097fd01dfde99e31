"""The metrics of the flag server: one row for each metric, with the function that reads its values."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, TypeAlias

from sqlalchemy import func, select

from flagsvc.core.errors import DatabaseError
from flagsvc.core.version import VERSION
from flagsvc.http.metrics import Labels, MetricRow, limits_row, measure, requests_row
from flagsvc.http.reached_limits import COMMON_LIMITS
from flagsvc.server.api.call import ApiContext
from flagsvc.server.store.schema import features
from flagsvc.server.store.store import read_revision


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


Row: TypeAlias = MetricRow[Scrape]


def requests(scrape: Scrape) -> dict[Labels, float]:
    """Return how often each route answered with each status."""
    counts = scrape.server.counts.read()
    return {(route, method, str(status)): count for (route, method, status), count in counts.items()}


def limits(scrape: Scrape) -> dict[Labels, float]:
    """Return how often each limit of this program was reached."""
    return {(limit,): scrape.server.reached.counts[limit] for limit in COMMON_LIMITS}


def attempts(scrape: Scrape) -> dict[Labels, float]:
    """Return how attempts of webhooks came out."""
    return {(outcome,): count for outcome, count in scrape.server.attempts.read().items()}


OWN: tuple[Row, ...] = (
    Row("flagsvc_build_info", "gauge", "The running version.", lambda _: {(VERSION,): 1}, ("version",)),
    requests_row(requests),
    limits_row(limits),
    Row(
        "flagsvc_revision",
        "gauge",
        "Changes of flags that were committed.",
        lambda of: None if of.stored is None else {(): of.stored.revision},
    ),
    Row(
        "flagsvc_features",
        "gauge",
        "Feature flags that are not archived.",
        lambda of: None if of.stored is None else {(): of.stored.features},
    ),
    Row(
        "flagsvc_database_writable",
        "gauge",
        "1 while the database takes changes, else 0.",
        lambda of: {(): int(of.server.store.writability.obstacle is None)},
    ),
    Row(
        "flagsvc_webhook_attempts",
        "counter",
        "Requests to receivers of webhooks: delivered, retried (another one follows), or failed for good.",
        attempts,
        ("outcome",),
    ),
    Row(
        "flagsvc_usage_malformed",
        "counter",
        "Entries of reports left out: they cannot be read.",
        lambda of: {(): of.server.malformed.read()},
    ),
)
"""The metrics that only the flag server defines, and those that it shares with the proxy."""


def text(server: ApiContext) -> bytes:
    """Return every metric in Prometheus text format; without the database, the metrics that need it are left out."""
    from flagsvc.http.metric_families import exposition, this_collector, this_process

    return exposition(measure(OWN, Scrape(server)), [*this_process(), *this_collector()])
