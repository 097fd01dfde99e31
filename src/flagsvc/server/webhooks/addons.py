"""The settings of webhooks, and their deliveries: list, make, change, delete, queue a test (dialects: Addons; decision 0033)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, update

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import not_found, refusal_text
from flagsvc.server.store.outbox import DELIVERED, FAILED, WAITING, count_waiting, is_administrators, new_delivery, own
from flagsvc.server.store.resources.events import find_events
from flagsvc.server.store.schema import addons, deliveries
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time
from flagsvc.server.webhooks.provider import check_parameters, check_provider, mask

TEST = "webhook-test"
"""The type of the event of a test. No change has it."""


def list_addons(tx: Tx) -> list[Json]:
    """Return every webhook, in order of creation, with sensitive parameters masked."""
    return [to_json(row) | {"deliveries": sum_up(tx, row)} for row in tx.db.execute(select(addons).order_by(addons.c.id))]


def find_row(tx: Tx, number: int) -> Row[Any]:
    """Return the stored webhook. Raises CallerError (404)."""
    row = tx.db.execute(select(addons).where(addons.c.id == number)).first()
    if row is None:
        raise not_found("Could not find addon")
    return row


def find(tx: Tx, number: int) -> Json:
    """Return a webhook as the API answers it. Raises CallerError (404)."""
    row = find_row(tx, number)
    return to_json(row) | {"deliveries": sum_up(tx, row)}


def to_json(row: Row[Any]) -> Json:
    """Return a webhook with its sensitive parameters masked."""
    shown = event_side(row)
    moments = {"createdAt": shown.pop("createdAt"), "updatedAt": format_time(row.updated_at)}
    return shown | {"parameters": mask(row.parameters)} | moments


def event_side(row: Row[Any]) -> Json:
    """Return a webhook as events hold it: without its parameters, which have secrets."""
    return {
        "id": row.id,
        "provider": row.provider,
        "enabled": row.enabled,
        "description": row.description,
        "events": row.events,
        "projects": row.projects,
        "environments": row.environments,
        "createdAt": format_time(row.created_at),
    }


def sum_up(tx: Tx, row: Row[Any]) -> Json:
    """Return how the deliveries of a webhook go: how many wait, how many had no room, the last success and failure.

    `eventsWithoutProject` tells whether events are sent that have no project.
    """
    last = {state: _last_moment(tx, row.id, state) for state in (DELIVERED, FAILED)}
    tried = own.error.is_not(None)
    query = select(own.error).where(own.addon_id == row.id, tried).order_by(own.id.desc()).limit(1)
    return {
        "waiting": count_waiting(tx.db, row.id),
        "dropped": row.dropped,
        "lastSuccessAt": last[DELIVERED],
        "lastFailureAt": last[FAILED],
        "lastError": tx.db.execute(query).scalar(),
        "eventsWithoutProject": bool(
            tx.db.execute(select(is_administrators()).select_from(addons).where(addons.c.id == row.id)).scalar()
        ),
    }


def _last_moment(tx: Tx, number: int, state: str) -> str | None:
    query = select(func.max(own.ended_at)).where(own.addon_id == number, own.state == state)
    return format_time(tx.db.execute(query).scalar())


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create a webhook, and return it. Raises CallerError (400).

    `wanted` has provider, enabled, parameters and events, and may have description, projects and environments.
    """
    values = _values(tx, wanted, {}) | {"created_at": tx.now, "updated_at": tx.now, "dropped": 0}
    number = tx.db.execute(insert(addons).values(values).returning(addons.c.id)).scalar_one()
    made = find_row(tx, number)
    tx.record_event("addon-config-created", data=event_side(made))
    return find(tx, number)


def change(tx: Tx, number: int, wanted: Mapping[str, Any]) -> Json:
    """Replace the settings of a webhook, and return it. Raises CallerError (400, 404).

    A masked parameter keeps its value. A parameter that is not there is removed, as on the real server. Another user who saves the
    webhook without a difference is a change, too: events without a project depend on that user from then on.
    """
    before = find_row(tx, number)
    values = _values(tx, wanted, before.parameters)
    values["description"] = values["description"] or ""
    if values["parameters"] != before.parameters or any(values[name] != before._mapping[name] for name in values):
        tx.db.execute(update(addons).where(addons.c.id == number).values(values | {"updated_at": tx.now}))
        tx.record_event(
            "addon-config-updated",
            before=event_side(before) | {"updatedAt": format_time(before.updated_at)},
            data=event_side(find_row(tx, number)) | {"updatedAt": format_time(tx.now)},
        )
    return find(tx, number)


def _values(tx: Tx, wanted: Mapping[str, Any], stored: Mapping[str, str]) -> dict[str, Any]:
    """Return what a request makes of the columns. Raises CallerError (400)."""
    check_provider(wanted["provider"])
    lists = {name: list(wanted.get(name) or ()) for name in ("events", "projects", "environments")}
    text = {"provider": wanted["provider"], "description": wanted.get("description")}
    parameters = check_parameters(wanted["parameters"], stored)
    author = None if tx.actor is None else tx.actor.id
    return text | {"enabled": wanted["enabled"], "parameters": parameters, "changed_by_id": author} | lists


def parameters_problem(parameters: Mapping[str, Any]) -> str:
    """Return what this version refuses of the stored parameters of a webhook; empty for nothing. It has no sensitive value."""
    return refusal_text(check_parameters, parameters, {})


def remove(tx: Tx, number: int) -> None:
    """Delete a webhook with its deliveries. Raises CallerError (404)."""
    before = find_row(tx, number)
    tx.db.execute(delete(addons).where(addons.c.id == number))
    tx.record_event("addon-config-deleted", before=event_side(before))


def queue_test(tx: Tx, number: int) -> None:
    """Queue a test of a webhook, which is sent once, also by a disabled one. Raises CallerError (404)."""
    find_row(tx, number)
    values = new_delivery(number, tx.now) | {"sample": make_sample(tx.actor, tx.now)}
    tx.db.execute(insert(deliveries).values(values))


def make_sample(actor: Actor | None, now: datetime) -> Json:
    """Return the event of a test by somebody; None for the server itself."""
    name = "system" if actor is None else actor.name
    return {
        "id": 0,
        "type": TEST,
        "createdBy": name,
        "createdAt": format_time(now),
        "createdByUserId": None if actor is None else actor.id,
        "data": {"message": "This is a test of a webhook. Nothing has changed."},
        "preData": None,
        "tags": [],
        "featureName": None,
        "project": None,
        "environment": None,
        "label": "Test of a webhook",
        "summary": f"**{name}** tests this webhook",
    }


def checked_parameters(tx: Tx, number: int | None, given: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters as a webhook would store them. A new webhook has no number. Raises CallerError (400, 404)."""
    return check_parameters(given, {} if number is None else find_row(tx, number).parameters)


def list_deliveries(tx: Tx, addon: int, limit: int, offset: int) -> list[Json]:
    """Return deliveries of a webhook, the newest first, each with its event."""
    query = select(deliveries).where(own.addon_id == addon).order_by(own.id.desc()).limit(limit).offset(offset)
    rows = tx.db.execute(query).all()
    events = find_events(tx, {row.event_id for row in rows if row.event_id is not None})
    return [delivery_to_json(row, row.sample or events.get(row.event_id)) for row in rows]


def delivery_to_json(row: Row[Any], event: Json | None) -> Json:
    """Return a delivery with its event; None for an event that is deleted."""
    return {
        "id": str(row.id),
        "integrationId": row.addon_id,
        "createdAt": format_time(row.created_at),
        "state": row.state,
        "stateDetails": words_of(row),
        "event": event,
        "details": {
            "deliveryId": row.uid,
            "attempts": row.attempts,
            "status": row.status,
            "endedAt": format_time(row.ended_at),
            "dueAt": format_time(row.due_at) if row.state == WAITING else None,
        },
    }


def words_of(row: Row[Any]) -> str:
    """Return the state of a delivery in words."""
    if row.state == DELIVERED:
        return f"the receiver answered with the status {row.status}"
    return row.error or "it waits for its first attempt"
