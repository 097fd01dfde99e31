"""Batch import: a data set becomes part of a project (import validation 6). One transaction of the caller; all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.dataset import cleaned, read_data_set
from flagsvc.server.store.batch.known import read_known
from flagsvc.server.store.batch.rules import archived_features
from flagsvc.server.store.batch.verify import verify
from flagsvc.server.store.batch.work import ImportWork
from flagsvc.server.store.batch.write_dependencies import write_dependencies
from flagsvc.server.store.batch.write_features import write_features
from flagsvc.server.store.batch.write_links import write_links
from flagsvc.server.store.batch.write_places import write_states, write_variants
from flagsvc.server.store.batch.write_strategies import write_strategies
from flagsvc.server.store.batch.write_words import write_context_fields, write_tag_types, write_tags
from flagsvc.server.store.store import Tx

Step: TypeAlias = Callable[[ImportWork], None]

STEPS: tuple[Step, ...] = (
    write_features,
    ImportWork.look_up,
    write_variants,
    write_tag_types,
    write_tags,
    write_context_fields,
    write_links,
    write_strategies,
    write_states,
    write_dependencies,
)
"""What an import does, in its order (import validation 6.3)."""


def import_data(tx: Tx, actor: Actor, body: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
    """Import the data set of a body, which has the shape of importTogglesSchema, and texts that a database takes.

    `sent` is the same with texts as they were sent, which the checks before the first write go by.
    Raises Refusal (400, 403, 404, 409); then the transaction must not be committed: `Store.writing` sees to that.
    """
    data = read_data_set(body)
    known = read_known(tx, data)
    archived = archived_features(data, known)
    clean = cleaned(data, archived)
    if len(clean.features) < len(data.features):
        known = read_known(tx, clean)
    verify(cleaned(read_data_set(sent), archived), known, actor)
    work = ImportWork(tx, actor, clean, known)
    for step in STEPS:
        step(work)
    tx.event("features-imported", project=data.project, environment=data.environment)
