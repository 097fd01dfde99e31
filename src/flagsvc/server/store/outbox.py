"""The queue of what webhooks have to send: filled in the transaction of each change, so that no event is lost (decision 0033).

Several servers share it. `claim` gives a delivery to one of them for some time. What that server does not end comes up again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, delete, func, insert, or_, select, update

from flagsvc.server.store.actors import ADMIN_TOKEN_ID
from flagsvc.server.store.schema import addons, deliveries, users

WAITING, DELIVERED, FAILED = "waiting", "success", "failed"
"""The states of a delivery; the last two are the real server's words."""
MOST_WAITING = 10_000
"""The most deliveries of one webhook that wait. Further events are counted, and not sent."""
KEPT = 100
"""How many ended deliveries of each webhook and state are kept."""
LEASE_S = 60.0
"""Seconds that a server has for an attempt; more than one can take."""
ALL = "*"
own = deliveries.c


class Receiver(NamedTuple):
    """A webhook, the types of its events, and their projects and environments; an empty set stands for all.

    `is_administrators` tells that it also gets events that have no project.
    """

    id: int
    types: frozenset[str]
    projects: frozenset[str]
    environments: frozenset[str]
    is_administrators: bool


class Claimed(NamedTuple):
    """A delivery that a server attempts now. `attempts` counts this one, too."""

    id: int
    uid: str
    addon_id: int
    event_id: int | None
    sample: dict[str, Any] | None
    attempts: int


class Outcome(NamedTuple):
    """How an attempt came out: the status of the answer if there is one, and what went wrong.

    `again` is when the next attempt is due; None if there is none.
    """

    status: int | None = None
    error: str | None = None
    again: datetime | None = None


def is_administrators() -> ColumnElement[bool]:
    """Return the condition that the user who changed a webhook last is an administrator now, or was an admin token."""
    administrator = select(users.c.id).where(users.c.id == addons.c.changed_by_id, users.c.root_role == "admin")
    by_token = addons.c.changed_by_id.is_not_distinct_from(ADMIN_TOKEN_ID)
    return or_(by_token, administrator.correlate(addons).exists())


def find_receivers(db: Connection) -> list[Receiver]:
    """Return the enabled webhooks."""
    query = select(addons.c.id, addons.c.events, addons.c.projects, addons.c.environments, is_administrators())
    return [
        Receiver(number, frozenset(types), places_of(projects), places_of(environments), administrators)
        for number, types, projects, environments, administrators in db.execute(query.where(addons.c.enabled))
    ]


def places_of(named: Sequence[str]) -> frozenset[str]:
    """Return the projects or environments that a webhook names; empty if it gets the events of all, as on the real server."""
    return frozenset(() if named and named[0] == ALL else named)


def may_get(event: Mapping[str, Any], *, is_administrators: bool) -> bool:
    """Return whether a webhook may get an event. As in the history, events without a project are for administrators."""
    return is_administrators or event["project"] is not None


def wants(receiver: Receiver, event: Mapping[str, Any]) -> bool:
    """Return whether a webhook gets an event: it may, and names type, project and environment, by the real server's rules."""
    allowed = may_get(event, is_administrators=receiver.is_administrators)
    return (
        allowed
        and event["type"] in receiver.types
        and all(
            event[place] is None or not named or event[place] in named
            for place, named in (("project", receiver.projects), ("environment", receiver.environments))
        )
    )


def queue_events(db: Connection, receivers: Iterable[Receiver], stored: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
    """Queue events, with their ids, for the webhooks that want them, as far as their queues have room."""
    for receiver in receivers:
        wanted = [(number, event["created_at"]) for number, event in stored if wants(receiver, event)]
        if not wanted:
            continue
        room = max(0, MOST_WAITING - count_waiting(db, receiver.id))
        rows = [new_delivery(receiver.id, moment) | {"event_id": number} for number, moment in wanted[:room]]
        if rows:
            db.execute(insert(deliveries), rows)
        if len(wanted) > room:
            more = addons.c.dropped + len(wanted) - room
            db.execute(update(addons).where(addons.c.id == receiver.id).values(dropped=more))


def new_delivery(addon: int, moment: datetime) -> dict[str, Any]:
    """Return the values of a delivery that is due at once."""
    return {"uid": str(uuid4()), "addon_id": addon, "state": WAITING, "created_at": moment, "due_at": moment}


def count_waiting(db: Connection, addon: int) -> int:
    """Return how many deliveries of a webhook wait."""
    query = select(func.count()).select_from(deliveries).where(own.addon_id == addon, own.state == WAITING)
    return int(db.execute(query).scalar_one())


def is_waiting(event: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that a webhook still has to send an event."""
    return select(own.id).where(own.event_id == event, own.state == WAITING).exists()


def find_due(db: Connection, now: datetime) -> list[int]:
    """Return the webhooks that have something to send now, the longest due first. A disabled webhook sends only tests."""
    due = select(func.min(own.due_at)).where(own.addon_id == addons.c.id, own.state == WAITING, own.due_at <= now)
    oldest = due.where(or_(addons.c.enabled, own.sample.is_not(None))).correlate(addons).scalar_subquery()
    return list(db.execute(select(addons.c.id).where(oldest.is_not(None)).order_by(oldest, addons.c.id)).scalars())


def claim(db: Connection, addon: int, now: datetime, most: int) -> list[Claimed]:
    """Take up to `most` due deliveries of a webhook, the oldest first, for LEASE_S. No other server gets them meanwhile."""
    due = select(deliveries).join(addons).where(own.addon_id == addon, own.state == WAITING, own.due_at <= now)
    due = due.where(or_(addons.c.enabled, own.sample.is_not(None))).order_by(own.id).limit(most)
    rows = db.execute(due.with_for_update(skip_locked=True, of=deliveries)).all()
    taken = {"due_at": now + timedelta(seconds=LEASE_S), "attempts": own.attempts + 1}
    if rows:
        db.execute(update(deliveries).where(own.id.in_([row.id for row in rows])).values(taken))
    return [Claimed(row.id, row.uid, row.addon_id, row.event_id, row.sample, row.attempts + 1) for row in rows]


def end_attempt(db: Connection, claimed: Claimed, outcome: Outcome, now: datetime) -> None:
    """Store how an attempt came out: delivered, due again, or failed for good."""
    values: dict[str, Any] = {"status": outcome.status, "error": outcome.error}
    if outcome.again is not None:
        values |= {"due_at": outcome.again}
    else:
        values |= {"state": DELIVERED if outcome.error is None else FAILED, "ended_at": now}
    db.execute(update(deliveries).where(own.id == claimed.id, own.state == WAITING).values(values))


def release(db: Connection, claimed: Sequence[Claimed], now: datetime) -> None:
    """Give back deliveries whose attempt was stopped: they are due at once, and the attempt does not count."""
    held = [each.id for each in claimed]
    values = {"due_at": now, "attempts": own.attempts - 1}
    db.execute(update(deliveries).where(own.id.in_(held), own.state == WAITING).values(values))


def delete_old_deliveries(db: Connection) -> None:
    """Delete the ended deliveries of each webhook but the last KEPT of each state."""
    rank = func.row_number().over(partition_by=(own.addon_id, own.state), order_by=own.id.desc()).label("rank")
    ended = select(own.id, rank).where(own.state != WAITING).subquery()
    db.execute(delete(deliveries).where(own.id.in_(select(ended.c.id).where(ended.c.rank > KEPT))))
