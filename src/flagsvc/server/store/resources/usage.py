"""Usage metrics: how often a feature was on and off, by application, environment and hour (dialects: POST /api/client/metrics).

After two days the counts of all applications in six hours become one row, and after a week that is deleted (`Cleanup` calls
`tidy_up`). Counts of unknown features and of other projects are dropped. Future hours count as the current hour, and sums are
capped at `MAX_COUNT`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from sqlalchemy import Table, and_, case, delete, func, select, update

from flagsvc.http.reports import MAX_COUNT
from flagsvc.server.store.schema import feature_environments, features, usage, usage_variants
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import HOUR, format_time, start_of_hour
from flagsvc.server.store.upsert import chunks, insert_into, rows_in, upsert

KEEP_HOURS = 48
"""Hours that are kept by application."""
KEEP_DAYS = 7
SPAN = 6
"""Hours that are kept together after KEEP_HOURS. The first of them begins at 0, 6, 12 or 18 o'clock (UTC)."""
ALL_APPLICATIONS = ""
"""The name in a row that sums up the applications."""
SHOW_HOURS = 24
MAX_APPLICATIONS = 100
"""The most applications in the hours of one feature."""
KEY = ("feature", "app_name", "environment", "hour")


@dataclass(frozen=True, slots=True)
class UsageCount:
    """What an application reports about one feature: `moment` is its time (UTC), `variants` counts each variant."""

    feature: str
    app_name: str
    environment: str
    moment: datetime
    yes: int = 0
    no: int = 0
    variants: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class UsageSum:
    """The sums of the counts for one row."""

    yes: int = 0
    no: int = 0
    variants: dict[str, int] = field(default_factory=dict)

    def add(self, count: UsageCount) -> None:
        self.yes += count.yes
        self.no += count.no
        for name, number in count.variants.items():
            self.variants[name] = self.variants.get(name, 0) + number


Sums: TypeAlias = Mapping[tuple[str, str, str, datetime], UsageSum]
"""Sums by feature, application, environment and hour."""


def covers_all(project: str) -> bool:
    """Return True: the report covers every project."""
    return True


def add_counts(tx: Tx, counts: Iterable[UsageCount], covers: Callable[[str], bool] = covers_all) -> None:
    """Add reported counts to the stored ones. Counts of projects that the report does not cover are dropped."""
    sums = add_up(tx, counts)
    known = find_features(tx, {key[0] for key in sums}, covers)
    kept = {key: found for key, found in sums.items() if key[0] in known}
    store_sums(tx, kept)
    save_last_seen(tx, sorted({(key[2], key[0]) for key in kept}))


def store_sums(tx: Tx, sums: Sums) -> None:
    """Add sums to the stored ones."""
    rows = sorted(sums.items(), key=lambda pair: pair[0])
    columns = [dict(zip(KEY, key, strict=True)) for key, _ in rows]
    totals = [
        base | {"yes": min(found.yes, MAX_COUNT), "no": min(found.no, MAX_COUNT)}
        for base, (_, found) in zip(columns, rows, strict=True)
    ]
    upsert(tx, usage, totals, increments(tx, usage, "yes", "no"))
    parts = [
        base | {"variant": variant, "count": min(number, MAX_COUNT)}
        for base, (_, found) in zip(columns, rows, strict=True)
        for variant, number in sorted(found.variants.items())
    ]
    upsert(tx, usage_variants, parts, increments(tx, usage_variants, "count"))


def add_up(tx: Tx, counts: Iterable[UsageCount]) -> Sums:
    """Return the sums of counts, without old and empty ones."""
    now = start_of_hour(tx.now)
    sums: dict[tuple[str, str, str, datetime], UsageSum] = defaultdict(UsageSum)
    for count in counts:
        hour = min(start_of_hour(count.moment), now)
        if (count.yes or count.no) and hour > now - timedelta(hours=KEEP_HOURS):
            sums[count.feature, count.app_name, count.environment, hour].add(count)
    return sums


def find_features(tx: Tx, names: Iterable[str], covers: Callable[[str], bool]) -> set[str]:
    """Return the names of features, archived or not, whose projects are covered."""
    rows = rows_in(tx, select(features.c.name, features.c.project), features.c.name, names)
    return {name for name, project in rows if covers(project)}


def increments(tx: Tx, table: Table, *names: str) -> dict[str, Any]:
    """Return the column changes that add new counts to stored ones, capped at `MAX_COUNT`."""
    new = insert_into(tx, table).excluded
    return {name: case((table.c[name] > MAX_COUNT - new[name], MAX_COUNT), else_=table.c[name] + new[name]) for name in names}


def save_last_seen(tx: Tx, pairs: Sequence[tuple[str, str]]) -> None:
    """Store now as the time when features were last evaluated; `pairs` of an environment and a feature.

    Rows locked by a writer are skipped: waiting could cause a deadlock, and the next report comes soon.
    """
    by_environment: dict[str, list[str]] = defaultdict(list)
    for environment, name in pairs:
        by_environment[environment].append(name)
    state = feature_environments
    for environment, names in by_environment.items():
        for chunk in chunks(names):
            here = and_(state.c.environment == environment, state.c.feature.in_(chunk))
            free = tx.db.execute(select(state.c.feature).where(here).with_for_update(skip_locked=True)).scalars().all()
            there = and_(state.c.environment == environment, state.c.feature.in_(free))
            tx.db.execute(update(state).where(there).values(last_seen_at=tx.now))


def tidy_up(tx: Tx) -> bool:
    """Delete counts older than a week, and sum up the oldest hour of those older than two days; return whether there was none."""
    now = start_of_hour(tx.now)
    tx.db.execute(delete(usage).where(usage.c.hour <= now - timedelta(days=KEEP_DAYS)))
    old = usage.c.hour <= now - KEEP_HOURS * HOUR, usage.c.app_name != ALL_APPLICATIONS
    hour = tx.db.execute(select(func.min(usage.c.hour)).where(*old)).scalar()
    if hour is not None:
        sum_up(tx, hour)
    return hour is None


def sum_up(tx: Tx, hour: datetime) -> None:
    """Put the counts of all applications in an hour into the rows that sum up its SPAN.

    A row that is deleted is given to one writer alone, so two servers do not add it twice.
    """
    sums: dict[tuple[str, str, str, datetime], UsageSum] = defaultdict(UsageSum)
    span = start_of_span(hour)
    for table in (usage_variants, usage):
        old = delete(table).where(table.c.hour == hour, table.c.app_name != ALL_APPLICATIONS).returning(table)
        for row in tx.db.execute(old).all():
            found = sums[row.feature, ALL_APPLICATIONS, row.environment, span]
            if table is usage:
                found.yes, found.no = found.yes + row.yes, found.no + row.no
            else:
                found.variants[row.variant] = found.variants.get(row.variant, 0) + row._mapping["count"]
    store_sums(tx, sums)


def start_of_span(moment: datetime) -> datetime:
    """Return the beginning of the SPAN hours of a time (UTC)."""
    hour = start_of_hour(moment)
    return hour - hour.hour % SPAN * HOUR


def summarize(tx: Tx, feature: str) -> dict[str, Any]:
    """Return a feature's counts in the last hour by environment, and the applications that reported it within a day."""
    recent = and_(usage.c.feature == feature, usage.c.hour >= tx.now - HOUR)
    counted = select(usage.c.environment, func.max(usage.c.hour), func.sum(usage.c.yes), func.sum(usage.c.no)).where(recent)
    rows = tx.db.execute(counted.group_by(usage.c.environment).order_by(usage.c.environment))
    return {
        "featureName": feature,
        "lastHourUsage": [
            {"environment": name, "timestamp": format_time(hour), "yes": int(yes), "no": int(no)} for name, hour, yes, no in rows
        ],
        "seenApplications": list_seen(tx, "app_name", feature=feature),
    }


def sum_by_hour(tx: Tx, names: Iterable[str]) -> dict[str, list[int]]:
    """Return how often features were asked for in each of the last SHOW_HOURS hours, the current one last.

    A feature that no application has asked for has no entry.
    """
    places = {hour: at for at, hour in enumerate(last_hours(tx.now, SHOW_HOURS))}
    found: dict[str, list[int]] = defaultdict(lambda: [0] * SHOW_HOURS)
    query = select(usage.c.feature, usage.c.hour, func.sum(usage.c.yes + usage.c.no))
    query = query.where(usage.c.hour >= min(places)).group_by(usage.c.feature, usage.c.hour)
    for name, hour, count in rows_in(tx, query, usage.c.feature, names):
        if hour in places:
            found[name][places[hour]] = int(count)
    return found


def hours_of_day(now: datetime) -> list[datetime]:
    """Return the beginnings of the last 24 hours, the current hour last."""
    return list(last_hours(now, SHOW_HOURS))


def spans_of_week(now: datetime) -> list[datetime]:
    """Return the beginnings of every SPAN hours of the last seven days (UTC), today with its hours to come last."""
    today = start_of_hour(now).replace(hour=0)
    first = today - timedelta(days=KEEP_DAYS - 1)
    return [first + place * SPAN * HOUR for place in range(KEEP_DAYS * 24 // SPAN)]


def sum_between(tx: Tx, feature: str, environment: str, beginnings: Sequence[datetime]) -> list[UsageSum]:
    """Return the counts of a feature in an environment from each beginning to the next one, with those of its variants."""
    found = [UsageSum() for _ in beginnings]
    for table, columns in ((usage, ("yes", "no")), (usage_variants, ("variant", "count"))):
        here = table.c.feature == feature, table.c.environment == environment, table.c.hour >= beginnings[0]
        for hour, *values in tx.db.execute(select(table.c.hour, *table.c[columns]).where(*here)):
            place = found[bisect_right(beginnings, hour) - 1]
            if table is usage:
                place.yes, place.no = place.yes + values[0], place.no + values[1]
            else:
                place.variants[values[0]] = place.variants.get(values[0], 0) + values[1]
    return found


def sum_by_application(tx: Tx, feature: str) -> list[dict[str, Any]]:
    """Return which applications asked for a feature in the last SHOW_HOURS hours, and in which environments.

    Each row has how often the feature was on and off, how often it was asked for in the current hour, and the last hour with a
    report. Those who asked most come first; there are at most MAX_APPLICATIONS rows.
    """
    now = start_of_hour(tx.now)
    yes, no, last = func.sum(usage.c.yes), func.sum(usage.c.no), func.max(usage.c.hour)
    current = func.sum(case((usage.c.hour >= now, usage.c.yes + usage.c.no), else_=0))
    recent = usage.c.feature == feature, usage.c.hour >= now - (SHOW_HOURS - 1) * HOUR
    query = select(usage.c.app_name, usage.c.environment, yes, no, current, last).where(*recent)
    query = query.group_by(usage.c.app_name, usage.c.environment)
    rows = tx.db.execute(query.order_by((yes + no).desc(), *query.selected_columns[:2]).limit(MAX_APPLICATIONS))
    return [
        {
            "appName": name,
            "environment": place,
            "yes": int(yes),
            "no": int(no),
            "thisHour": int(now_asked),
            "lastHour": format_time(hour),
        }
        for name, place, yes, no, now_asked, hour in rows
    ]


def list_seen(tx: Tx, column: str, **equal: str) -> list[str]:
    """Return the sorted values of a column within a day, in rows where other columns equal the given values."""
    found = usage.c[column]
    conditions = [usage.c[name] == value for name, value in equal.items()]
    recent = usage.c.hour >= tx.now - SHOW_HOURS * HOUR
    return list(tx.db.execute(select(found).where(recent, *conditions).distinct().order_by(found)).scalars())


def list_hourly(tx: Tx, feature: str, hours: float = SHOW_HOURS) -> list[dict[str, Any]]:
    """Return a feature's counts in the last hours, oldest first: a row for each environment, application and hour."""
    found = read_hours(tx, feature, hours)
    environments = dict.fromkeys(environment for _, environment, _ in found)
    applications = list(dict.fromkeys(application for application, _, _ in found))[:MAX_APPLICATIONS]
    return [
        found.get((application, environment, hour))
        or {
            "timestamp": format_time(hour),
            "no": 0,
            "yes": 0,
            "appName": application,
            "environment": environment,
            "featureName": feature,
        }
        for hour in last_hours(tx.now, hours)
        for environment in environments
        for application in applications
    ]


def last_hours(now: datetime, hours: float) -> Iterator[datetime]:
    """Yield the beginnings of the last hours, the current hour last."""
    count = -int(-hours // 1)
    for back in range(count - 1, -1, -1):
        yield start_of_hour(now) - back * HOUR


def read_hours(tx: Tx, feature: str, hours: float) -> dict[tuple[str, str, datetime], dict[str, Any]]:
    """Return the stored counts of a feature in the last hours, by application, environment and hour."""
    since = tx.now - timedelta(hours=hours)
    order = (usage.c.environment, usage.c.app_name, usage.c.hour)
    rows = tx.db.execute(select(usage).where(usage.c.feature == feature, usage.c.hour > since).order_by(*order))
    found: dict[tuple[str, str, datetime], dict[str, Any]] = {
        (row.app_name, row.environment, row.hour): {
            "featureName": feature,
            "appName": row.app_name,
            "environment": row.environment,
            "timestamp": format_time(row.hour),
            "yes": row.yes,
            "no": row.no,
            "variants": {},
        }
        for row in rows
    }
    parts = usage_variants
    given = select(parts).where(parts.c.feature == feature, parts.c.hour > since).order_by(parts.c.variant)
    for row in tx.db.execute(given):
        found[row.app_name, row.environment, row.hour]["variants"][row.variant] = row.count
    return found
