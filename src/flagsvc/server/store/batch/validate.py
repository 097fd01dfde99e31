"""Batch validation: reports whether and how a data set can be imported (import validation 4). It writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.database_facts import DatabaseFacts, read_database_facts
from flagsvc.server.store.batch.dataset import DataSet, Json, read_data_set
from flagsvc.server.store.batch.permissions import missing_permissions
from flagsvc.server.store.batch.rules import ERRORS, WARNINGS, apply
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.resources.features import not_active
from flagsvc.server.store.store import Tx

MISSING_PERMISSIONS = "We detected you are missing the following permissions:"


def validate(tx: Tx, actor: Actor, body: Mapping[str, Any], sent: Mapping[str, Any]) -> Json:
    """Return the `errors`, `warnings` and missing `permissions` of an import of the body by the actor.

    `body` has the shape of importTogglesSchema and texts that the database can store. `sent` is the same body with its original
    texts; the rules use it. Raises CallerError (404) if the project or the environment does not exist, or the
    project is archived: the specification lists that answer (the real server does not give it).
    """
    data = read_data_set(sent)
    known = read_database_facts(tx, read_data_set(body))
    check_target(data, known)
    missing = missing_permissions(data, known, actor)
    return {
        "errors": apply(ERRORS, data, known),
        "warnings": apply(WARNINGS, data, known),
        "permissions": [{"message": MISSING_PERMISSIONS, "affectedItems": missing}] if missing else [],
    }


def check_target(data: DataSet, known: DatabaseFacts) -> None:
    """Raise CallerError (404) unless the target project and environment exist and the project is active."""
    if known.project is None:
        raise not_found(f"Could not find project with id {data.project}")
    if known.project.archived:
        raise not_active(data.project)
    if not known.environment:
        raise not_found(f"Could not find environment with name {data.environment}")
