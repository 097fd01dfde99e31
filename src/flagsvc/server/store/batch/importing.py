"""Batch import of a data set into a project (import validation 6). It runs in the caller's transaction: all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.database_facts import read_database_facts
from flagsvc.server.store.batch.dataset import clean_data_set, read_data_set
from flagsvc.server.store.batch.import_work import ImportWork
from flagsvc.server.store.batch.rules import archived_features
from flagsvc.server.store.batch.verify import verify
from flagsvc.server.store.batch.write_features import write_dependencies, write_features
from flagsvc.server.store.batch.write_strategies import write_states, write_strategies, write_variants
from flagsvc.server.store.batch.write_tags_and_fields import (
    write_context_fields,
    write_links,
    write_tag_types,
    write_tags,
)
from flagsvc.server.store.store import Tx

Step: TypeAlias = Callable[[ImportWork], None]

STEPS: tuple[Step, ...] = (
    write_features,
    ImportWork.load_features,
    write_variants,
    write_tag_types,
    write_tags,
    write_context_fields,
    write_links,
    write_strategies,
    write_states,
    write_dependencies,
)
"""The steps of an import, in order (import validation 6.3)."""


def import_data(tx: Tx, actor: Actor, body: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
    """Import the data set of a body, which has the shape of importTogglesSchema and texts that the database can store.

    `sent` is the same body with its original texts; the checks before the first write use it.
    Raises CallerError (400, 403, 404, 409); the transaction must then be rolled back, as `Store.writing` does.
    """
    data = read_data_set(body)
    known = read_database_facts(tx, data)
    archived = set(archived_features(data, known))
    clean = clean_data_set(data, archived)
    if len(clean.features) < len(data.features):
        known = read_database_facts(tx, clean)
    verify(clean_data_set(read_data_set(sent), archived), known, actor)
    work = ImportWork(tx, actor, clean, known)
    for step in STEPS:
        step(work)
    tx.record_event("features-imported", project=data.project, environment=data.environment)
