"""Usage metrics: how often a feature was on and off, by application, environment and hour (dialects: POST /api/client/metrics).

Kept for two days (tidying.py calls `forget`). Counts of features that do not exist, or are of another project, are dropped, hours
to come are this hour, and a sum ends at `MOST`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Table, and_, case, delete, func, select, update

from flagsvc.server.store.moments import HOUR, hour_of, shown
from flagsvc.server.store.schema import feature_environments, features, usage, usage_variants
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks, insert_into, upsert

MOST = 2**53 - 1
"""The largest count: JavaScript's largest whole number that it can count up to."""
KEPT_H = 48
SHOWN_H = 24
MOST_APPLICATIONS = 100
"""Applications in the hours of one feature."""
KEY = ("feature", "app_name", "environment", "hour")


@dataclass(frozen=True, slots=True)
class Count:
    """What an application reports of one feature: `moment` is when (UTC), `variants` how often each variant was given."""

    feature: str
    app_name: str
    environment: str
    moment: datetime
    yes: int = 0
    no: int = 0
    variants: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Sum:
    """The counts of one row added up."""

    yes: int = 0
    no: int = 0
    variants: dict[str, int] = field(default_factory=dict)

    def add(self, count: Count) -> None:
        """Add the counts of a report."""
        self.yes += count.yes
        self.no += count.no
        for name, number in count.variants.items():
            self.variants[name] = self.variants.get(name, 0) + number


def everywhere(project: str) -> bool:
    """Return that a report may be about any project."""
    return True


def note(tx: Tx, counts: Iterable[Count], covers: Callable[[str], bool] = everywhere) -> None:
    """Add reported counts to the stored ones; those of a project that the report does not cover are dropped."""
    sums = add_up(tx, counts)
    known = existing(tx, {key[0] for key in sums}, covers)
    rows = sorted((key, found) for key, found in sums.items() if key[0] in known)
    columns = [dict(zip(KEY, key, strict=True)) for key, _ in rows]
    totals = [
        base | {"yes": min(found.yes, MOST), "no": min(found.no, MOST)}
        for base, (_, found) in zip(columns, rows, strict=True)
    ]
    upsert(tx, usage, totals, added(tx, usage, "yes", "no"))
    parts = [
        base | {"variant": variant, "count": min(number, MOST)}
        for base, (_, found) in zip(columns, rows, strict=True)
        for variant, number in sorted(found.variants.items())
    ]
    upsert(tx, usage_variants, parts, added(tx, usage_variants, "count"))
    see(tx, sorted({(key[2], key[0]) for key, _ in rows}))


def add_up(tx: Tx, counts: Iterable[Count]) -> dict[tuple[str, str, str, datetime], Sum]:
    """Return the counts that are worth keeping, by feature, application, environment and hour."""
    now = hour_of(tx.now)
    sums: dict[tuple[str, str, str, datetime], Sum] = defaultdict(Sum)
    for count in counts:
        hour = min(hour_of(count.moment), now)
        if (count.yes or count.no) and hour > now - timedelta(hours=KEPT_H):
            sums[count.feature, count.app_name, count.environment, hour].add(count)
    return sums


def existing(tx: Tx, names: Iterable[str], covers: Callable[[str], bool]) -> set[str]:
    """Return those of the names that are features of a project that is covered, archived ones too."""
    found: set[str] = set()
    for some in chunks(sorted(names)):
        rows = tx.db.execute(select(features.c.name, features.c.project).where(features.c.name.in_(some)))
        found.update(name for name, project in rows if covers(project))
    return found


def added(tx: Tx, table: Table, *names: str) -> dict[str, Any]:
    """Return the changes that add new counts to stored ones, up to the largest there is."""
    new = insert_into(tx, table).excluded
    return {name: case((table.c[name] > MOST - new[name], MOST), else_=table.c[name] + new[name]) for name in names}


def see(tx: Tx, pairs: Sequence[tuple[str, str]]) -> None:
    """Note that features were evaluated now; `pairs` of an environment and a feature.

    A row that a writer holds is left out: waiting for it could end in a deadlock, and the next report comes soon.
    """
    by_environment: dict[str, list[str]] = defaultdict(list)
    for environment, name in pairs:
        by_environment[environment].append(name)
    state = feature_environments
    for environment, names in by_environment.items():
        for some in chunks(names):
            here = and_(state.c.environment == environment, state.c.feature.in_(some))
            free = tx.db.execute(select(state.c.feature).where(here).with_for_update(skip_locked=True)).scalars().all()
            there = and_(state.c.environment == environment, state.c.feature.in_(free))
            tx.db.execute(update(state).where(there).values(last_seen_at=tx.now))


def forget(tx: Tx) -> None:
    """Delete the counts that are older than two days; those of variants fall with them."""
    last = hour_of(tx.now) - timedelta(hours=KEPT_H)
    tx.db.execute(delete(usage).where(usage.c.hour <= last))


def summary(tx: Tx, feature: str) -> dict[str, Any]:
    """Return a feature's counts of the last hour by environment, and the applications that reported it within a day."""
    recent = and_(usage.c.feature == feature, usage.c.hour >= tx.now - HOUR)
    counted = select(usage.c.environment, func.max(usage.c.hour), func.sum(usage.c.yes), func.sum(usage.c.no)).where(
        recent
    )
    rows = tx.db.execute(counted.group_by(usage.c.environment).order_by(usage.c.environment))
    return {
        "featureName": feature,
        "lastHourUsage": [
            {"environment": name, "timestamp": shown(hour), "yes": int(yes), "no": int(no)}
            for name, hour, yes, no in rows
        ],
        "seenApplications": seen(tx, "app_name", feature=feature),
    }


def seen(tx: Tx, column: str, **equal: str) -> list[str]:
    """Return what stood in a column within a day, in rows where other columns equal values; sorted."""
    found = usage.c[column]
    conditions = [usage.c[name] == value for name, value in equal.items()]
    recent = usage.c.hour >= tx.now - SHOWN_H * HOUR
    return list(tx.db.execute(select(found).where(recent, *conditions).distinct().order_by(found)).scalars())


def hourly(tx: Tx, feature: str, hours: float = SHOWN_H) -> list[dict[str, Any]]:
    """Return a feature's counts of the last hours, oldest first: a row for each environment, application and hour."""
    found = stored(tx, feature, hours)
    environments = dict.fromkeys(environment for _, environment, _ in found)
    applications = list(dict.fromkeys(application for application, _, _ in found))[:MOST_APPLICATIONS]
    return [
        found.get((application, environment, hour)) or nothing(feature, application, environment, hour)
        for hour in last_hours(tx.now, hours)
        for environment in environments
        for application in applications
    ]


def last_hours(now: datetime, hours: float) -> Iterator[datetime]:
    """Give the beginnings of the last hours, this one last."""
    count = -int(-hours // 1)
    for back in range(count - 1, -1, -1):
        yield hour_of(now) - back * HOUR


def nothing(feature: str, application: str, environment: str, hour: datetime) -> dict[str, Any]:
    """Return the row of an hour without a report."""
    row = {"timestamp": shown(hour), "no": 0, "yes": 0}
    return row | {"appName": application, "environment": environment, "featureName": feature}


def stored(tx: Tx, feature: str, hours: float) -> dict[tuple[str, str, datetime], dict[str, Any]]:
    """Return the stored counts of a feature's last hours, by application, environment and hour."""
    since = tx.now - timedelta(hours=hours)
    order = (usage.c.environment, usage.c.app_name, usage.c.hour)
    rows = tx.db.execute(select(usage).where(usage.c.feature == feature, usage.c.hour >= since).order_by(*order))
    found: dict[tuple[str, str, datetime], dict[str, Any]] = {
        (row.app_name, row.environment, row.hour): {
            "featureName": feature,
            "appName": row.app_name,
            "environment": row.environment,
            "timestamp": shown(row.hour),
            "yes": row.yes,
            "no": row.no,
            "variants": {},
        }
        for row in rows
    }
    parts = usage_variants
    given = select(parts).where(parts.c.feature == feature, parts.c.hour >= since).order_by(parts.c.variant)
    for row in tx.db.execute(given):
        found[row.app_name, row.environment, row.hour]["variants"][row.variant] = row.count
    return found
