"""Batch validation: whether a data set can be imported, and what becomes of it (import validation 4). Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.dataset import DataSet, Json, read_data_set
from flagsvc.server.store.batch.known import DatabaseFacts, read_known
from flagsvc.server.store.batch.permissions import missing_permissions
from flagsvc.server.store.batch.rules import ERRORS, WARNINGS, apply
from flagsvc.server.store.nouns.features import not_active
from flagsvc.server.store.refusals import not_found
from flagsvc.server.store.store import Tx

MISSING = "We detected you are missing the following permissions:"


def validate(tx: Tx, actor: Actor, body: Mapping[str, Any], sent: Mapping[str, Any]) -> Json:
    """Return what an import of the body by the actor would meet: `errors`, `warnings` and `permissions`.

    `body` has the shape of importTogglesSchema, and texts that a database takes; `sent` is the same with texts as they were sent,
    which the rules go by. Raises Refusal (404) where the project or the environment does not exist, or the
    project is archived: the specification lists that answer (the real server does not give it).
    """
    data = read_data_set(sent)
    known = read_known(tx, read_data_set(body))
    check_target(data, known)
    missing = missing_permissions(data, known, actor)
    return {
        "errors": apply(ERRORS, data, known),
        "warnings": apply(WARNINGS, data, known),
        "permissions": [{"message": MISSING, "affectedItems": missing}] if missing else [],
    }


def check_target(data: DataSet, known: DatabaseFacts) -> None:
    """Raise Refusal (404) where there is nothing to import into."""
    if known.project is None:
        raise not_found(f"Could not find project with id {data.project}")
    if known.project.archived:
        raise not_active(data.project)
    if not known.environment:
        raise not_found(f"Could not find environment with name {data.environment}")
