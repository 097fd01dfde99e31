"""The checks of an import before it writes; the first one that fails answers (import validation 6.2)."""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.change_requests import permission_refusal
from flagsvc.server.store.batch.database_facts import DatabaseFacts
from flagsvc.server.store.batch.dataset import DataSet
from flagsvc.server.store.batch.permissions import missing_permissions
from flagsvc.server.store.batch.rules import (
    conflicting_context_fields,
    foreign_features,
    missing_parents,
    missing_segments,
    unknown_strategies,
)
from flagsvc.server.store.checks import INVALID
from flagsvc.server.store.errors import CallerError, bad_data

USER_REQUIRED = (
    "You can't use an admin token to import features. Please use either a personal access token "
    "(https://docs.getunleash.io/concepts/api-tokens-and-client-keys#personal-access-tokens) or a service account "
    "(https://docs.getunleash.io/concepts/service-accounts)."
)


def check_importer(actor: Actor) -> None:
    """Raise CallerError (400) for an admin token: only users may import."""
    if not actor.is_user:
        raise bad_data(USER_REQUIRED)


def verify(data: DataSet, known: DatabaseFacts, actor: Actor) -> None:
    """Raise CallerError (400, 403) if a cleaned data set cannot be imported by the actor."""
    _check_supported(unknown_strategies(data, known))
    _check_supported(conflicting_context_fields(data, known))
    missing = missing_permissions(data, known, actor)
    if missing:
        raise permission_refusal(missing)
    for message, find in (
        ("These features exist already in other projects", foreign_features),
        ("Unsupported segments", missing_segments),
        ("The following dependent features are missing", missing_parents),
    ):
        found = find(data, known)
        if found:
            raise bad_data(f"{message}: {', '.join(found)}")


def _check_supported(names: Sequence[str]) -> None:
    """Raise CallerError (400) with one detail for each unsupported name; return if there is none."""
    messages = [f"{name} is not supported." for name in names]
    if messages:
        raise CallerError("BadDataError", INVALID, [{"description": each, "message": each} for each in messages])
